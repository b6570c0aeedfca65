"""The face of a game that offers none, drawn from what its batch offers: its text, the names of its moves, and in
worlds the meaning of the letters.

A text that is a board becomes a grid of symbols. All other text is the caption of the picture. A batch that draws no
text shows what a seat sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from keisei.games.contract import Game
from keisei.games.faces import PlainFace, place, svg_page
from keisei.games.naming import move_names
from keisei.games.offers import Choice, GameFace, ShowsText, ShowsWorld, Symbol
from keisei.games.pictures import last_picture, picture

__all__ = ["AutomaticFace", "TextBoard", "board_in", "live_face"]

_FREE = ".-_ "
"""Symbols of squares with nothing on them."""
_MARKED = "#d00069"
"""The colour of the seat from which a world is seen."""
_FEWEST = 3
"""Rows and columns of a board. Fewer may be lines of words that are equally long by chance."""


@dataclass(frozen=True)
class TextBoard:
    """A board that was found in a text."""

    rows: tuple[tuple[str, ...], ...]
    """[rows][columns]: the symbols of the squares."""
    caption: str
    """The rest of the text."""


def board_in(text: str) -> TextBoard | None:
    """Finds the longest run of lines with equally many symbols; None if no part of the text is a board."""
    lines = text.splitlines()
    symbols = [_symbols(line) for line in lines]
    first, end = max(_runs(symbols), key=lambda run: run[1] - run[0], default=(0, 0))
    if end - first < _FEWEST or len(symbols[first]) < _FEWEST:
        return None
    rest = [line for line in lines[:first] + lines[end:] if line.strip()]
    return TextBoard(tuple(symbols[first:end]), "\n".join(rest))


def _symbols(line: str) -> tuple[str, ...]:
    """Splits a line into symbols, with or without spaces between them; empty if the line is no row of a board."""
    words = line.split()
    if len(words) == 1 and len(words[0]) > 1:
        return tuple(words[0])
    return tuple(words) if all(len(word) == 1 for word in words) else ()


def _runs(symbols: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """Yields the first line and the end of each run of lines with equally many symbols."""
    first = 0
    for at in range(1, len(symbols) + 1):
        if at == len(symbols) or len(symbols[at]) != len(symbols[first]):
            if symbols[first]:
                yield first, at
            first = at


class AutomaticFace(PlainFace):
    """Shows the current position of the only game of a batch, or its last one when it is over. It names the moves of
    the current position."""

    style = (
        ".cell{fill:light-dark(#fff,#23262d);stroke:light-dark(#d5d2ca,#3a3f49)}"
        ".wall{fill:light-dark(#8b8d94,#565b66)}"
        ".n0{fill:light-dark(#0a61a0,#2f7fc1)}.n1{fill:light-dark(#b8480a,#d9651a)}.n2{fill:#00805d}"
        ".n3{fill:#a44a80}.n4{fill:#8a6400}.n5{fill:#5457c4}"
        ".mark{font:700 20px system-ui,sans-serif;fill:#fff;text-anchor:middle}"
        f".you{{fill:none;stroke:{_MARKED};stroke-width:5}}"
        ".numbers{font:13px ui-monospace,monospace;fill:currentColor}"
    )

    def __init__(self, game: Game) -> None:
        super().__init__(game.spec)
        self._game = game
        self._episode = int(game.rows().episode[0])
        self._world = game if isinstance(game, ShowsWorld) else None
        self._symbols: Mapping[str, Symbol] = {} if self._world is None else self._world.symbols()
        self._draws_text = isinstance(game, ShowsText) and getattr(game, "draws_text", True)
        if isinstance(game, ShowsText):
            game.keep_last_positions()
        if self._world is not None:
            self.seats = tuple(f"Agent {seat + 1}" for seat in range(game.spec.seats))

    def caption(self, view: int) -> str:
        """Gets the text beside the picture; empty if there is none."""
        text = self._text(view) if isinstance(self._game, ShowsText) else ""
        board = board_in(text) if self._draws_text else None
        return text if board is None else board.caption

    def legend(self, view: int) -> list[dict[str, str]]:
        """Says what letters mean, each with its colour, and which seat is marked."""
        if self._world is None:
            return []
        letters = [
            {"letter": letter, "name": symbol.name, "colour": _css(symbol.colour)}
            for letter, symbol in self._symbols.items()
            if letter not in _FREE
        ]
        seats = [
            {"letter": "", "name": name, "colour": _css(self._world.seat_colour(seat))}
            for seat, name in enumerate(self.seats)
        ]
        marked = self.seats[min(view, len(self.seats) - 1)]
        return [*letters, *seats, {"letter": "", "name": f"{marked} is marked", "colour": _MARKED}]

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        """Draws the board of the text, or what a seat sees. Empty if the caption shows everything."""
        if not self._draws_text:
            return super().svg(packed, seat, view=view, last=last)
        board = board_in(self._text(view))
        return "" if board is None else self._drawn(board, view)

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        names = {action: name for name, action in move_names(self._game, actions).items()}
        has_squares = self._draws_text and not self._game.spec.simultaneous and not self._is_over
        board = board_in(self._text(seat)) if has_squares else None
        are_squares = board is not None and self._are_squares(board)
        return [
            Choice(action, names[action], (f"s{action}",) if are_squares else (), names[action])
            for action in actions
        ]

    @property
    def _is_over(self) -> bool:
        """Whether the game has ended, and the next one of the batch has begun."""
        return int(self._game.rows().episode[0]) != self._episode

    def _text(self, view: int) -> str:
        draw = last_picture if self._is_over else picture
        return draw(self._game, view=view)

    def _are_squares(self, board: TextBoard) -> bool:
        """Checks whether each action seems to mark a square: there are as many actions as squares, and the legal
        actions are exactly the squares with one symbol."""
        symbols = [symbol for row in board.rows for symbol in row]
        if self._game.spec.simultaneous or len(symbols) != self._game.spec.num_actions:
            return False
        legal = self._game.legal()[0].tolist()
        free = {symbol for symbol, may in zip(symbols, legal, strict=True) if may}
        return len(free) == 1 and [symbol in free for symbol in symbols] == legal

    def _drawn(self, board: TextBoard, view: int) -> str:
        are_squares = not self._is_over and self._are_squares(board)
        columns, size = len(board.rows[0]), self._CELL
        own = {} if self._world is None or self._is_over else self._world.own_colours()
        parts = [
            part
            for row, symbols in enumerate(board.rows)
            for column, symbol in enumerate(symbols)
            for part in self._cell(symbol, row, column, own.get((row, column)))
        ]
        if self._world is not None and not self._is_over:
            row, column = self._world.standing(view)
            box = f'x="{column * size + 1}" y="{row * size + 1}" width="{size - 2}" height="{size - 2}"'
            parts.append(f'<rect class="you" {box} rx="6"/>')
        if are_squares:
            parts += self._places(board)
        return svg_page(
            parts, columns * size, len(board.rows) * size, "plain", f"{self._game.spec.name} board"
        )

    def _cell(self, symbol: str, row: int, column: int, own: tuple[int, int, int] | None) -> Iterator[str]:
        size, x, y = self._CELL, column * self._CELL, row * self._CELL
        style = "wall" if symbol == "#" else "cell"
        yield f'<rect class="{style}" x="{x}" y="{y}" width="{size}" height="{size}"/>'
        if symbol in _FREE or symbol == "#":
            return
        known = self._symbols.get(symbol)
        fill = f'class="n{ord(symbol) % 6}"' if known is None else f'fill="{_css(own or known.colour)}"'
        yield f'<rect {fill} x="{x + 4}" y="{y + 4}" width="{size - 8}" height="{size - 8}" rx="9"/>'
        yield f'<text class="mark" x="{x + size / 2:g}" y="{y + size / 2 + 7:g}">{escape(symbol)}</text>'

    def _places(self, board: TextBoard) -> Iterator[str]:
        size, columns = self._CELL, len(board.rows[0])
        for row, symbols in enumerate(board.rows):
            for column, symbol in enumerate(symbols):
                label = f"row {row + 1}, column {column + 1}, {'empty' if symbol in _FREE else symbol}"
                box = (column * size + 2, row * size + 2, size - 4, size - 4)
                yield place(f"s{row * columns + column}", label, box, (column, row))


def _css(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def live_face(game: Game) -> GameFace:
    """Gets the face of a batch of one game: the face of its spec, or an automatic one."""
    return game.spec.face or AutomaticFace(game)
