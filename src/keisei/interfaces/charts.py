"""Charts of curves over one x-axis: series in, SVG out. Nothing here knows what the numbers mean.

The SVG stands by itself: a background of its own, no scripts, and the fonts that a machine has. Curves have the
colours of Okabe and Ito, which colour-blind people can tell apart, and their names stand at their ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
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
LETTER = 0.6
"""The width of a letter, as a share of its size: about, since only who shows the picture knows the font."""
FEW_POINTS = 40
"""Up to which each is marked."""
FEW_CURVES = 4
"""Up to which bands may be strong: more of them would cover each other."""
NOTHING = "no numbers yet"
HUGE = 1e300
"""What is larger cannot be drawn, nor what is no number: it is a gap."""
UNITS = ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which number on, divided by what, and the sign for it."""

STYLE = f"""
text {{ font-family: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-size: {TEXT:.0f}px; fill: #656d76; }}
.title {{ font-size: 20px; font-weight: 600; fill: #1f2328; }}
.name {{ font-size: 13px; font-weight: 600; fill: #1f2328; }}
.note {{ font-size: {TEXT:.0f}px; font-weight: 400; fill: #656d76; }}
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
    height = max((box.bottom for _, box in places), default=top) - 8
    margins = _margins(picture, places)
    body = [*_header(picture)]
    for panel, box in places:
        body.extend(_panel(picture, panel, box, margins[box.right]))
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


def _margins(picture: Picture, places: Iterable[tuple[Panel, _Box]]) -> dict[float, float]:
    """Room for labels beside the plots; one width for all that end at the same x, so that they stand in line."""
    margins: dict[float, float] = {}
    for panel, box in places:
        labels = [end_label(series, panel.percent) for series in panel.series if series.has_end]
        if panel is picture.panels[0]:
            labels.append(picture.x_name)
        widest = TEXT * LETTER * max(map(cell_len, labels), default=0)
        margins[box.right] = max(margins.get(box.right, 0.0), widest + 24)
    return margins


def _header(picture: Picture) -> Iterator[str]:
    y = EDGE + 14
    yield _text(EDGE, y, _fitting(picture.title, 20), "title")
    for heading in picture.headings:
        y += 20
        x = EDGE
        if heading.colour is not None:
            yield f'<path class="curve" d="M{x:.0f} {y - 4:.1f}h22" stroke="{_colour(heading.colour)}"/>'
            x += 32
        name = f'<tspan class="name">{_safe(_fitting(heading.name, 13))}</tspan>  ' if heading.name else ""
        detail = _safe(_fitting(heading.detail, 13, len(heading.name) + 6))
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


def _panel(picture: Picture, panel: Panel, box: _Box, margin: float) -> Iterator[str]:
    inner = _Box(box.left + LEFT, box.top + ABOVE, box.right - margin, box.bottom - BELOW)
    rows = y_ticks(panel, max(4, round((inner.bottom - inner.top) / 45)))
    plot = _Plot(inner, picture.x_range, (rows[0], rows[-1]))
    most = max(2, int((inner.right - inner.left) / 2))  # more than one in two pixels cannot be seen
    curves = [(series, thinned(series.points, most)) for series in panel.series if series.has_end]
    yield from _panel_title(panel, box, any(len(points) < len(series.points) for series, points in curves))
    yield from _grid(plot, rows, panel.percent)
    yield from _x_axis(plot, picture, first=panel is picture.panels[0])
    if not curves:
        middle = ((inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2 + 4)
        yield _text(*middle, NOTHING, anchor="middle")
    opacity = 0.15 if len(curves) <= FEW_CURVES else 0.06
    for series, points in curves:
        yield from _band(plot, series, points, opacity)
    for series, points in curves:
        yield from _curve(plot, series, points)
    yield from _end_labels(plot, panel, curves)


def _panel_title(panel: Panel, box: _Box, thinned: bool) -> Iterator[str]:
    note = " · ".join(part for part in (panel.note, "range shaded" if thinned else "") if part)
    yield (
        f'<text class="name" x="{box.left:.1f}" y="{box.top + 14:.1f}">{_safe(panel.title)}'
        f'<tspan class="note" dx="8">{_safe(note)}</tspan></text>'
    )


def _grid(plot: _Plot, ticks: Sequence[float], percent: bool) -> Iterator[str]:
    box = plot.box
    for tick, label in zip(ticks, tick_labels(ticks, percent), strict=True):
        y = plot.y(tick)
        kind = "axis" if tick == ticks[0] else "grid"
        yield f'<path class="{kind}" d="M{box.left:.1f} {y:.1f}H{box.right:.1f}"/>'
        yield _text(box.left - 7, y + 4, label, anchor="end")


def _x_axis(plot: _Plot, picture: Picture, first: bool) -> Iterator[str]:
    box = plot.box
    ticks = x_ticks(picture.x_range, max(3, int((box.right - box.left) / 90)))
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        yield f'<path class="axis" d="M{plot.x(tick):.1f} {box.bottom:.1f}v4"/>'
        yield _text(plot.x(tick), box.bottom + 16, label, anchor="middle")
    if first:
        yield _text(box.right + 12, box.bottom + 16, picture.x_name)
        for x, label in picture.marks:
            yield _text(plot.x(x), box.bottom + 31, label, anchor="middle")
        if picture.marks:
            yield _text(box.right + 12, box.bottom + 31, picture.marks_name)


def _band(plot: _Plot, series: Series, points: Sequence[Point], opacity: float) -> Iterator[str]:
    paint = f'fill="{_colour(series.colour)}" fill-opacity="{opacity}"'
    for segment in segments(points):
        edges = [point for point in segment if is_known(point.low) and is_known(point.high)]
        if len(edges) == 1:  # a bar, since a band of one point has no width
            x, low, high = plot.x(edges[0].x), plot.y(edges[0].low), plot.y(edges[0].high)
            yield f'<rect x="{x - 2:.1f}" y="{high:.1f}" width="4" height="{low - high:.1f}" {paint}/>'
        elif edges:
            highs, lows = [(p.x, p.high) for p in edges], [(p.x, p.low) for p in reversed(edges)]
            yield f'<polygon points="{_corners(plot, highs + lows)}" {paint}/>'


def _curve(plot: _Plot, series: Series, points: Sequence[Point]) -> Iterator[str]:
    colour, dash = _colour(series.colour), DASHES[series.dash % len(DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    for segment in segments(points):
        if len(segment) > 1:
            corners = _corners(plot, [(point.x, point.y) for point in segment])
            yield f'<polyline class="curve" points="{corners}" stroke="{colour}"{dashes}/>'
        if len(segment) == 1 or len(points) <= FEW_POINTS:
            yield from (_dot(plot, point, 2.0, colour) for point in segment)
    yield _dot(plot, last_known(points), 3.0, colour)


def _dot(plot: _Plot, point: Point, radius: float, colour: str) -> str:
    return f'<circle cx="{plot.x(point.x):.1f}" cy="{plot.y(point.y):.1f}" r="{radius}" fill="{colour}"/>'


def _end_labels(plot: _Plot, panel: Panel, curves: Sequence[tuple[Series, list[Point]]]) -> Iterator[str]:
    """Each as near to its curve's end as the others allow. Those of the first curves, where not all have room."""
    box = plot.box
    room = int((box.bottom - box.top) / LABEL_GAP) + 1
    wanted = [plot.y(last_known(points).y) for _, points in curves[:room]]
    for (series, _), y in zip(curves, spread(wanted, LABEL_GAP, box.bottom), strict=False):
        colour, label = _darkened(_colour(series.colour)), _safe(end_label(series, panel.percent))
        yield f'<text class="label" x="{box.right + 8:.1f}" y="{y + 4:.1f}" style="fill: {colour}">{label}</text>'


def end_label(series: Series, percent: bool) -> str:
    """A curve's name and its last value."""
    return f"{tail(series.label, LONGEST_LABEL)} {shown(last_known(series.points).y, percent)}".strip()


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


def last_known(points: Sequence[Point]) -> Point:
    """The end of a curve that has one."""
    return next(point for point in reversed(points) if is_known(point.y))


def segments(points: Iterable[Point]) -> Iterator[list[Point]]:
    """The parts of a curve between its gaps."""
    for known, part in groupby(points, key=lambda point: is_known(point.y)):
        if known:
            yield list(part)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Not more than ``most`` points. Each stands for an equal stretch of the x-axis with the mean of what lies
    there, and with a band from the smallest to the largest value where the points have none of their own. Only the
    last point stands for itself: it is the news."""
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
    """Round numbers, the first and the last of which hold all curves between them."""
    points = [point for series in panel.series for point in series.points if is_known(point.y)]
    known = [value for point in points for value in (point.y, point.low, point.high) if is_known(value)]
    known += [bound for bound in (panel.low, panel.high) if bound is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if high - low <= max(1e-9 * abs(high), 1 / HUGE):  # one value: it lies in the middle, and 0 at the bottom
        low, high = (low - abs(low) / 10, high + abs(high) / 10) if abs(high) > 1 / HUGE else (0.0, 1.0)
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
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def tick_labels(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """All with the same unit, such as 0, 0.5M, 1M."""
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


def _fitting(text: str, size: float, taken: int = 0) -> str:
    room = int((WIDTH - 2 * EDGE) / (size * LETTER)) - taken
    return text if len(text) <= room else f"{text[: max(1, room - 1)]}…"
