"""The mean of curves, against a plain computation."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.interfaces.charts import Point
from keisei.interfaces.mean_curves import MOST_POINTS, mean_curve

STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
"""From a table: 97.5 % of Student's distribution, by the number of runs."""


@given(
    st.integers(2, 4).flatmap(
        lambda runs: st.lists(
            st.lists(st.floats(-100, 100), min_size=runs, max_size=runs), min_size=1, max_size=20
        )
    )
)
def test_mean_and_interval_at_common_places(rows: list[list[float]]) -> None:
    runs = len(rows[0])
    curves = [[Point(10 * place, row[run]) for place, row in enumerate(rows)] for run in range(runs)]
    found = mean_curve(curves)
    assert [point.x for point in found] == [10 * place for place in range(len(rows))]
    for point, row in zip(found, rows, strict=True):
        margin = STUDENT[runs] * stdev(row) / math.sqrt(runs)
        assert point.y == pytest.approx(fmean(row), abs=1e-9)
        assert point.high - point.y == pytest.approx(margin, rel=1e-3, abs=1e-9)
        assert point.y - point.low == pytest.approx(margin, rel=1e-3, abs=1e-9)


def test_curves_are_joined_where_all_are_known() -> None:
    first = [Point(0, 0.0), Point(10, 10.0), Point(20, math.nan), Point(30, 30.0)]
    second = [Point(5, 1.0), Point(25, 1.0), Point(45, 1.0)]
    found = mean_curve([first, second])
    assert [(point.x, point.y) for point in found] == [(5, 3.0), (10, 5.5), (25, 13.0), (30, 15.5)]


def test_one_run_has_no_interval_and_none_no_curve() -> None:
    (point,) = mean_curve([[Point(3, 0.5, 0.4, 0.6)]])  # the band of its games is not that of seeds
    assert (point.x, point.y) == (3, 0.5)
    assert math.isnan(point.low)
    assert math.isnan(point.high)
    assert (
        mean_curve([]) == mean_curve([[], [Point(0, 1)]]) == mean_curve([[Point(0, 1)], [Point(1, 1)]]) == []
    )


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    found = mean_curve([[Point(x + run, x) for x in range(5000)] for run in (0, 1)])
    assert len(found) == MOST_POINTS
    assert (found[0].x, found[-1].x) == (1, 4999)
