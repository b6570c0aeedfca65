"""Several curves of the same number as one: their mean over runs, with the interval of this mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keisei.interfaces.charts import Point, is_known

__all__ = ["mean_curve"]

MOST_POINTS = 512
CONFIDENCE = 0.95
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def mean_curve(curves: Sequence[Sequence[Point]]) -> list[Point]:
    """Computes the mean of curves where all of them are known, with Student's 95 % interval of the mean. Each curve is
    a straight line between its points. A single curve has no interval; its own bands mean something else."""
    known = [[point for point in curve if is_known(point.y)] for curve in curves]
    if not known or not all(known):
        return []
    axis = _common_axis(known)
    values = np.stack([_at(axis, curve) for curve in known])
    means = values.mean(0)
    margins = _margins(values)
    return [
        Point(float(x), float(mean), float(mean - margin), float(mean + margin))
        for x, mean, margin in zip(axis, means, margins, strict=True)
    ]


def _common_axis(curves: Sequence[Sequence[Point]]) -> list[float]:
    """Lists the x of all points, from the latest first point of a curve to the earliest last one."""
    low, high = max(curve[0].x for curve in curves), min(curve[-1].x for curve in curves)
    places = sorted({point.x for curve in curves for point in curve if low <= point.x <= high})
    if len(places) <= MOST_POINTS:
        return places
    chosen = np.linspace(0, len(places) - 1, MOST_POINTS).round().astype(int)
    return [places[number] for number in chosen]


def _at(places: Sequence[float], curve: Sequence[Point]) -> FloatArray:
    return np.interp(places, [point.x for point in curve], [point.y for point in curve])


def _margins(values: FloatArray) -> Sequence[float]:
    from keisei.evaluation.statistics import (
        student_quantile,
    )  # the room imports torch, and other pictures do not wait

    runs, places = values.shape
    if runs < 2:
        return [math.nan] * places
    errors = values.std(0, ddof=1) / math.sqrt(runs)
    margins: Sequence[float] = (student_quantile(runs - 1, CONFIDENCE) * errors).tolist()
    return margins
