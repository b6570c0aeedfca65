"""How a person sees Shogi and plays it: squares and hands are the places of a choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keisei.games.faces import place
from keisei.games.offers import Choice
from keisei.games.shogi.board import Board
from keisei.games.shogi.moves import SQUARE_NAMES, SQUARES, Color, Move, Piece, PieceType
from keisei.games.shogi.picture import CELL, STYLE, board_svg, square_corner, stand_spots

__all__ = ["ShogiFace"]


class ShogiFace:
    """Positions are drawn as in notebooks. The side that looks at the board is at its bottom."""

    style = STYLE
    seats = ("Black", "White")
    person_options = ("start",)
    has_sides = True

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        board = Board.from_packed(packed)
        side = Color(view if view in (0, 1) else 0)
        move = None if last is None else Move.from_usi(last.name)
        return board_svg(board.setup, move, view=side, places=_places(board, side), styled=False)

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        board = Board.from_packed(packed)
        return [_choice(action, board.move_from_action(action), board) for action in actions]

    def text(self, packed: bytes, seat: int) -> str:
        """Writes the position as SFEN."""
        return Board.from_packed(packed).sfen()


def _choice(action: int, move: Move, board: Board) -> Choice:
    target = SQUARE_NAMES[move.to_square]
    if move.drop is not None:
        return Choice(action, move.usi(), (_hand(board.turn, move.drop), target))
    assert move.from_square is not None
    label = "Promote" if move.promotion else "Do not promote"
    return Choice(action, move.usi(), (SQUARE_NAMES[move.from_square], target), label, move.promotion)


def _hand(color: Color, kind: PieceType) -> str:
    return f"{color.name.lower()}-{kind.letter}"


def _places(board: Board, view: Color) -> Iterator[str]:
    """Yields the squares and the pieces in hand. White's view counts columns and rows from the other end."""
    codes = board.setup.board
    for square in SQUARES:
        x, y = square_corner(square)
        file, rank = divmod(square, 9)
        at = (8 - file, rank) if view is Color.BLACK else (file, 8 - rank)
        yield place(
            SQUARE_NAMES[square], _label(square, codes[square]), (x + 1, y + 1, CELL - 2, CELL - 2), at
        )
    for color in Color:
        for number, (kind, count, x, y) in enumerate(stand_spots(board.setup, color)):
            column, line = (number, 9.5) if color is view else (8 - number, -1.5)
            label = f"{count} {kind.name.lower()} in the hand of {color.name.lower()}"
            yield place(_hand(color, kind), label, (x - 20, y - 22, 40, 44), (column, line))


def _label(square: int, code: int) -> str:
    if not code:
        return SQUARE_NAMES[square]
    piece = Piece.from_native(code)
    return (
        f"{SQUARE_NAMES[square]}, {piece.type.name.lower().replace('_', ' ')} of {piece.color.name.lower()}"
    )
