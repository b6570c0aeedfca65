"""Charts on a terminal: the pictures of ``charts`` in braille characters, whose eight dots draw fine lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from keisei.interfaces.charts import (
    NOTHING,
    Panel,
    Picture,
    Series,
    end_label,
    is_known,
    last_known,
    segments,
    shown,
    spread,
    thinned,
    tick_labels,
    x_ticks,
    y_ticks,
)

__all__ = ["TerminalPicture"]

STYLES = ("cyan", "yellow", "green", "magenta", "red", "blue", "white")
"""Colours by the numbers of ``Series.colour``; the theme of the terminal makes them readable."""
WIDEST = 140
LINES = 6
"""Lines of a plot; a panel of several rows has twice as many."""
GUTTER = 3
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille character, by row and column of its dots."""
BLANK = 0x2800


class TerminalPicture:
    """Lays out a picture for rich: wide panels over the whole width, the others side by side."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        yield Text(self._picture.title, style="bold", no_wrap=True, overflow="ellipsis")
        for heading in self._picture.headings:
            line = Text(no_wrap=True, overflow="ellipsis")
            if heading.colour is not None:
                line.append("━━ ", style=_style(heading.colour))
            yield line.append(f"{heading.name}  " if heading.name else "").append(heading.detail, style="dim")
        yield Text()
        for row in _rows(self._picture):
            yield _side_by_side(self._picture, row, width)


def _rows(picture: Picture) -> Iterator[list[Panel]]:
    """Groups panels into rows: wide panels alone, the others in pairs."""
    waiting: list[Panel] = []
    for panel in picture.panels:
        if _is_wide(picture, panel):
            yield [panel]
        else:
            waiting.append(panel)
    for number in range(0, len(waiting), 2):
        yield waiting[number : number + 2]


def _side_by_side(picture: Picture, panels: Sequence[Panel], width: int) -> RenderableType:
    table = Table.grid(padding=(0, GUTTER, 0, 0))
    each = width if _is_wide(picture, panels[0]) else (width - GUTTER) // 2
    for _ in panels:
        table.add_column(width=each, no_wrap=True)
    table.add_row(*(_drawn(picture, panel, each) for panel in panels))
    return table


def _is_wide(picture: Picture, panel: Panel) -> bool:
    return panel.columns > 1 or picture.columns == 1


def _drawn(picture: Picture, panel: Panel, width: int) -> Text:
    lines = LINES if panel.rows == 1 else 2 * LINES
    ticks = y_ticks(panel, 3 if panel.rows == 1 else 5)
    scale = tick_labels(ticks, panel.percent)
    curves = [series for series in panel.series if series.has_end]
    labels = [_label(series, panel.percent) for series in curves[:lines]]
    left = max(map(len, scale))
    first = panel is picture.panels[0]
    beside = [*labels, picture.x_name, picture.marks_name] if first else labels
    columns = max(8, width - left - max(map(cell_len, beside), default=0) - 3)
    canvas = _Canvas(picture.x_range, (ticks[0], ticks[-1]), columns, lines)
    for series in reversed(curves):  # if two curves share a cell, the first one gives the colour
        canvas.draw(series)
    marked = {canvas.row(tick) // 4: label for tick, label in zip(ticks, scale, strict=True)}
    wanted = [canvas.row(last_known(series.points).y) // 4 for series in curves[:lines]]
    ends = dict(zip(map(round, spread(wanted, 1, lines - 1)), zip(curves, labels, strict=False), strict=True))
    text = Text(no_wrap=True)
    text.append(panel.title, style="bold").append(f"  {panel.note if curves else NOTHING}\n", style="dim")
    for line in range(lines):
        text.append(f"{marked.get(line, ''):>{left}} {'┤' if line in marked else '│'}", style="dim")
        text.append_text(canvas.line(line))
        if line in ends:
            series, label = ends[line]
            text.append(f" {label}", style=_style(series.colour))
        text.append("\n")
    return text.append_text(_x_axis(picture, left, columns, first))


def _label(series: Series, percent: bool) -> str:
    """Writes a label with the interval of the last value, since bands are not drawn here."""
    end = last_known(series.points)
    label = end_label(series, percent)
    if is_known(end.low) and is_known(end.high):
        label += f" ({shown(end.low, percent).removesuffix('%')}–{shown(end.high, percent)})"
    return label


class _Canvas:
    """A canvas of dots, in cells of 2 x 4. A cell has one colour, that of the last curve in it."""

    def __init__(
        self, x_range: tuple[float, float], y_range: tuple[float, float], columns: int, lines: int
    ) -> None:
        self._x_range, self._y_range = x_range, y_range
        self._columns, self._lines = columns, lines
        self._cells: dict[tuple[int, int], tuple[int, str]] = {}

    def column(self, x: float) -> int:
        low, high = self._x_range
        return round((x - low) / (high - low) * (2 * self._columns - 1))

    def row(self, y: float) -> int:
        """Computes the row of dots for a value; 0 is the highest."""
        low, high = self._y_range
        return round((high - y) / (high - low) * (4 * self._lines - 1))

    def draw(self, series: Series) -> None:
        for segment in segments(thinned(series.points, 2 * self._columns)):
            places = [(self.column(point.x), self.row(point.y)) for point in segment]
            for start, end in pairwise([places[0], *places]):
                for x, y in _dots_between(start, end):
                    dots, _ = self._cells.get((y // 4, x // 2), (0, ""))
                    self._cells[y // 4, x // 2] = dots | DOTS[y % 4][x % 2], _style(series.colour)

    def line(self, line: int) -> Text:
        text = Text()
        for column in range(self._columns):
            dots, style = self._cells.get((line, column), (0, ""))
            text.append(chr(BLANK + dots) if dots else " ", style=style)
        return text


def _dots_between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yields the dots from start to end, both included."""
    (x, y), (to_x, to_y) = start, end
    steps = max(abs(to_x - x), abs(to_y - y), 1)
    for step in range(steps + 1):
        yield x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)


def _x_axis(picture: Picture, left: int, columns: int, first: bool) -> Text:
    """Draws the x-scales; the first panel also names them."""
    ticks = x_ticks(picture.x_range, max(2, columns // 12))
    scales = [(list(zip(ticks, tick_labels(ticks), strict=True)), picture.x_name)]
    if first and picture.marks:
        scales.append((list(picture.marks), picture.marks_name))
    rule = _placed([(tick, "┬") for tick in ticks], picture.x_range, columns, "─")
    text = Text(f"{'':{left}} └{rule}\n", style="dim")
    for marks, name in scales:
        line = _placed(marks, picture.x_range, columns, " ")
        text.append(f"{'':{left}}  {line} {name if first else ''}\n")
    return text


def _placed(
    marks: Iterable[tuple[float, str]], x_range: tuple[float, float], columns: int, blank: str
) -> str:
    """Writes a line with each text centred at its place."""
    low, high = x_range
    line = blank * columns
    for x, text in marks:
        begin = round((x - low) / (high - low) * (columns - 1)) - len(text) // 2
        begin = max(0, min(begin, columns - len(text)))
        line = line[:begin] + text + line[begin + len(text) :]
    return line


def _style(colour: int | None) -> str:
    return "bright_black" if colour is None else STYLES[colour % len(STYLES)]
