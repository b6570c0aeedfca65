"""Colours, squares, pieces and moves, with the numbers of the native core.

Squares count file by file from black's right: ``1a`` is 0, ``1i`` is 8, ``9i`` is 80. Colours, piece types and
squares are the native codes, so nothing needs to be translated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, total_ordering
from typing import Final

from keisei.errors import InvalidMoveError


class Color(IntEnum):
    """The two sides. Black (先手) moves first and plays up the board, towards rank a."""

    BLACK = 0
    WHITE = 1

    @property
    def opponent(self) -> Color:
        return Color(1 - self)


BLACK: Final = Color.BLACK
WHITE: Final = Color.WHITE


class PieceType(IntEnum):
    """The type of a piece. A promoted type is the plain type plus 8."""

    PAWN = 1
    LANCE = 2
    KNIGHT = 3
    SILVER = 4
    BISHOP = 5
    ROOK = 6
    GOLD = 7
    KING = 8
    PRO_PAWN = 9
    PRO_LANCE = 10
    PRO_KNIGHT = 11
    PRO_SILVER = 12
    HORSE = 13
    DRAGON = 14

    @property
    def is_promoted(self) -> bool:
        return self > PieceType.KING

    @property
    def can_promote(self) -> bool:
        return self < PieceType.GOLD

    @property
    def promoted(self) -> PieceType:
        """The promoted type; the type itself if it cannot promote."""
        return PieceType(self + 8) if self.can_promote else self

    @property
    def plain(self) -> PieceType:
        """The unpromoted type, as in a hand."""
        return PieceType(self - 8) if self.is_promoted else self

    @property
    def letter(self) -> str:
        """The letter of the plain piece, as USI and SFEN write it for black."""
        return "PLNSBRGK"[self.plain - 1]


HAND_ORDER: Final = tuple(PieceType(code) for code in (6, 5, 7, 4, 3, 2, 1))
"""The order in which SFEN, KIF and pictures list a hand: rook first, pawns last."""

PIECES_IN_SET: Final = {
    PieceType.PAWN: 18,
    PieceType.LANCE: 4,
    PieceType.KNIGHT: 4,
    PieceType.SILVER: 4,
    PieceType.BISHOP: 2,
    PieceType.ROOK: 2,
    PieceType.GOLD: 4,
    PieceType.KING: 2,
}
"""The number of each plain piece in a set, for both sides together."""

TYPE_OF_LETTER: Final = {kind.letter: kind for kind in PIECES_IN_SET}

_WHITE_PIECE = 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one side."""

    color: Color
    type: PieceType

    @classmethod
    def from_native(cls, code: int) -> Piece:
        return cls(Color(code // _WHITE_PIECE), PieceType(code % _WHITE_PIECE))

    @property
    def native(self) -> int:
        return self.type + _WHITE_PIECE * self.color

    @property
    def symbol(self) -> str:
        """The symbol in SFEN: ``P`` is black's pawn, ``+r`` white's dragon."""
        letter = self.type.letter if self.color is BLACK else self.type.letter.lower()
        return "+" + letter if self.type.is_promoted else letter


SQUARES: Final = range(81)
SQUARE_NAMES: Final = tuple(f"{file}{rank}" for file in range(1, 10) for rank in "abcdefghi")
_SQUARE_OF_NAME: Final = {name: square for square, name in enumerate(SQUARE_NAMES)}


def square_at(file: int, rank: int) -> int:
    """Gets the square of a file and a rank, both counted from 1."""
    return (file - 1) * 9 + rank - 1


def square_file(square: int) -> int:
    return square // 9 + 1


def square_rank(square: int) -> int:
    """Gets the rank of a square; 1 is the furthest from black."""
    return square % 9 + 1


def parse_square(name: str) -> int:
    """Gets the square of a name such as ``7g``."""
    try:
        return _SQUARE_OF_NAME[name]
    except (KeyError, TypeError):
        raise InvalidMoveError(f"{name!r} is not a square; squares run from '1a' to '9i'") from None


_USI_BOARD_MOVE = re.compile(r"([1-9][a-i])([1-9][a-i])(\+?)")
_USI_DROP = re.compile(r"([PLNSBRG])\*([1-9][a-i])")
_USI_FORM = "a USI move is written like '7g7f', '8h2b+' with promotion, or 'P*5e' for a drop"
_FROM_SHIFT, _PROMOTION_SHIFT, _SQUARE_MASK, _DROP_BASE = 7, 14, 127, 80


@total_ordering
@dataclass(frozen=True, slots=True, repr=False)
class Move:
    """A move of a piece on the board, or the drop of one from the hand.

    A ``Move`` does not know the position; ``Board`` decides whether it is legal. Moves sort by origin, drops last,
    then by destination, the plain move before the promotion.
    """

    from_square: int | None
    to_square: int
    promotion: bool = False
    drop: PieceType | None = None

    def __post_init__(self) -> None:
        for square in (self.to_square,) if self.from_square is None else (self.from_square, self.to_square):
            if square not in SQUARES:
                raise InvalidMoveError(f"square {square!r} is outside 0 … 80")
        if (self.from_square is None) == (self.drop is None):
            raise InvalidMoveError("a move has either a from_square or a drop; got " + self._fields())
        if self.drop is not None and not PieceType.PAWN <= self.drop <= PieceType.GOLD:
            raise InvalidMoveError(f"a {self.drop!r} is never in a hand; pawn to gold can be dropped")
        if self.drop is not None and self.promotion:
            raise InvalidMoveError("a dropped piece is never promoted; got " + self._fields())
        if self.from_square == self.to_square:
            raise InvalidMoveError("a move leaves its square; got " + self._fields())

    def _fields(self) -> str:
        return f"from_square={self.from_square!r}, to_square={self.to_square!r}, drop={self.drop!r}"

    @classmethod
    def from_usi(cls, text: str) -> Move:
        """Reads ``7g7f``, ``8h2b+`` or ``P*5e``."""
        if not isinstance(text, str):
            raise InvalidMoveError(f"{text!r} is not text; {_USI_FORM}")
        if match := _USI_BOARD_MOVE.fullmatch(text):
            origin, target, promotion = match.groups()
            if origin == target:
                raise InvalidMoveError(f"{text!r} stays on its square; {_USI_FORM}")
            return cls(_SQUARE_OF_NAME[origin], _SQUARE_OF_NAME[target], bool(promotion))
        if match := _USI_DROP.fullmatch(text):
            return cls(None, _SQUARE_OF_NAME[match[2]], drop=TYPE_OF_LETTER[match[1]])
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise InvalidMoveError(f"{shown!r} is not a move; {_USI_FORM}")

    def usi(self) -> str:
        target = SQUARE_NAMES[self.to_square]
        if self.drop is not None:
            return f"{self.drop.letter}*{target}"
        assert self.from_square is not None
        return SQUARE_NAMES[self.from_square] + target + ("+" if self.promotion else "")

    @staticmethod
    @cache  # there are only some 14,000 moves
    def from_native(code: int) -> Move:
        """Gets the move with this number in the native core."""
        origin, target = code >> _FROM_SHIFT & _SQUARE_MASK, code & _SQUARE_MASK
        if origin > _DROP_BASE:
            return Move(None, target, drop=PieceType(origin - _DROP_BASE))
        return Move(origin, target, bool(code >> _PROMOTION_SHIFT))

    @property
    def native(self) -> int:
        """The native core's number: ``to | from << 7 | promote << 14``."""
        origin = self.from_square if self.drop is None else _DROP_BASE + self.drop
        assert origin is not None
        return self.to_square | origin << _FROM_SHIFT | self.promotion << _PROMOTION_SHIFT

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Move):
            return NotImplemented
        return self._sort_key() < other._sort_key()

    def _sort_key(self) -> tuple[int, int, bool]:
        origin = self.from_square if self.drop is None else _DROP_BASE + self.drop
        assert origin is not None
        return origin, self.to_square, self.promotion

    def __str__(self) -> str:
        return self.usi()

    def __repr__(self) -> str:
        return f"Move.from_usi({self.usi()!r})"
