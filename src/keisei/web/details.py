"""All that the page of a run shows, read from its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from keisei.errors import KeiseiError, in_one_line
from keisei.games.registry import is_world
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.json_values import finite
from keisei.runs.league import LeagueView
from keisei.runs.live import LiveStatus, read_live
from keisei.runs.metric_names import AGENT_RETURN, EVALUATION, RETURN, TAGS, is_return_of_agent
from keisei.runs.rows import EvaluationRow
from keisei.runs.summaries import summarise
from keisei.web.catalogue import Catalogue, flat_settings

__all__ = ["Curve", "Presets", "curves_of", "details_of", "live_of", "new_points", "scores_of"]

MOST_POINTS = 2000
_MOST_EVALUATIONS = 400
"""Matches against one opponent that are shown; of more, every second, third … is left out."""
_MATRIX_ROWS = 12
"""Snapshots of the learner in the win-rate matrix, the newest ones."""
Curve = dict[str, list[Any]]
Presets = Mapping[str, Mapping[str, str]]
"""All settings of each preset as texts, by their names with their sections."""


def details_of(catalogue: Catalogue, run: RunDirectory, presets: Presets) -> dict[str, Any]:
    """Describes a run as the page shows it, without its curves. Its settings are compared with those of a preset."""
    summary = asdict(summarise(run))
    summary |= {"state": summary["state"].value}
    del summary["path"]
    settings = flat_settings(run)
    preset, usual = _nearest_preset(run.name, settings, presets)
    return {
        "summary": summary,
        "live": live_of(run),
        "checkpoints": catalogue.checkpoints(run),
        "has_best": catalogue.best(run) is not None,
        "is_world": is_world(settings.get("env.game", "")),
        "preset": preset,
        "settings": [
            {"name": name, "value": value, "usual": usual.get(name) if preset else None}
            for name, value in settings.items()
        ],
        **_from_database(run),
    }


def _from_database(run: RunDirectory) -> dict[str, Any]:
    lists = ("metrics", "ratings", "events", "games", "changes")
    empty: dict[str, Any] = {
        "evaluations": {},
        "meanings": {},
        "league": None,
        "returns": {},
        **{name: [] for name in lists},
    }
    if not os.path.lexists(run.database):
        return empty
    try:
        with RunDatabase(run.database, read_only=True) as database:
            names = database.metric_names()
            return {
                "metrics": [name for name in names if not name.startswith((EVALUATION, RETURN))],
                "meanings": {name: TAGS[name] for name in names if name in TAGS},
                "evaluations": _evaluations(database.evaluations()),
                "returns": _returns(database, names),
                "ratings": list(map(asdict, database.ratings()[:200])),
                "league": _league(LeagueView.of(database)),
                "events": list(map(asdict, database.worker_events(50))),
                "games": list(map(asdict, database.games(200))),
                "changes": [str(change) for change in database.changes()],
            }
    except Exception as error:  # the page shows what else there is
        return empty | {"problem": str(error) if isinstance(error, KeiseiError) else in_one_line(error)}


def _returns(database: RunDatabase, names: Sequence[str]) -> dict[str, Any]:
    """Gets what agents earned in the games that ended last, by the names of the metrics. Not every update has one."""
    own = [name for name in names if is_return_of_agent(name)]
    last = {name: database.thinned_metric(name, 2) for name in own or [AGENT_RETURN] if name in names}
    return {name: finite(found[-1].value) for name, found in last.items() if found}


def scores_of(run: RunDirectory) -> dict[str, Curve]:
    """Gets the scores by opponent. Scores against own checkpoints are left out, since those opponents differ between
    runs."""
    if not run.database.exists():
        return {}
    with RunDatabase(run.database, read_only=True) as database:
        return _evaluations([row for row in database.evaluations() if not row.against_checkpoint])


def live_of(run: RunDirectory) -> dict[str, Any] | None:
    """Describes what a run does now, without its board, which has a request of its own."""
    live: LiveStatus | None = read_live(run)
    if live is None:
        return None
    return {name: finite(value) for name, value in asdict(live).items() if name != "board"} | {
        "has_board": live.board is not None
    }


def league_of(run: RunDirectory) -> dict[str, Any] | None:
    """Describes the league of a run; None if it has none."""
    with RunDatabase(run.database, read_only=True) as database:
        return _league(LeagueView.of(database))


def _league(view: LeagueView | None) -> dict[str, Any] | None:
    """Lists the members that are in the league now, with what ``keisei league`` tells of them."""
    if view is None:
        return None
    return {
        "size": len(view.pool),
        "left": len(view.former),
        "games": view.games,
        "worst": None if view.worst is None else view.worst.number,
        "forgotten": [row.name for row in view.forgotten],
        "members": list(map(asdict, view.members)),
        "matrix": list(map(asdict, view.newest_results(_MATRIX_ROWS))),
    }


def _evaluations(rows: Sequence[EvaluationRow]) -> dict[str, Curve]:
    """Gets the scores by opponent. All matches against own checkpoints are one curve, ``best so far``."""
    named: dict[str, list[EvaluationRow]] = {}
    for row in rows:
        named.setdefault("best so far" if row.against_checkpoint else row.opponent, []).append(row)
    return {opponent: _scores(_thinned(matches)) for opponent, matches in named.items()}


def _scores(rows: Sequence[EvaluationRow]) -> Curve:
    columns: Curve = {
        "step": [row.step for row in rows],
        "value": [row.score for row in rows],
        "low": [row.low for row in rows],
        "high": [row.high for row in rows],
    }
    last = rows[-1]
    columns["last"] = [last.wins, last.draws, last.losses]
    if last.mean_return is not None:
        columns["returns"] = [row.mean_return for row in rows]
    return columns


def _thinned(rows: Sequence[EvaluationRow]) -> Sequence[EvaluationRow]:
    every = -(-len(rows) // _MOST_EVALUATIONS)
    return rows if every <= 1 else [*rows[:-1:every], rows[-1]]


def curves_of(run: RunDirectory, names: Iterable[str], points: int) -> dict[str, Curve]:
    """Reads thinned curves. Unknown names have empty ones."""
    if not run.database.exists():
        return {}
    points = max(2, min(MOST_POINTS, points))
    with RunDatabase(run.database, read_only=True) as database:
        return {name: _curve(database, name, points) for name in names}


def _curve(database: RunDatabase, name: str, points: int) -> Curve:
    found = database.thinned_metric(name, points)
    return {
        "step": [round(point.step) for point in found],
        "value": [finite(point.value) for point in found],
        "low": [finite(point.low) for point in found],
        "high": [finite(point.high) for point in found],
    }


def new_points(run: RunDirectory, after_update: int) -> tuple[int, dict[str, list[list[float | None]]]]:
    """Gets the newest update, and the numbers of all updates after ``after_update`` as [step, value], by name. It
    returns at most the last 20 updates: a page that has missed more reads its curves again."""
    if not run.database.exists():
        return after_update, {}
    with RunDatabase(run.database, read_only=True) as database:
        progress = database.progress()
        if progress is None or progress.update <= after_update:
            return after_update, {}
        points = database.recent_metrics(max(after_update, progress.update - 20))
    return progress.update, {
        name: [[point.step, point.value if isfinite(point.value) else None] for point in curve]
        for name, curve in points.items()
    }


def _nearest_preset(run: str, settings: Mapping[str, str], usual: Presets) -> tuple[str, Mapping[str, str]]:
    """Finds the preset of the run's name, else the one of the same game and regime with the fewest differences; empty
    if there is none."""
    if run in usual:
        return run, usual[run]
    alike = {
        name: values
        for name, values in usual.items()
        if all(values.get(key) == settings.get(key) for key in ("env.game", "learner.regime"))
    }
    if not alike:
        return "", {}
    nearest = min(alike, key=lambda name: len(alike[name].items() ^ settings.items()))
    return nearest, alike[nearest]
