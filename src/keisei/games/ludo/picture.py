"""Pictures of a board: one as text, and one as SVG for light and dark pages.

The board has 15 x 15 cells. Red starts at the bottom left and moves up; play goes clockwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import ceil, cos, pi, sin, sqrt
from typing import TYPE_CHECKING, TypeAlias

from keisei.games.ludo.squares import HOME, LOOP, QUARTER, SAFE_SQUARES, START, YARD, corner, square_of

if TYPE_CHECKING:
    from keisei.games.ludo.board import LudoBoard

__all__ = ["board_svg", "board_text"]

Cell: TypeAlias = tuple[float, float]
"""Column and row of a place, from 0 at the top left; the middle of the board is (7, 7)."""

COLOURS = ("Red", "Green", "Yellow", "Blue")
"""The colours of the corners, in the direction of play. Two players are red and yellow."""
_SIZE = 15

# All places of red's quarter; the others are the same, turned.
_QUARTER: tuple[Cell, ...] = (
    *((6, row) for row in (13, 12, 11, 10, 9)),
    *((column, 8) for column in (5, 4, 3, 2, 1, 0)),
    (0, 7),
    (0, 6),
)
_COLUMN: tuple[Cell, ...] = tuple((7, row) for row in (13, 12, 11, 10, 9))
_SLOTS: tuple[Cell, ...] = ((1.5, 10.5), (3.5, 10.5), (1.5, 12.5), (3.5, 12.5))
_MIDDLE_OF_HOME: Cell = (7, 8)


def _turned(cell: Cell, quarters: int) -> Cell:
    """Turns a place clockwise about the middle of the board."""
    column, row = cell
    for _ in range(quarters):
        column, row = _SIZE - 1 - row, column
    return column, row


_LOOP = [_turned(_QUARTER[square % QUARTER], square // QUARTER) for square in range(LOOP)]


def _cell_of(seat: int, token: int, position: int, players: int) -> Cell:
    quarters = corner(seat, players)
    square = square_of(seat, position, players)
    if square is not None:
        return _LOOP[square]
    if position == YARD:
        return _turned(_SLOTS[token], quarters)
    column = _MIDDLE_OF_HOME if position == HOME else _COLUMN[position - HOME + len(_COLUMN)]
    return _turned(column, quarters)


def _places(board: LudoBoard) -> dict[Cell, list[tuple[int, int]]]:
    """Collects the (seat, token) pairs of each place that is not empty."""
    places: dict[Cell, list[tuple[int, int]]] = defaultdict(list)
    for seat, positions in enumerate(board.tokens):
        for token, position in enumerate(positions):
            places[_cell_of(seat, token, position, board.players)].append((seat, token))
    return places


def colour(seat: int, players: int) -> str:
    return COLOURS[corner(seat, players)]


def _state(board: LudoBoard) -> str:
    """Says whose turn it is, or who has won."""
    if board.winner is not None:
        return f"{colour(board.winner, board.players)} has won"
    return f"{colour(board.to_move, board.players)} to move"


# The text.


def board_text(board: LudoBoard) -> str:
    """Draws the board as text.

    ``R2`` is red's token 2, ``3R`` are three of red's tokens, and ``RY`` are tokens of both. ``*`` is a safe square.
    The lines below give every token's position.
    """
    signs = [["  "] * _SIZE for _ in range(_SIZE)]
    for square, (column, row) in enumerate(_LOOP):
        signs[int(row)][int(column)] = " *" if square in SAFE_SQUARES else " ."
    for seat in range(board.players):
        for cell in _COLUMN:
            column, row = _turned(cell, corner(seat, board.players))
            signs[int(row)][int(column)] = f" {_letter(seat, board.players).lower()}"
    for (column, row), tokens in _places(board).items():
        signs[int(row)][int(column)] = _sign(tokens, board.players)
    lines = [" ".join(row).rstrip() for row in signs]
    dice = "" if board.winner is not None else f" with {' '.join(map(str, board.dice))}"
    return "\n".join([*lines, "", *_lists(board), f"{_state(board)}{dice}"])


def _letter(seat: int, players: int) -> str:
    return colour(seat, players)[0]


def _sign(tokens: list[tuple[int, int]], players: int) -> str:
    seats = sorted({seat for seat, _ in tokens})
    if len(seats) > 2:
        return "##"
    if len(seats) == 2:
        return "".join(_letter(seat, players) for seat in seats)
    letter = _letter(seats[0], players)
    return f"{letter}{tokens[0][1]}" if len(tokens) == 1 else f"{len(tokens)}{letter}"


def _lists(board: LudoBoard) -> Iterator[str]:
    for seat, positions in enumerate(board.tokens):
        names = [{YARD: "yard", HOME: "home"}.get(position, str(position)) for position in positions]
        yield f"{colour(seat, board.players):<8}" + " ".join(f"{name:>4}" for name in names)


# The SVG. Lengths are in pixels; the drawing scales.
_CELL = 40
_MARGIN = 16
_STRIP = 64
"""Height of the strip below the board, which has the dice."""
_BOARD = _SIZE * _CELL
_WIDTH, _HEIGHT = _BOARD + 2 * _MARGIN, _BOARD + 2 * _MARGIN + _STRIP
_DIE = 40
_MOST_DICE = 7
"""How many dice fit into the strip. Further dice are shown as a number."""
_PIPS = {
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (1, -1), (-1, 1), (1, 1)),
    5: ((-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)),
    6: ((-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)),
}

_FILLS = {
    "page": ("#f6f2ea", "#1c1f24"),
    "square": ("#fffdf8", "#2c3038"),
    "inner": ("#f6f2ea", "#1c1f24"),
    "idle": ("#e3ddd0", "#30353d"),
    "star": ("#a39a89", "#7f8794"),
    "state": ("#2b2926", "#e9e6df"),
    "red": ("#cf4339", "#d4574d"),
    "green": ("#2e8b57", "#3b9a66"),
    "yellow": ("#dda11f", "#d39d31"),
    "blue": ("#3a6fc4", "#5284d6"),
}
"""Colours of areas, on light and on dark pages."""
_LINES = {"edge": ("#b8b0a0", "#535a66"), "turn": ("#2b2926", "#e9e6df")}
"""Colours of lines, on light and on dark pages."""


def _rules(pattern: str) -> str:
    """Writes the colours as CSS. The pattern combines the colours for light (0) and dark (1) pages."""
    fills = [f".ludo .{name}{{fill:{pattern.format(*colours)}}}" for name, colours in _FILLS.items()]
    lines = [f".ludo .{name}{{stroke:{pattern.format(*colours)}}}" for name, colours in _LINES.items()]
    return "".join(fills + lines)


_SHAPES = """\
.ludo text{font-family:system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif}
.ludo .turn{stroke-width:4}.ludo .slot{fill:none}.ludo .rim{fill:#1d1b19}
.ludo .token{stroke:#fff;stroke-width:1.5}.ludo .number{fill:#fff;text-anchor:middle;font-weight:700}
.ludo .state{font-size:22px;font-weight:600}
.ludo .die{fill:#fff;stroke:#55504a;stroke-width:1.5}.ludo .pip{fill:#1d1b19}
"""
STYLE = _rules("light-dark({0},{1})") + _SHAPES
"""For pages that choose between light and dark by ``color-scheme``."""
_ALONE = f"<style>\n{_rules('{0}')}\n{_SHAPES}@media(prefers-color-scheme:dark){{{_rules('{1}')}}}\n</style>"


def board_svg(board: LudoBoard, *, places: Iterable[str] = (), styled: bool = True) -> str:
    """Draws the board as a complete SVG. It has colours for light and for dark pages.

    ``places`` are further parts, drawn over the board. Without ``styled``, the page has to bring ``STYLE``.
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ludo" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="{"img" if styled else "group"}" aria-label="Ludo board, {_state(board)}">',
        *([_ALONE] if styled else []),
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}" rx="10"/>',
        *(part for quarters in range(4) for part in _quarter(board, quarters)),
        *_stars(board),
        *_tokens(board),
        *_strip(board),
        *places,
        "</svg>",
    ]
    return "\n".join(parts)


def _at(cell: Cell) -> tuple[float, float]:
    """Computes the middle of a cell in pixels."""
    return _MARGIN + (cell[0] + 0.5) * _CELL, _MARGIN + (cell[1] + 0.5) * _CELL


def _square(cell: Cell, style: str) -> str:
    x, y = _at(cell)
    half = _CELL / 2
    return f'<rect class="{style}" x="{x - half:g}" y="{y - half:g}" width="{_CELL}" height="{_CELL}"/>'


def _quarter(board: LudoBoard, quarters: int) -> Iterator[str]:
    """Draws a corner's yard, its thirteen squares of the loop, its home column and its part of the middle."""
    seats = [seat for seat in range(board.players) if corner(seat, board.players) == quarters]
    style = COLOURS[quarters].lower() if seats else "idle"
    yield from _yard(quarters, style, bool(seats), seats == [board.to_move])
    for step in range(QUARTER):
        square = f"{style} edge" if seats and step == 0 else "square edge"
        yield _square(_LOOP[QUARTER * quarters + step], square)
    for cell in _COLUMN:
        yield _square(_turned(cell, quarters), f"{style} edge" if seats else "square edge")
    points = [_at(_turned(cell, quarters)) for cell in ((7, 7), (5.5, 8.5), (8.5, 8.5))]
    shape = " ".join(f"{x:g},{y:g}" for x, y in points)
    yield f'<polygon class="{style} edge" points="{shape}"/>'


def _yard(quarters: int, style: str, is_played: bool, is_turn: bool) -> Iterator[str]:
    x, y = _at(_turned((2.5, 11.5), quarters))
    edge = "turn" if is_turn else "edge"
    for size, shape, radius in ((6 * _CELL - 6, f"{style} {edge}", 14), (4 * _CELL, "inner edge", 12)):
        yield (
            f'<rect class="{shape}" x="{x - size / 2:g}" y="{y - size / 2:g}" width="{size}" height="{size}" '
            f'rx="{radius}"/>'
        )
    if is_played:
        for slot in _SLOTS:
            x, y = _at(_turned(slot, quarters))
            yield f'<circle class="slot edge" cx="{x:g}" cy="{y:g}" r="18"/>'


def _stars(board: LudoBoard) -> Iterator[str]:
    """Marks the safe squares, but for the starts, which have a colour."""
    starts = {square_of(seat, START, board.players) for seat in range(board.players)}
    for square in sorted(SAFE_SQUARES - starts):
        yield _star(*_at(_LOOP[square]))


def _star(x: float, y: float) -> str:
    points = []
    for tip in range(10):
        radius, angle = (6 if tip % 2 else 14), pi * (tip / 5 - 0.5)
        points.append(f"{x + radius * cos(angle):.1f},{y + radius * sin(angle):.1f}")
    return f'<polygon class="star" points="{" ".join(points)}"/>'


def _tokens(board: LudoBoard) -> Iterator[str]:
    for seat, token, x, y, radius in token_spots(board):
        yield _token(x, y, radius, colour(seat, board.players), token)


def token_spots(board: LudoBoard) -> Iterator[tuple[int, int, float, float, float]]:
    """Yields the seat and the number of each token, and the x, y and radius of its circle."""
    for cell, tokens in _places(board).items():
        yield from _group(cell, tokens)


def _group(cell: Cell, tokens: list[tuple[int, int]]) -> Iterator[tuple[int, int, float, float, float]]:
    """Places the tokens of one cell: one in the middle, more of them smaller and side by side."""
    x, y = _at(cell)
    in_a_row = ceil(sqrt(len(tokens)))
    pitch = 34 / in_a_row if in_a_row > 1 else 0
    radius = 15 if in_a_row == 1 else pitch / 2
    rows = ceil(len(tokens) / in_a_row)
    for index, (seat, token) in enumerate(tokens):
        across, down = index % in_a_row - (in_a_row - 1) / 2, index // in_a_row - (rows - 1) / 2
        yield seat, token, x + across * pitch, y + down * pitch, radius


def _token(x: float, y: float, radius: float, name: str, token: int) -> str:
    return (
        f'<g class="piece"><circle class="rim" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'
        f'<circle class="token {name.lower()}" cx="{x:g}" cy="{y:g}" r="{radius * 0.82:.1f}"/>'
        f'<text class="number" x="{x:g}" y="{y + radius * 0.38:.1f}" font-size="{radius * 1.05:.1f}">{token}</text></g>'
    )


def _strip(board: LudoBoard) -> Iterator[str]:
    """Draws the line below the board: who is to move, and the dice in hand."""
    middle = _BOARD + 2 * _MARGIN + _STRIP / 2 - 10
    seat = board.to_move if board.winner is None else board.winner
    style = colour(seat, board.players).lower()
    yield f'<circle class="{style}" cx="{_MARGIN + 14}" cy="{middle:g}" r="11"/>'
    yield f'<text class="state" x="{_MARGIN + 36}" y="{middle + 8:g}">{_state(board)}</text>'
    if board.winner is None:
        yield from _dice(board.dice, middle)


def _dice(dice: Iterable[int], y: float) -> Iterator[str]:
    values = list(dice)
    shown = values[:_MOST_DICE]
    left = _WIDTH - _MARGIN - (_DIE + 6) * len(shown)
    if len(values) > len(shown):
        text = f"+ {len(values) - len(shown)}"
        yield f'<text class="state" x="{left - 52}" y="{y + 8:g}">{text}</text>'
    for index, value in enumerate(shown):
        x = left + (_DIE + 6) * index + _DIE / 2
        yield (
            f'<g class="dice"><rect class="die" x="{x - _DIE / 2:g}" y="{y - _DIE / 2:g}" width="{_DIE}" '
            f'height="{_DIE}" rx="7"/>'
            + "".join(
                f'<circle class="pip" cx="{x + 11 * across:g}" cy="{y + 11 * down:g}" r="4"/>'
                for across, down in _PIPS[value]
            )
            + "</g>"
        )
