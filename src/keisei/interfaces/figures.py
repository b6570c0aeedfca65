"""Charts as files, drawn by matplotlib: PNG, SVG and PDF.

Curves have the colours of Okabe and Ito, which colour-blind people can distinguish. Their names are at their ends.
Places are counted in pixels from the top left corner, and ``_Page`` converts them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from matplotlib.transforms import Affine2D
from rich.cells import cell_len

from keisei.interfaces.charts import (
    COLOURS,
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

__all__ = ["figure_of", "image"]

GREY, INK, FAINT = "#8b949e", "#1f2328", "#656d76"
GRID, AXIS, EDGE_COLOUR = "#e7eaee", "#b9c0c8", "#d8dee4"
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1.4, 2)), (0, (6, 2, 1.4, 2)))

DPI = 100
SHARP_DPI = 200
"""Dots in an inch of a PNG."""
WIDTH = 1000.0
EDGE = 28.0
"""Space between the edge of the picture and its content."""
ROW = 186.0
"""Height of a row of panels: the title, the plot, and the ticks below it."""
ABOVE, BELOW, LEFT = 28.0, 46.0, 46.0
"""Space above, below and to the left of a plot, inside its panel."""
TEXT, NAME, TITLE = 11.0, 13.0, 20.0
"""Sizes of letters."""
LABEL_GAP = 13.0
LETTER = 0.6
"""The approximate width of a letter, as a share of its size."""
FEW_POINTS = 40
"""The most points of a curve for which each point is marked."""
FEW_CURVES = 4
"""The most curves for which bands are drawn strongly; more of them would cover each other."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "keisei",
    "pdf.fonttype": 42,
    "path.simplify": False,
    "axes.unicode_minus": False,
}


def image(picture: Picture, kind: str) -> bytes:
    """Draws a picture as the content of a ``png``, ``svg`` or ``pdf`` file."""
    file = io.BytesIO()
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a font may lack a letter of a name
        figure_of(picture).savefig(file, format=kind, dpi=SHARP_DPI if kind == "png" else DPI, metadata=date)
    return file.getvalue()


def figure_of(picture: Picture) -> Figure:
    """Draws the picture."""
    top = EDGE + 34 + 20 * len(picture.headings)
    places = list(_places(picture, top))
    page = _Page(max((box.bottom for _, box in places), default=top) - 8)
    margins = _margins(picture, places)
    page.frame()
    _header(page, picture)
    for panel, box in places:
        _panel(page, picture, panel, box, margins[box.right])
    return page.figure


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


class _Page:
    """A figure whose places are pixels from the top left corner."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.figure = Figure((WIDTH / DPI, height / DPI), dpi=DPI, facecolor="white")

    def frame(self) -> None:
        """Draws the edge of the picture."""
        edge = FancyBboxPatch(
            (0.5, 0.5),
            WIDTH - 1,
            self.height - 1,
            boxstyle="round,pad=0,rounding_size=8",
            transform=Affine2D().scale(1 / DPI) + self.figure.dpi_scale_trans,
            facecolor="white",
            edgecolor=EDGE_COLOUR,
            zorder=-1,  # below the plots
            linewidth=0.72,
        )
        self.figure.add_artist(edge)

    def text(self, x: float, y: float, text: str, size: float = TEXT, **style: Any) -> Text:
        """Writes a text whose line stands at y."""
        style = {"color": FAINT, "va": "baseline", **style}
        where = (x / WIDTH, 1 - y / self.height)
        return self.figure.text(*where, _safe(text), size=_points(size), parse_math=False, **style)

    def line(self, left: float, right: float, y: float, colour: str) -> None:
        across = [left / WIDTH, right / WIDTH], [1 - y / self.height] * 2
        self.figure.add_artist(Line2D(*across, color=colour, linewidth=1.5, solid_capstyle="round"))

    def axes(self, box: _Box) -> Axes:
        place = (
            box.left / WIDTH,
            1 - box.bottom / self.height,
            box.width / WIDTH,
            box.height / self.height,
        )
        return self.figure.add_axes(place)


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
    """Computes the margin for labels beside the plots. Panels that end at the same x have the same width."""
    margins: dict[float, float] = {}
    for panel, box in places:
        labels = [end_label(series, panel.percent) for series in panel.series if series.has_end]
        if panel is picture.panels[0]:
            labels.append(picture.x_name)
        widest = TEXT * LETTER * max(map(cell_len, labels), default=0)
        margins[box.right] = max(margins.get(box.right, 0.0), widest + 24)
    return margins


def _header(page: _Page, picture: Picture) -> None:
    y = EDGE + 14
    page.text(EDGE, y, _fitting(picture.title, TITLE), TITLE, weight="bold", color=INK)
    for heading in picture.headings:
        y += 20
        x = EDGE
        if heading.colour is not None:
            page.line(x, x + 22, y - 4, _colour(heading.colour))
            x += 32
        if heading.name:
            name = page.text(x, y, _fitting(heading.name, NAME), NAME, weight="bold", color=INK)
            x += name.get_window_extent().width + 10
        page.text(x, y, _fitting(heading.detail, NAME, len(heading.name) + 6), NAME)


def _panel(page: _Page, picture: Picture, panel: Panel, box: _Box, margin: float) -> None:
    inner = _Box(box.left + LEFT, box.top + ABOVE, box.right - margin, box.bottom - BELOW)
    most = max(2, int(inner.width / 2))  # more than one point in two pixels is not visible
    curves = [(series, thinned(series.points, most)) for series in panel.series if series.has_end]
    _panel_title(page, panel, box, any(len(points) < len(series.points) for series, points in curves))
    axes = page.axes(inner)
    rows = y_ticks(panel, max(4, round(inner.height / 45)))
    _scales(axes, picture, panel, inner, rows)
    if panel is picture.panels[0]:
        _names_of_scales(page, axes, picture, inner)
    if not curves:
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="bottom", color=FAINT)
    opacity = 0.15 if len(curves) <= FEW_CURVES else 0.06
    for series, points in curves:
        _band(axes, series, points, opacity)
        _curve(axes, series, points)
    _end_labels(page, panel, inner, (rows[0], rows[-1]), curves)


def _panel_title(page: _Page, panel: Panel, box: _Box, is_thinned: bool) -> None:
    title = page.text(box.left, box.top + 14, panel.title, NAME, weight="bold", color=INK)
    note = " · ".join(part for part in (panel.note, "range shaded" if is_thinned else "") if part)
    page.text(box.left + title.get_window_extent().width + 8, box.top + 14, note)


def _scales(axes: Axes, picture: Picture, panel: Panel, box: _Box, rows: Sequence[float]) -> None:
    axes.set_xlim(*picture.x_range)
    axes.set_ylim(rows[0], rows[-1])
    axes.set_yticks(rows, tick_labels(rows, panel.percent))
    columns = x_ticks(picture.x_range, max(3, int(box.width / 90)))
    axes.set_xticks(columns, tick_labels(columns))
    axes.grid(axis="y", color=GRID, linewidth=0.72)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0, pad=5, labelsize=_points(TEXT), labelcolor=FAINT)
    axes.tick_params(axis="x", length=3, color=AXIS, labelsize=_points(TEXT), labelcolor=FAINT)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(AXIS)


def _names_of_scales(page: _Page, axes: Axes, picture: Picture, box: _Box) -> None:
    """Names the x-axis beside the first panel, and draws the second scale below it."""
    low, high = picture.x_range
    page.text(box.right + 12, box.bottom + 16, picture.x_name)
    for x, label in picture.marks:
        page.text(box.left + (x - low) / (high - low) * box.width, box.bottom + 31, label, ha="center")
    if picture.marks:
        page.text(box.right + 12, box.bottom + 31, picture.marks_name)


def _band(axes: Axes, series: Series, points: Sequence[Point], opacity: float) -> None:
    paint: dict[str, Any] = {"color": _colour(series.colour), "alpha": opacity}
    for segment in segments(points):
        edges = [point for point in segment if is_known(point.low) and is_known(point.high)]
        if len(edges) == 1:  # a bar, since a band of one point has no width
            axes.plot([edges[0].x] * 2, [edges[0].low, edges[0].high], linewidth=3, **paint)
        elif edges:
            x, lows, highs = ([getattr(p, name) for p in edges] for name in ("x", "low", "high"))
            axes.fill_between(x, lows, highs, linewidth=0, **paint)


def _curve(axes: Axes, series: Series, points: Sequence[Point]) -> None:
    colour, dash = _colour(series.colour), DASHES[series.dash % len(DASHES)]
    for segment in segments(points):
        x, y = [point.x for point in segment], [point.y for point in segment]
        if len(segment) > 1:
            axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.3, clip_on=False)
        if len(segment) == 1 or len(points) <= FEW_POINTS:
            axes.plot(x, y, "o", color=colour, markersize=2.6, clip_on=False)
    end = last_known(points)
    axes.plot([end.x], [end.y], "o", color=colour, markersize=4, clip_on=False)


def _end_labels(
    page: _Page,
    panel: Panel,
    box: _Box,
    y_range: tuple[float, float],
    curves: Sequence[tuple[Series, list[Point]]],
) -> None:
    """Writes each label as near to the end of its curve as possible. If there is no room for all, the first curves
    have priority."""
    low, high = y_range
    room = int(box.height / LABEL_GAP) + 1
    ends = [last_known(points).y for _, points in curves[:room]]
    wanted = [box.bottom - (y / 2 - low / 2) / (high / 2 - low / 2) * box.height for y in ends]
    for (series, _), y in zip(curves, spread(wanted, LABEL_GAP, box.bottom), strict=False):
        label, colour = end_label(series, panel.percent), _darkened(_colour(series.colour))
        page.text(box.right + 8, y + 4, label, weight="bold", color=colour)


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number % len(COLOURS)]


def _darkened(colour: str) -> str:
    """Computes a darker colour for text, since thin letters need more contrast than lines."""
    return "#" + "".join(f"{int(int(colour[at : at + 2], 16) * 0.72):02x}" for at in (1, 3, 5))


def _points(pixels: float) -> float:
    """Converts a size in pixels to the points of fonts."""
    return 72 * pixels / DPI


def _safe(text: str) -> str:
    """Removes characters that files and fonts do not have."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _fitting(text: str, size: float, taken: int = 0) -> str:
    room = int((WIDTH - 2 * EDGE) / (size * LETTER)) - taken
    return text if len(text) <= room else f"{text[: max(1, room - 1)]}…"
