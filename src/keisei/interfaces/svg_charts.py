"""Charts as SVG. A file is self-contained: it has a background, no scripts, and uses the fonts of the machine.
Curves have the colours of Okabe and Ito, which colour-blind people can distinguish. Their names are at their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich.cells import cell_len

from keisei.interfaces.charts import (
    NOTHING,
    Panel,
    Picture,
    Point,
    Series,
    end_label,
    is_known,
    last_known,
    segments,
    spread,
    thinned,
    tick_labels,
    x_ticks,
    y_ticks,
)

__all__ = ["COLOURS", "svg"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333")
GREY = "#8b949e"
DASHES = ("", "6 3", "2 3", "9 3 2 3")

WIDTH = 1000.0
EDGE = 28.0
"""Space between the edge of the picture and its content."""
ROW = 186.0
"""Height of a row of panels: the title, the plot, and the ticks below it."""
ABOVE, BELOW, LEFT = 28.0, 46.0, 46.0
"""Space above, below and to the left of a plot, inside its panel."""
TEXT = 11.0
LABEL_GAP = 13.0
LETTER = 0.6
"""The approximate width of a letter, as a share of its size. The exact font is not known here."""
FEW_POINTS = 40
"""The most points of a curve for which each point is marked."""
FEW_CURVES = 4
"""The most curves for which bands are drawn strongly; more of them would cover each other."""

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


def svg(picture: Picture) -> str:
    """Gives the picture as the text of an SVG file."""
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
    """Puts each panel into the first free place that is wide enough."""
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
    """Gives the room for labels beside the plots. Panels that end at the same x have the same width."""
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
    """Converts numbers to places in the picture."""

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
    most = max(2, int((inner.right - inner.left) / 2))  # more than one point in two pixels is not visible
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
    """Draws each label as near to the end of its curve as possible. If there is no room for all, the first curves
    have priority."""
    box = plot.box
    room = int((box.bottom - box.top) / LABEL_GAP) + 1
    wanted = [plot.y(last_known(points).y) for _, points in curves[:room]]
    for (series, _), y in zip(curves, spread(wanted, LABEL_GAP, box.bottom), strict=False):
        colour, label = _darkened(_colour(series.colour)), _safe(end_label(series, panel.percent))
        yield f'<text class="label" x="{box.right + 8:.1f}" y="{y + 4:.1f}" style="fill: {colour}">{label}</text>'


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number % len(COLOURS)]


def _darkened(colour: str) -> str:
    """Gives a darker colour for text, since thin letters need more contrast than lines."""
    return "#" + "".join(f"{int(int(colour[at : at + 2], 16) * 0.72):02x}" for at in (1, 3, 5))


def _corners(plot: _Plot, corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in corners)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    name = f' class="{kind}"' if kind else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}"{side}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    """Removes characters that XML does not allow."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))


def _fitting(text: str, size: float, taken: int = 0) -> str:
    room = int((WIDTH - 2 * EDGE) / (size * LETTER)) - taken
    return text if len(text) <= room else f"{text[: max(1, room - 1)]}…"
