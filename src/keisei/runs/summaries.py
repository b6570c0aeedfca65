"""What a run looks like in one line: its state, its progress and its last scores. Reading it disturbs no trainer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite, nan
from pathlib import Path

from keisei.errors import KeiseiError, in_one_line
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, is_run
from keisei.runs.foreign_documents import shown_text
from keisei.runs.labels import read_labels
from keisei.runs.metric_names import ELAPSED
from keisei.runs.origin import read_origin
from keisei.runs.rows import EvaluationRow
from keisei.runs.run_names import folders_below

__all__ = ["RunSummary", "damaged", "find_runs", "last_scores", "summarise"]

_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. Unknown values are None."""

    name: str
    path: str
    state: RunState
    game: str | None = None
    updates: int | None = None
    transitions: int | None = None
    training_seconds: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    """The last score against each opponent; ``best`` is the checkpoint that was best at that time."""
    last_seen: float | None = None
    """When the run last wrote anything, in seconds since 1970."""
    detail: str = ""
    """Why it failed, which process trains it, or what is damaged."""
    origin: str = ""
    """The checkpoint that it began with, if that is of another run."""
    changes: tuple[str, ...] = ()
    """Settings that changed on the way, and from which update on."""
    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False
    """Whether lists leave it out."""


def summarise(run: RunDirectory, game: str | None = None) -> RunSummary:
    """Reads each part of a run. If one cannot be read, the others are still shown. A caller that knows the run's game
    passes it, since reading settings takes longest.

    This never fails, whatever the run's folder holds: one damaged run must not break the list of all runs.
    """
    try:
        return _printable(_read(run, game))
    except Exception as error:
        return _printable(damaged(run, error))


def damaged(run: RunDirectory, error: Exception) -> RunSummary:
    """Makes the line of a run of which nothing can be read."""
    return RunSummary(run.name, str(run.path), RunState.UNREADABLE, detail=in_one_line(error))


def _read(run: RunDirectory, game: str | None) -> RunSummary:
    status = run.status()
    summary = RunSummary(
        run.name, str(run.path), status.state, detail=status.detail, last_seen=_time(status.since)
    )
    labels = read_labels(run)
    summary = replace(
        summary,
        origin=str(read_origin(run) or ""),
        tags=labels.tags,
        note=labels.note,
        archived=labels.archived,
    )
    try:
        summary = replace(summary, game=game or _game(run))
    except KeiseiError as error:
        summary = replace(summary, state=RunState.UNREADABLE, detail=str(error))
    if not os.path.lexists(run.database):
        return summary
    try:
        return _with_numbers(summary, run)
    except KeiseiError as error:
        return replace(summary, detail=f"{summary.detail}; {error}" if summary.detail else str(error))


def _printable(summary: RunSummary) -> RunSummary:
    """Replaces characters that cannot be written: the name of a folder may have bytes that are not valid text."""
    return replace(
        summary,
        name=shown_text(summary.name),
        path=shown_text(summary.path),
        detail=shown_text(summary.detail),
    )


def find_runs(root: Path) -> list[RunDirectory]:
    """Lists all runs, also directories with checkpoints whose configuration is lost."""
    return [RunDirectory(path, root) for path in folders_below(root, _may_be_run)]


def _may_be_run(path: Path) -> bool:
    return is_run(path) or (not path.name.startswith(".") and _has_checkpoints(path))


def _has_checkpoints(path: Path) -> bool:
    try:
        return (path / "checkpoints").is_dir()
    except OSError:  # access is denied
        return False


def _game(run: RunDirectory) -> str | None:
    """Reads only this setting, since the classes of the settings take seconds to import."""
    env = run.config().get("env")
    game = env.get("game") if isinstance(env, dict) else None
    return game if isinstance(game, str) else None


def _with_numbers(summary: RunSummary, run: RunDirectory) -> RunSummary:
    with RunDatabase(run.database, read_only=True) as database:
        progress, metrics = database.progress(), database.latest_metrics()
        scores = last_scores(database.last_evaluations())
        summary = replace(summary, changes=tuple(map(str, database.changes())))
    if progress is None:
        return replace(summary, scores=scores)
    seconds = metrics.get(ELAPSED, nan)
    return replace(
        summary,
        updates=progress.update,
        transitions=progress.step,
        training_seconds=seconds if isfinite(seconds) else None,
        scores=scores,
        last_seen=max(filter(None, (_in_calendar(progress.time), summary.last_seen)), default=None),
    )


def last_scores(rows: Sequence[EvaluationRow]) -> dict[str, float]:
    """Finds the last score against each opponent. All checkpoints of the run itself count as ``best``."""
    named = {row.opponent: row.score for row in rows if not row.against_checkpoint}
    best = [row.score for row in rows if row.against_checkpoint]
    return {**named, **({"best": best[-1]} if best else {})}


def _time(iso: str) -> float | None:
    try:
        return _in_calendar(datetime.fromisoformat(iso).timestamp())
    except (ValueError, OverflowError):  # somebody has edited the state file
        return None


def _in_calendar(time: float) -> float | None:
    """Returns a time if it has a date, else None."""
    return time if 0 <= time < _END_OF_TIME else None
