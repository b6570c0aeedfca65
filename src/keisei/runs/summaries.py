"""What a run looks like in one line: its state, its progress and its last scores. Reading it disturbs no trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite, nan
from pathlib import Path

from keisei.errors import KeiseiError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.runs.metric_names import ELAPSED
from keisei.runs.rows import EvaluationRow

__all__ = ["RunSummary", "find_runs", "last_scores", "summarise"]


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
    changes: tuple[str, ...] = ()
    """Settings that changed on the way, and from which update on."""


def summarise(run: RunDirectory, game: str | None = None) -> RunSummary:
    """Reads each part of a run. If one cannot be read, the others are still shown. Who knows the run's game already
    tells it, since reading settings takes longest."""
    status = run.status()
    summary = RunSummary(
        run.name, str(run.path), status.state, detail=status.detail, last_seen=_time(status.since)
    )
    try:
        summary = replace(summary, game=game or _game(run))
    except KeiseiError as error:
        summary = replace(summary, state=RunState.UNREADABLE, detail=str(error))
    if not run.database.exists():
        return summary
    try:
        return _with_numbers(summary, run)
    except KeiseiError as error:
        return replace(summary, detail=f"{summary.detail}; {error}" if summary.detail else str(error))


def find_runs(root: Path) -> list[RunDirectory]:
    """Lists all runs, also directories with checkpoints whose configuration is lost."""
    paths = {run.path for run in list_runs(root)}
    if root.is_dir():
        paths |= {path.parent for path in root.glob("[!.]*/checkpoints") if path.is_dir()}
    return [RunDirectory(path) for path in sorted(paths)]


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
        last_seen=max(progress.time, summary.last_seen or 0.0),
    )


def last_scores(rows: Sequence[EvaluationRow]) -> dict[str, float]:
    """Gives the last score by opponent. All checkpoints of the run itself count as ``best``."""
    named = {row.opponent: row.score for row in rows if not row.against_checkpoint}
    best = [row.score for row in rows if row.against_checkpoint]
    return {**named, **({"best": best[-1]} if best else {})}


def _time(iso: str) -> float | None:
    try:
        return datetime.fromisoformat(iso).timestamp()
    except (TypeError, ValueError):  # somebody has edited the state file
        return None
