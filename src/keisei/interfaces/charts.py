"""Charts of curves over one x-axis: the data of a picture, and how numbers are prepared for it. This module does
not know what the numbers mean, or whether they are drawn into a file or on a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

__all__ = ["Heading", "Panel", "Picture", "Point", "Series"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333")
"""The colours of curves in files. A picture has no more runs than colours."""
LONGEST_LABEL = 24
NOTHING = "no numbers yet"
HUGE = 1e300
"""Larger values, and values that are not numbers, cannot be drawn and become gaps."""
UNITS = ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""Units for large numbers: the smallest number, the divisor, and the letter."""


class Point(NamedTuple):
    """A point of a curve, with its band if there is one. The curve has a gap where y is not a number."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Series:
    """One curve. Points are in the order of x."""

    points: Sequence[Point]
    label: str = ""
    colour: int | None = 0
    """The number of a colour of the drawing; None is grey, for curves in the background."""
    dash: int = 0
    """The dash pattern, which distinguishes curves of one colour."""

    @property
    def has_end(self) -> bool:
        return any(is_known(point.y) for point in self.points)


@dataclass(frozen=True)
class Panel:
    """Curves that share a y-axis."""

    title: str
    series: Sequence[Series]
    note: str = ""
    percent: bool = False
    low: float | None = None
    """Where the y-axis begins, unless a curve goes lower; None begins at the smallest value."""
    high: float | None = None
    columns: int = 1
    """Columns of the picture that it takes."""
    rows: int = 1
    """Rows of the picture that it takes."""


@dataclass(frozen=True)
class Heading:
    """A line below the title."""

    name: str = ""
    detail: str = ""
    colour: int | None = None
    """The colour of the curves that the line describes; None if it describes all."""


@dataclass(frozen=True)
class Picture:
    """Panels over one x-axis, laid out from left to right and from top to bottom."""

    title: str
    headings: Sequence[Heading]
    panels: Sequence[Panel]
    columns: int = 1
    x_name: str = ""
    marks: Sequence[tuple[float, str]] = ()
    """A second scale below the first panel: texts, and their places on the x-axis."""
    marks_name: str = ""

    @property
    def x_range(self) -> tuple[float, float]:
        known = [point.x for panel in self.panels for series in panel.series for point in series.points]
        low, high = min(known, default=0.0), max(known, default=0.0)
        return min(low, 0.0), high if high > min(low, 0.0) else 1.0


def end_label(series: Series, percent: bool) -> str:
    """Writes a curve's name and its last value."""
    return f"{tail(series.label, LONGEST_LABEL)} {shown(last_known(series.points).y, percent)}".strip()


def spread(wanted: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Moves places until neighbours are at least ``gap`` apart. They keep their order and end at ``bottom`` at the
    latest."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = [wanted[index] for index in order]
    for index in range(1, len(places)):
        places[index] = max(places[index], places[index - 1] + gap)
    limit = bottom
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    return [place for _, place in sorted(zip(order, places, strict=True))]


def is_known(value: float) -> bool:
    return abs(value) < HUGE


def last_known(points: Sequence[Point]) -> Point:
    """Finds the last point of a curve that can be drawn."""
    return next(point for point in reversed(points) if is_known(point.y))


def segments(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Yields the parts of a curve between its gaps."""
    for known, part in groupby(points, key=lambda point: is_known(point.y)):
        if known:
            yield list(part)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Reduces a curve to at most ``most`` points. Each stands for an equal part of the x-axis. It has the mean of
    the points there, and a band from the smallest to the largest value if they have no bands. The last point is
    kept as it is, since it is the newest."""
    if len(points) <= most:
        return list(points)
    first = points[0].x
    stretch = (points[-1].x - first) / (most - 1) or 1.0
    buckets: dict[int, list[Point]] = {}
    for point in points[:-1]:
        buckets.setdefault(min(most - 2, int((point.x - first) / stretch)), []).append(point)
    return [*map(_merged, buckets.values()), points[-1]]


def _merged(bucket: Sequence[Point]) -> Point:
    known = [point for point in bucket if is_known(point.y)]
    if not known:
        return Point(bucket[0].x, math.nan)
    x, y = fmean([point.x for point in known]), fmean([point.y for point in known])
    banded = [point for point in known if is_known(point.low) and is_known(point.high)]
    if banded:
        return Point(x, y, fmean([point.low for point in banded]), fmean([point.high for point in banded]))
    return Point(x, y, min(point.y for point in known), max(point.y for point in known))


def y_ticks(panel: Panel, most: int) -> list[float]:
    """Chooses round numbers whose first and last enclose all curves."""
    points = [point for series in panel.series for point in series.points if is_known(point.y)]
    known = [value for point in points for value in (point.y, point.low, point.high) if is_known(value)]
    known += [bound for bound in (panel.low, panel.high) if bound is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if high - low <= max(1e-9 * abs(high), 1 / HUGE):  # one value: it is in the middle, and 0 at the bottom
        low, high = (low - abs(low) / 10, high + abs(high) / 10) if abs(high) > 1 / HUGE else (0.0, 1.0)
    step = _round_step((high - low) / (most - 1))
    numbers = range(math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6) + 1)
    return [number * step for number in numbers]


def x_ticks(x_range: tuple[float, float], most: int) -> list[float]:
    """Chooses round numbers within the range."""
    low, high = x_range
    step = _round_step((high - low) / most)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step + 1e-6) + 1)]


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def tick_labels(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """Writes all numbers with the same unit, such as 0, 0.5M, 1M."""
    largest = max(map(abs, ticks))
    step = ticks[1] - ticks[0] if len(ticks) > 1 else largest or 1.0
    units = [(1 / size, sign) for least, size, sign in UNITS if largest >= least]
    scale, sign = (100.0, "%") if percent else (*units, (1.0, ""))[0]
    decimals = next((d for d in range(5) if math.isclose(round(step * scale, d), step * scale)), None)
    if decimals is None or largest * scale >= 1e6:
        return [f"{tick:.3g}" for tick in ticks]
    if scale < 1:
        return [f"{tick * scale:.{decimals + 3}g}{sign}" if tick else "0" for tick in ticks]
    return [f"{tick * scale:z,.{decimals}f}{sign}" if tick else f"0{sign}" for tick in ticks]


def shown(value: float, percent: bool = False) -> str:
    """Writes a value with about three digits."""
    if percent:
        return f"{100 * value:.3g}%"
    units = [(size, sign) for least, size, sign in UNITS if abs(value) >= least]
    size, sign = (*units, (1.0, ""))[0]
    if abs(value / size) >= 1e6:
        return f"{value:.3g}"
    return f"{value / size:,.0f}{sign}" if abs(value / size) >= 99.95 else f"{value / size:.3g}{sign}"


def tail(text: str, length: int) -> str:
    """Shortens a name at its beginning, since the end of a path says more."""
    return text if len(text) <= length else f"…{text[1 - length :]}"
