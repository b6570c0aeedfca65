"""Weights of the members of a league on disk, each in a directory of its own.

    league/
      member-0100/      a checkpoint with weights only; see ``runs.checkpoint``
      member-0101/

A member is written once. It is removed when neither the league nor a checkpoint of the run needs it any more.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from keisei.runs.checkpoint import (
    LARGEST_MANIFEST,
    MANIFEST,
    PARTIAL,
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from keisei.runs.foreign_documents import json_of
from keisei.runs.foreign_files import read_foreign

logger = logging.getLogger(__name__)

_NAME = re.compile(r"member-(\d{4,})")
_REMOVED = ".removed-"


def member_name(number: int) -> str:
    """Makes the name of a member's directory."""
    return f"member-{number:04d}"


def member_number(name: str) -> int | None:
    """Reads the number of a member from the name of its directory; None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


class SnapshotStore:
    """The directory of a league. Only the process that holds the run's lock writes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path_of(self, number: int) -> Path:
        return self.directory / member_name(number)

    def numbers(self) -> set[int]:
        """Lists the numbers of the members in this store. They are not verified."""
        paths = self.directory.iterdir() if self.directory.is_dir() else ()
        return {number for path in paths if (number := member_number(path.name)) is not None}

    def save(self, number: int, checkpoint: Checkpoint) -> Path:
        """Writes a member; ``CheckpointWriteError`` if that fails, and then nothing is left of it. If a run goes back
        to an earlier checkpoint, it takes later snapshots again, and they replace the old ones."""
        self.directory.mkdir(exist_ok=True)
        self._remove({number} & self.numbers())
        return save_checkpoint(self.directory, checkpoint, member_name(number))

    def load(self, number: int) -> Checkpoint:
        """Reads a member and verifies every byte; ``CheckpointError`` names the file and the damage."""
        return load_checkpoint(self.path_of(number))

    def remove_leftovers(self) -> None:
        """Removes what an interrupted process left."""
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if path.name.startswith((PARTIAL, _REMOVED)):
                shutil.rmtree(path, ignore_errors=True)

    def prune(self, needed: Collection[int], checkpoints: Iterable[Path]) -> None:
        """Removes members that are neither needed nor named by one of these checkpoints."""
        idle = self.numbers() - set(needed)
        if idle:
            named = {number for path in checkpoints for number in named_members(path)}
            self._remove(idle - named)

    def _remove(self, numbers: Iterable[int]) -> None:
        """Renames each one first, so that no reader finds a member with half of its files."""
        for number in numbers:
            path = self.path_of(number)
            removed = path.with_name(f"{_REMOVED}{path.name}")
            shutil.rmtree(removed, ignore_errors=True)
            path.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)


def named_members(checkpoint: Path) -> set[int]:
    """Reads which members a checkpoint of the run names. A damaged checkpoint names none, since no run continues from
    it."""
    try:
        manifest = json_of(read_foreign(checkpoint, MANIFEST, LARGEST_MANIFEST))
        league = manifest["documents"].get("league") or {}
        return {int(member["number"]) for member in league.get("members", ())}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("checkpoint %s names no members of the league: %r", checkpoint.name, error)
        return set()
