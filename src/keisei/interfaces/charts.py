"""Charts of curves over one x-axis: series in, SVG out. Nothing here knows what the numbers mean.

The SVG stands by itself: a background of its own, no scripts, and the fonts that a machine has. Curves have the
colours of Okabe and Ito, which colour-blind people can tell apart, and their names stand at their ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.cells import cell_len

__all__ = ["COLOURS", "Heading", "Panel", "Picture", "Point", "Series", "svg"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333")
GREY = "#8b949e"
DASHES = ("", "6 3", "2 3", "9 3 2 3")

WIDTH = 1000.0
EDGE = 28.0
"""Between the picture's edge and what is in it."""
ROW = 186.0
"""Height of a row of panels: the title, the plot, and the ticks below it."""
ABOVE, BELOW, LEFT = 28.0, 46.0, 46.0
"""Of a plot, inside its panel."""
TEXT = 11.0
LABEL_GAP = 13.0
LONGEST_LABEL = 24
FEW = 40
"""Points up to which each is marked."""
HUGE = 1e300
"""What is larger cannot be drawn, nor what is no number: it is a gap."""
UNITS = ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which number on, divided by what, and the sign for it."""

STYLE = f"""
text {{ font-family: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-size: {TEXT:.0f}px; fill: #656d76; }}
.title {{ font-size: 20px; font-weight: 600; fill: #1f2328; }}
.name {{ font-size: 13px; font-weight: 600; fill: #1f2328; }}
.detail {{ font-size: 13px; }}
.grid {{ stroke: #e7eaee; }}
.axis {{ stroke: #b9c0c8; }}
.curve {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }}
.label {{ font-weight: 600; }}
"""


class Point(NamedTuple):
    """A point of a curve, with its band where there is one. Where y is not a number, the curve has a gap."""

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
    """Which of ``COLOURS``; None is grey, for what is not the matter."""
    dash: int = 0
    """Which of ``DASHES``: tells curves of one colour apart."""


@dataclass(frozen=True)
class Panel:
    """Curves that share a y-axis."""

    title: str
    series: Sequence[Series]
    note: str = ""
    percent: bool = False
    low: float | None = None
    """Where the y-axis begins, unless a curve goes beyond; None begins at the smallest value."""
    high: float | None = None
    columns: int = 1
    """How many columns of the picture it takes, and below how many rows."""
    rows: int = 1


@dataclass(frozen=True)
class Heading:
    """A line below the title."""

    name: str = ""
    detail: str = ""
    colour: int | None = None
    """That of the curves which the line is about; None where it is about all."""


@dataclass(frozen=True)
class Picture:
    """Panels over one x-axis, laid out from left to right and from top to bottom."""

    title: str
    headings: Sequence[Heading]
    panels: Sequence[Panel]
    columns: int = 1
    x_name: str = ""
    marks: Sequence[tuple[float, str]] = ()
    """A second scale below the first panel: texts, and where on the x-axis they belong."""
    marks_name: str = ""

    @property
    def x_range(self) -> tuple[float, float]:
        known = [point.x for panel in self.panels for series in panel.series for point in series.points]
        low, high = min(known, default=0.0), max(known, default=0.0)
        return min(low, 0.0), high if high > min(low, 0.0) else 1.0


def svg(picture: Picture) -> str:
    """The picture as the text of an SVG file."""
    top = EDGE + 34 + 20 * len(picture.headings)
    places = list(_places(picture, top))
    height = max((box.bottom for _, box in places), default=top) + EDGE - 18
    margins = _margins(places)
    body = [*_header(picture)]
    for number, (panel, box) in enumerate(places):
        body.extend(_panel(picture, panel, box, margins[box.right], first=number == 0))
    size = f'width="{WIDTH:.0f}" height="{height:.0f}" viewBox="0 0 {WIDTH:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{_safe(picture.title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1:.0f}" height="{height - 1:.0f}" rx="8" fill="#ffffff" '
            f'stroke="#d8dee4"/>',
            *body,
            "</svg>\n",
        ]
    )


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float


def _places(picture: Picture, top: float) -> Iterator[tuple[Panel, _Box]]:
    """Each panel goes to the first free place that is wide enough."""
    taken: set[tuple[int, int]] = set()
    width = (WIDTH - 2 * EDGE) / picture.columns
    for panel in picture.panels:
        wide = min(panel.columns, picture.columns)
        row, column = 0, 0
        while column + wide > picture.columns or any((row, column + step) in taken for step in range(wide)):
            row, column = (row + 1, 0) if column + wide >= picture.columns else (row, column + 1)
        taken |= {(row + down, column + step) for down in range(panel.rows) for step in range(wide)}
        left, above = EDGE + column * width, top + row * ROW
        yield panel, _Box(left, above, left + wide * width, above + panel.rows * ROW)


def _margins(places: Iterable[tuple[Panel, _Box]]) -> dict[float, float]:
    """Room for labels beside the plots; one width for all that end at the same x, so that they stand in line."""
    margins: dict[float, float] = {}
    for panel, box in places:
        widest = max((_width(label) for _, label in _labels(panel)), default=0.0)
        margins[box.right] = max(margins.get(box.right, 36.0), widest + 20)
    return margins


def _header(picture: Picture) -> Iterator[str]:
    y = EDGE + 14
    yield _text(EDGE, y, _fitting(picture.title, 20), "title")
    for heading in picture.headings:
        y += 20
        x = EDGE
        if heading.colour is not None:
            yield (
                f'<path class="curve" d="M{EDGE:.0f} {y - 4:.1f}h22" stroke="{_colour(heading.colour)}" '
                f'stroke-width="3"/>'
            )
            x += 32
        name = f'<tspan class="name">{_safe(heading.name)}</tspan>  ' if heading.name else ""
        detail = _safe(_fitting(heading.detail, 13, len(heading.name) + 4))
        yield f'<text class="detail" x="{x:.1f}" y="{y:.1f}" xml:space="preserve">{name}{detail}</text>'


@dataclass(frozen=True)
class _Plot:
    """Where numbers are on the paper."""

    box: _Box
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.box.left + (value - low) / (high - low) * (self.box.right - self.box.left)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.box.bottom - (value - low) / (high - low) * (self.box.bottom - self.box.top)


def _panel(picture: Picture, panel: Panel, box: _Box, margin: float, first: bool) -> Iterator[str]:
    inner = _Box(box.left + LEFT, box.top + ABOVE, box.right - margin, box.bottom - BELOW)
    rows = y_ticks(panel, max(3, round((inner.bottom - inner.top) / 45)))
    plot = _Plot(inner, picture.x_range, (rows[0], rows[-1]))
    note = (
        f'<tspan dx="8" font-size="{TEXT:.0f}" font-weight="400" fill="#656d76">{_safe(panel.note)}</tspan>'
    )
    yield f'<text class="name" x="{box.left:.1f}" y="{box.top + 14:.1f}">{_safe(panel.title)}{note}</text>'
    yield from _grid(plot, rows, panel.percent)
    yield from _x_axis(plot, picture, first)
    if not any(is_known(point.y) for series in panel.series for point in series.points):
        middle = ((inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2 + 4)
        yield _text(*middle, "no numbers yet", anchor="middle")
    curves = [(series, _thinned_to(plot, series)) for series in panel.series]
    for series, points in curves:
        yield from _band(plot, series, points)
    for series, points in curves:
        yield from _curve(plot, series, points)
    yield from _end_labels(plot, panel)


def _grid(plot: _Plot, ticks: Sequence[float], percent: bool) -> Iterator[str]:
    box = plot.box
    for tick, label in zip(ticks, tick_labels(ticks, percent), strict=True):
        y = plot.y(tick)
        kind = "axis" if tick == ticks[0] else "grid"
        yield f'<path class="{kind}" d="M{box.left:.1f} {y:.1f}H{box.right:.1f}"/>'
        yield _text(box.left - 7, y + 4, label, anchor="end")


def _x_axis(plot: _Plot, picture: Picture, first: bool) -> Iterator[str]:
    box = plot.box
    ticks = x_ticks(picture.x_range, max(2, int((box.right - box.left) / 75)))
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        yield f'<path class="axis" d="M{plot.x(tick):.1f} {box.bottom:.1f}v4"/>'
        yield _text(plot.x(tick), box.bottom + 16, label, anchor="middle")
    if first:
        yield _text(box.right + 12, box.bottom + 16, picture.x_name)
        for x, label in picture.marks:
            yield _text(plot.x(x), box.bottom + 31, label, anchor="middle")
        if picture.marks:
            yield _text(box.right + 12, box.bottom + 31, picture.marks_name)


def _thinned_to(plot: _Plot, series: Series) -> list[Point]:
    """No more points than can be seen: one for two pixels."""
    return thinned(series.points, max(2, int((plot.box.right - plot.box.left) / 2)))


def _band(plot: _Plot, series: Series, points: Sequence[Point]) -> Iterator[str]:
    paint = f'fill="{_colour(series.colour)}" fill-opacity="0.15"'
    for segment in segments(points):
        edges = [point for point in segment if is_known(point.low) and is_known(point.high)]
        if len(edges) == 1:  # a bar, since a band of one point has no width
            x, low, high = plot.x(edges[0].x), plot.y(edges[0].low), plot.y(edges[0].high)
            yield f'<rect x="{x - 2:.1f}" y="{high:.1f}" width="4" height="{low - high:.1f}" {paint}/>'
        elif edges:
            corners = [(point.x, point.high) for point in edges] + [
                (point.x, point.low) for point in reversed(edges)
            ]
            yield f'<polygon points="{_corners(plot, corners)}" {paint}/>'


def _curve(plot: _Plot, series: Series, points: Sequence[Point]) -> Iterator[str]:
    colour, dash = _colour(series.colour), DASHES[series.dash % len(DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    last = None
    for segment in segments(points):
        if len(segment) > 1:
            corners = _corners(plot, [(point.x, point.y) for point in segment])
            yield f'<polyline class="curve" points="{corners}" stroke="{colour}"{dashes}/>'
        if len(segment) == 1 or len(points) <= FEW:
            yield from (_dot(plot, point, 2.0, colour) for point in segment)
        last = segment[-1]
    if last is not None:
        yield _dot(plot, last, 3.0, colour)


def _dot(plot: _Plot, point: Point, radius: float, colour: str) -> str:
    return f'<circle cx="{plot.x(point.x):.1f}" cy="{plot.y(point.y):.1f}" r="{radius}" fill="{colour}"/>'


def _end_labels(plot: _Plot, panel: Panel) -> Iterator[str]:
    """Each as near to its curve's end as the others allow."""
    box = plot.box
    labels = _labels(panel)[: int((box.bottom - box.top) / LABEL_GAP) + 1]
    wanted = [plot.y(last_known(series).y) for series, _ in labels]
    for (series, label), y in zip(labels, spread(wanted, LABEL_GAP, box.bottom), strict=True):
        colour = _darkened(_colour(series.colour))
        yield (
            f'<text class="label" x="{box.right + 8:.1f}" y="{y + 4:.1f}" style="fill: {colour}">{_safe(label)}</text>'
        )


def _labels(panel: Panel) -> list[tuple[Series, str]]:
    """The curves that have an end, with their names and last values."""
    ending = [series for series in panel.series if is_known(last_known(series).y)]
    return [
        (series, f"{tail(series.label, LONGEST_LABEL)} {shown(last_known(series).y, panel.percent)}".strip())
        for series in ending
    ]


def spread(wanted: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Places that are at least ``gap`` apart, near the wanted ones and in their order, down to ``bottom``."""
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


def last_known(series: Series) -> Point:
    """The end of the curve; not a number where it has none."""
    return next((point for point in reversed(series.points) if is_known(point.y)), Point(0.0, math.nan))


def segments(points: Iterable[Point]) -> Iterator[list[Point]]:
    """The parts of a curve between its gaps."""
    for known, part in groupby(points, key=lambda point: is_known(point.y)):
        if known:
            yield list(part)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Not more than ``most`` points. Each stands for an equal stretch of the x-axis with the mean of what lies
    there, and with a band from the smallest to the largest value where the points have none of their own."""
    if len(points) <= most:
        return list(points)
    first = points[0].x
    stretch = (points[-1].x - first) / most or 1.0
    buckets: dict[int, list[Point]] = {}
    for point in points:
        buckets.setdefault(min(most - 1, int((point.x - first) / stretch)), []).append(point)
    return [_merged(bucket) for bucket in buckets.values()]


def _merged(bucket: Sequence[Point]) -> Point:
    known = [point for point in bucket if is_known(point.y)]
    if not known:
        return Point(bucket[0].x, math.nan)
    x, y = _mean([point.x for point in known]), _mean([point.y for point in known])
    banded = [point for point in known if is_known(point.low) and is_known(point.high)]
    if banded:
        return Point(x, y, _mean([point.low for point in banded]), _mean([point.high for point in banded]))
    return Point(x, y, min(point.y for point in known), max(point.y for point in known))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def y_ticks(panel: Panel, most: int) -> list[float]:
    """Round numbers, the first and the last of which hold all curves between them."""
    points = [point for series in panel.series for point in series.points if is_known(point.y)]
    known = [value for point in points for value in (point.y, point.low, point.high) if is_known(value)]
    known += [bound for bound in (panel.low, panel.high) if bound is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value only: it lies in the middle, and 0 below
        low, high = (low - abs(low) / 10, high + abs(high) / 10) if high else (0.0, 1.0)
    step = _round_step((high - low) / (most - 1))
    numbers = range(math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6) + 1)
    return [number * step for number in numbers]


def x_ticks(x_range: tuple[float, float], most: int) -> list[float]:
    """Round numbers within the range."""
    low, high = x_range
    step = _round_step((high - low) / most)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step + 1e-6) + 1)]


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= least * (1 - 1e-9))


def tick_labels(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """All with the same unit and the same number of decimals, such as 0, 0.5M, 1M."""
    largest = max(map(abs, ticks))
    step = ticks[1] - ticks[0] if len(ticks) > 1 else largest or 1.0
    units = [(1 / size, sign) for least, size, sign in UNITS if largest >= least]
    scale, sign = (100.0, "%") if percent else (*units, (1.0, ""))[0]
    decimals = next((d for d in range(5) if math.isclose(round(step * scale, d), step * scale)), None)
    if decimals is None or largest * scale >= 1e6:
        return [f"{tick:.3g}" for tick in ticks]
    return [f"{tick * scale:z,.{decimals}f}{sign}" if tick or percent else "0" for tick in ticks]


def shown(value: float, percent: bool = False) -> str:
    """A value in about three digits."""
    if percent:
        return f"{100 * value:.3g}%"
    units = [(size, sign) for least, size, sign in UNITS if abs(value) >= least]
    size, sign = (*units, (1.0, ""))[0]
    if abs(value / size) >= 1e6:
        return f"{value:.3g}"
    return f"{value / size:,.0f}{sign}" if abs(value / size) >= 99.95 else f"{value / size:.3g}{sign}"


def tail(text: str, length: int) -> str:
    """The end of a path says more than its beginning."""
    return text if len(text) <= length else f"…{text[1 - length :]}"


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number % len(COLOURS)]


def _darkened(colour: str) -> str:
    """Thin letters need more contrast than lines."""
    return "#" + "".join(f"{int(int(colour[at : at + 2], 16) * 0.72):02x}" for at in (1, 3, 5))


def _corners(plot: _Plot, corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in corners)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    name = f' class="{kind}"' if kind else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}"{side}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    """Without what XML does not allow."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))


def _width(text: str, size: float = TEXT) -> float:
    """About: only the machine that shows the picture knows its font."""
    return cell_len(text) * size * 0.6


def _fitting(text: str, size: float, taken: int = 0) -> str:
    room = int((WIDTH - 2 * EDGE) / (size * 0.6)) - taken
    return text if len(text) <= room else f"{text[: max(1, room - 1)]}…"
