"""The faces of connect four and tic-tac-toe. Their positions have two planes: the own pieces, and those of the other.

Pieces differ by shape too, so nobody needs to tell colours apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from keisei.games.contract import ByteArray
from keisei.games.faces import place, svg_page
from keisei.games.offers import Choice

__all__ = ["DropFace", "MarkFace"]


def _pieces(packed: bytes, seat: int, rows: int, columns: int) -> ByteArray:
    """[2, rows, columns]: the pieces of seat 0 and of seat 1."""
    planes = np.frombuffer(packed[: 2 * rows * columns], np.uint8).reshape(2, rows, columns)
    return planes if seat == 0 else planes[::-1]


class DropFace:
    """Connect four. A person names a column."""

    seats = ("Amber", "Blue")
    person_options = ()
    has_sides = False
    style = (
        ".frame{fill:light-dark(#3b4a63,#2b3647)}.hole{fill:light-dark(#f7f5f0,#14161a)}"
        ".first{fill:#e8a317;stroke:#9c6a00;stroke-width:3}.second{fill:#3f8fd2;stroke:#1d5a91;stroke-width:3}"
        ".sign{fill:none;stroke:#fff;stroke-width:4;opacity:.9}.dot{fill:#fff;opacity:.9}"
        ".last{fill:none;stroke:light-dark(#fff,#fff);stroke-width:4}"
        ".name{font:600 15px system-ui,sans-serif;fill:light-dark(#e9edf4,#c6cfdd);text-anchor:middle}"
    )
    _CELL, _TOP = 64, 26

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        pieces = _pieces(packed, seat, self.rows, self.columns)
        width, height = self.columns * self._CELL, self._TOP + self.rows * self._CELL + 8
        parts = [f'<rect class="frame" width="{width}" height="{height}" rx="14"/>']
        for column in range(self.columns):
            parts += self._column(pieces, column, last)
        return svg_page(parts, width, height, "connect-four", "Connect four board")

    def _column(self, pieces: ByteArray, column: int, last: Choice | None) -> Iterator[str]:
        size, x = self._CELL, column * self._CELL + self._CELL / 2
        yield f'<text class="name" x="{x:g}" y="20">{column + 1}</text>'
        for row in range(self.rows):
            y = self._TOP + row * size + size / 2
            yield f'<circle class="hole" cx="{x:g}" cy="{y:g}" r="26"/>'
            if pieces[:, row, column].any():
                yield from _disc(x, y, 0 if pieces[0, row, column] else 1)
        filled = int(pieces[:, :, column].any(axis=0).sum())
        if last is not None and last.action == column and filled:
            y = self._TOP + (self.rows - filled) * size + size / 2
            yield f'<circle class="last" cx="{x:g}" cy="{y:g}" r="28"/>'
        box = (column * size + 2, 2, size - 4, self._TOP + self.rows * size + 4)
        label = f"column {column + 1}, {filled} of {self.rows} filled"
        yield place(f"c{column + 1}", label, box, (column, 0))

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        return [Choice(action, f"column {action + 1}", (f"c{action + 1}",)) for action in actions]

    def text(self, packed: bytes, seat: int) -> str:
        return ""


def _disc(x: float, y: float, seat: int) -> Iterator[str]:
    yield f'<circle class="{"second" if seat else "first"}" cx="{x:g}" cy="{y:g}" r="25"/>'
    if seat:
        yield f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="7"/>'
    else:
        yield f'<circle class="sign" cx="{x:g}" cy="{y:g}" r="12"/>'


class MarkFace:
    """Tic-tac-toe. A person names a square."""

    seats = ("X", "O")
    person_options = ()
    has_sides = False
    style = (
        ".cell{fill:light-dark(#fffdf8,#23262d);stroke:light-dark(#cfc9bd,#454b57);stroke-width:2}"
        ".last{fill:light-dark(#fdf0c8,#3d3722);stroke:light-dark(#cfc9bd,#454b57);stroke-width:2}"
        ".first{stroke:light-dark(#b8480a,#f0883e);stroke-width:12;stroke-linecap:round;fill:none}"
        ".second{stroke:light-dark(#0a61a0,#58a6ff);stroke-width:12;fill:none}"
    )
    _CELL = 120

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        pieces = _pieces(packed, seat, 3, 3)
        parts = [part for square in range(9) for part in self._square(pieces, square, last)]
        return svg_page(parts, 3 * self._CELL + 8, 3 * self._CELL + 8, "tictactoe", "Tic-tac-toe board")

    def _square(self, pieces: ByteArray, square: int, last: Choice | None) -> Iterator[str]:
        size, (row, column) = self._CELL, divmod(square, 3)
        x, y = 4 + column * size, 4 + row * size
        style = "last" if last is not None and last.action == square else "cell"
        yield f'<rect class="{style}" x="{x}" y="{y}" width="{size}" height="{size}" rx="6"/>'
        sign = "X" if pieces[0, row, column] else "O" if pieces[1, row, column] else ""
        if sign == "X":
            yield f'<path class="first" d="M{x + 34} {y + 34}l52 52m0-52l-52 52"/>'
        elif sign:
            yield f'<circle class="second" cx="{x + size / 2:g}" cy="{y + size / 2:g}" r="30"/>'
        label = f"row {row + 1}, column {column + 1}, {sign or 'empty'}"
        yield place(f"s{square}", label, (x + 3, y + 3, size - 6, size - 6), (column, row))

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        return [
            Choice(action, f"{'abc'[action % 3]}{3 - action // 3}", (f"s{action}",)) for action in actions
        ]

    def text(self, packed: bytes, seat: int) -> str:
        return ""
