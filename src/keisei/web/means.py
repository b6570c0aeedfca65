"""Runs that lie in one folder as one: the means of their curves, with 95 % intervals over the runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from keisei.interfaces.charts import Point
from keisei.interfaces.mean_curves import mean_curve
from keisei.runs.directory import RunDirectory
from keisei.runs.json_values import finite
from keisei.web.catalogue import Catalogue, ListedRun, NotFoundError
from keisei.web.details import Curve, curves_of, scores_of

__all__ = ["means_of"]

_MOST_RUNS = 64
"""Runs of a folder that are read; more would hold up a page for too long."""


def means_of(catalogue: Catalogue, folder: str, names: Sequence[str], points: int) -> dict[str, Any]:
    """Computes the means over the runs of a folder, of these metrics and of the scores in matches."""
    found = {name: one for name, one in catalogue.runs().items() if name.rpartition("/")[0] == folder}
    if not folder or not found:
        raise NotFoundError(f"there is no folder {folder[:100]!r} with runs here")
    read = list(found)[:_MOST_RUNS]
    runs = [catalogue.run(name) for name in read]
    curves = [curves_of(run, names, points) for run in runs]
    return {
        "folder": folder,
        "runs": [{"name": name, "state": one.summary.state.value} for name, one in found.items()],
        "mean_of": _counted(len(read), [found[name] for name in read]),
        "curves": {name: _mean([one.get(name) for one in curves]) for name in names},
        "scores": _mean_scores(runs),
    }


def _counted(number: int, runs: Sequence[ListedRun]) -> str:
    """Runs with a seed of their own each are called seeds."""
    seeds = {run.settings.get("run.seed") for run in runs}
    what = "seed" if len(seeds) == number and None not in seeds else "run"
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _mean_scores(runs: Sequence[RunDirectory]) -> dict[str, Curve]:
    """Computes the mean scores by opponent. Their intervals are cut at 0 and 1."""
    scores = [scores_of(run) for run in runs]
    opponents = list(dict.fromkeys(opponent for one in scores for opponent in one))
    return {opponent: _mean_of_matches([one.get(opponent) for one in scores]) for opponent in opponents}


def _mean_of_matches(curves: Sequence[Curve | None]) -> Curve:
    mean = _mean(curves)
    for column in ("low", "high"):
        mean[column] = [None if value is None else min(1.0, max(0.0, value)) for value in mean[column]]
    if all(curve is not None and "returns" in curve for curve in curves):
        mean["returns"] = _mean(curves, "returns")["value"]
    return mean


def _mean(curves: Sequence[Curve | None], column: str = "value") -> Curve:
    """Computes the mean where all curves are known; empty if one of them is missing."""
    found = mean_curve([_points(curve, column) for curve in curves])
    return {
        "step": [round(point.x) for point in found],
        "value": [finite(point.y) for point in found],
        "low": [finite(point.low) for point in found],
        "high": [finite(point.high) for point in found],
    }


def _points(curve: Curve | None, column: str) -> list[Point]:
    if curve is None:
        return []
    values = zip(curve["step"], curve[column], strict=True)
    return [Point(step, nan if value is None else value) for step, value in values]
