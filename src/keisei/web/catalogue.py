"""The runs below a folder, as the dashboard lists them. What has not changed on the disk is not read again."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError, RunError
from keisei.runs.directory import CONFIG, LOCK, STATE, RunDirectory, RunState
from keisei.runs.foreign_documents import LARGEST_SETTINGS, settings_of, shown_text
from keisei.runs.foreign_files import read_foreign
from keisei.runs.json_values import finite
from keisei.runs.labels import LABELS
from keisei.runs.live import LiveStatus, read_live
from keisei.runs.run_names import check_run_name
from keisei.runs.summaries import RunSummary, damaged, find_runs, summarise

__all__ = ["Catalogue", "ListedRun", "NotFoundError", "flat_settings", "stamp_of"]

_SECTION = re.compile(r"^(?=\w)", re.MULTILINE)
"""Where a section of ``config.yaml`` begins."""
_MOST_SECTIONS = 50
_OPTIONS = "env.options."
_CHECKPOINT = re.compile(r"update-\d{9,}(-\d+)?")
Stamp = tuple[tuple[int, int], ...]


class NotFoundError(RunError):
    """There is no such run, or nothing of this name in it."""


@dataclass(frozen=True)
class ListedRun:
    """A run with its settings and what it does now."""

    summary: RunSummary
    settings: Mapping[str, str]
    """All settings as texts, by their names with their sections."""
    live: LiveStatus | None

    def row(self, settings: set[str]) -> dict[str, Any]:
        """Makes the row of this run in the list, with these settings."""
        summary, live = self.summary, self.live
        row = asdict(summary) | {"state": summary.state.value, "changes": len(summary.changes)}
        del row["path"]
        row["regime"] = self.settings.get("learner.regime", "")
        row["settings"] = {name: value for name, value in self.settings.items() if name in settings}
        if live is not None and summary.state is RunState.RUNNING:
            row |= {"paused": live.paused, "speed": finite(live.speed), "progress": finite(live.progress)}
        return row


class Catalogue:
    """Finds runs, and caches what it has read of them. Several threads may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[Stamp, ListedRun]] = {}
        self._lock = threading.Lock()

    def run(self, name: str) -> RunDirectory:
        """Finds the run of this name. Names that lead out of the folder are unknown, also through links."""
        try:
            check_run_name(name)
            path = self.root / name
            # No part of the name is a link, so it leads nowhere else.
            inside = path.resolve(strict=True) == self.root.resolve(strict=True) / name
            inside = inside and (path / CONFIG).is_file()
        except (KeiseiError, OSError, RuntimeError):  # which a link to itself raises
            inside = False
        if not inside:
            raise NotFoundError(f"there is no run {name[:100]!r} here")
        return RunDirectory(path, self.root)

    def runs(self) -> dict[str, ListedRun]:
        """Finds all runs, by name."""
        with self._lock:
            found = {shown_text(run.name): run for run in find_runs(self.root) if self._is_inside(run)}
            self._known = {name: self._read(name, run) for name, run in found.items()}
            return {name: listed for name, (_, listed) in self._known.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Makes the rows of all runs, with the settings in which they differ."""
        runs = self.runs()
        differing = set(_differing([listed.settings for listed in runs.values()]))
        return [listed.row(differing) for listed in runs.values()]

    def checkpoints(self, run: RunDirectory) -> list[str]:
        """Lists the names of a run's checkpoints, newest first."""
        try:
            names = os.listdir(run.checkpoints)
        except OSError:
            return []
        return sorted(filter(_CHECKPOINT.fullmatch, names), reverse=True)

    def players_of(self, game: str) -> list[dict[str, Any]]:
        """Lists the runs of a game that have checkpoints, the one that was seen last first."""
        found = []
        for name, listed in self.runs().items():
            run = RunDirectory(self.root / name, self.root)
            if listed.summary.game == game and (kept := self.checkpoints(run)):
                seen = listed.summary.last_seen or 0.0
                options = {key: text for key, text in listed.settings.items() if key.startswith(_OPTIONS)}
                about = {"best": self.best(run), "checkpoints": kept, "seen": seen, "options": options}
                found.append({"run": name, **about})
        return sorted(found, key=lambda one: -one["seen"])

    def best(self, run: RunDirectory) -> str | None:
        """Reads the name of the checkpoint that is marked as best; None if there is none. Only the link is read; it is
        not followed."""
        try:
            name = os.readlink(run.checkpoints / "best")
        except OSError:
            return None
        return name if name in self.checkpoints(run) else None

    def _is_inside(self, run: RunDirectory) -> bool:
        try:
            return run.path.resolve() == self.root.resolve() / run.name
        except (OSError, RuntimeError):
            return False

    def _read(self, name: str, run: RunDirectory) -> tuple[Stamp, ListedRun]:
        """Reads a run again if one of its files has changed, or if it may have ended without writing anything."""
        stamp = stamp_of(run)
        known = self._known.get(name)
        if known is not None and known[0] == stamp and known[1].summary.state is not RunState.RUNNING:
            return known
        try:
            settings = flat_settings(run)
            return stamp, ListedRun(summarise(run, settings.get("env.game")), settings, read_live(run))
        except Exception as error:  # one damaged run must not hide all others
            return stamp, ListedRun(damaged(run, error), {}, None)


def stamp_of(run: RunDirectory) -> Stamp:
    """Reads the times and sizes of the files that change when a run does."""
    own = run.path
    files = (
        own / CONFIG,
        own / STATE,
        own / LOCK,
        own / LABELS,
        run.database,
        Path(f"{run.database}-wal"),
        run.live,
    )
    return tuple(map(_stamp, files))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return 0, 0
    # A reader of a database leaves an empty log behind, which does not count as a change.
    return (found.st_mtime_ns, found.st_size) if found.st_size else (0, 0)


def flat_settings(run: RunDirectory) -> dict[str, str]:
    """Reads the settings of a run as texts; empty if they cannot be read.

    Runs are often alike but for a few settings, and YAML takes longest of all. So each section is read on its own, and
    one that was read before is remembered.
    """
    try:
        text = read_foreign(run.path, CONFIG, LARGEST_SETTINGS).decode()
        sections = _SECTION.split(text)
        if len(sections) <= _MOST_SECTIONS:
            with suppress(ValueError):  # sections that go on after an empty line, or a damaged file
                return {name: value for section in sections for name, value in _flat_section(section).items()}
        return dict(flattened(settings_of(text) or {}))
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=4096)
def _flat_section(text: str) -> dict[str, str]:
    return dict(flattened(settings_of(text) or {}))


def flattened(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value:
            yield from flattened(value, here)
        else:
            yield (
                here,
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str),
            )


def _differing(settings: list[Mapping[str, str]]) -> Iterator[str]:
    for name in dict.fromkeys(name for one in settings for name in one):
        if len({one.get(name) for one in settings if one}) > 1:
            yield name
