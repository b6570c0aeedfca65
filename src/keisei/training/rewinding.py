"""Sets a run back to one of its checkpoints. Its present state is kept beside it, as a run of its own."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keisei.policies.players.saved_player import find_state
from keisei.policies.trust import trust_settings
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.directory import ID, LOCK, RunDirectory, RunState, free_path
from keisei.runs.durable_files import file_errors, sync_directory, write_new
from keisei.training.branching import share_file
from keisei.training.changes import check_changes
from keisei.training.settings import TrainConfig
from keisei.training.wiring import counters_of

__all__ = ["Rewound", "rewind"]

_WRITTEN_ONCE = ("checkpoints", "league", "games")
"""Folders whose files are never written again, so the copy may share them."""
_LEFT_OUT = (LOCK, ID, "control", "live.json")


@dataclass(frozen=True)
class Rewound:
    """A run that was set back."""

    update: int
    beside: RunDirectory
    """The copy of the run from before."""

    def __str__(self) -> str:
        return (
            f"the run is set back to update {self.update}; as it was, it is now {self.beside.path}. To go on with that "
            f"one instead: keisei train {self.beside.path}"
        )


def rewind(run: RunDirectory, which: str, config: TrainConfig) -> Rewound:
    """Sets a run back to the checkpoint that ``which`` names, if it could go on from there with this configuration.
    Refused while the run is being trained."""
    with run.lock():
        _, found = find_state(f"{run.path.absolute()}@{which}", run.root)
        check_changes(run, found.checkpoint, config)
        update = found.checkpoint.update
        archive = CheckpointArchive(run.checkpoints)
        with file_errors(run.path):
            beside = _copy(run)
            trust_settings(beside, config)
            for path in archive.rewind(update):
                shutil.rmtree(path)  # the copy has it
        with RunDatabase(run.database) as database:
            database.rewind(update)
        seconds = counters_of(found.checkpoint).seconds
        run.record_state(RunState.INTERRUPTED, f"set back to update {update}", seconds)
    return Rewound(update, beside)


def _copy(run: RunDirectory) -> RunDirectory:
    """Copies a run that nobody trains to a free name beside it. It appears as a whole or not at all."""
    partial = run.path.with_name(f".partial-{run.path.name}-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        for path in sorted(run.path.iterdir()):
            if path.name not in _LEFT_OUT and not path.name.startswith(run.database.name):
                _copy_entry(path, partial / path.name, shared=path.name in _WRITTEN_ONCE)
        if run.database.exists():
            with RunDatabase(run.database, read_only=True) as database:
                database.copy(partial / run.database.name)
        write_new(partial / ID, f"{secrets.token_hex(16)}\n".encode())
        made = partial.rename(free_path(run.path.parent, run.path.name + ".{}"))
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_directory(made.parent)
    return RunDirectory(made, run.folder)


def _copy_entry(path: Path, target: Path, shared: bool) -> None:
    """Copies a file, a link as it is, or a folder. Nothing is followed, and nothing else is copied."""
    if path.is_symlink():
        target.symlink_to(os.readlink(path))
    elif path.is_dir():
        target.mkdir()
        for entry in sorted(path.iterdir()):
            _copy_entry(entry, target / entry.name, shared)
    elif path.is_file():
        copy: Callable[[Path, Path], object] = share_file if shared else shutil.copyfile
        copy(path, target)
