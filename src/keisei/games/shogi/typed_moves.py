"""Moves as people type them at a board.

    8c8d  7g-7f  77-76  8八3三角成      squares by file and rank, with letters, digits or 一二三
    P-84  S68  Bx33+  R28-24  P*55      western: the piece, where it goes, + or = for promotion, * for a drop
    8四歩  ８四歩  2二角成  5五歩打  7六歩(77)     Japanese, as in KIF; the square that it comes from may be left out

Upper and lower case, full-width signs and spaces make no difference. A text may fit several legal moves: two golds
that reach a square, a promotion that is a choice, or a drop beside a move. The person then says which one they mean.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from keisei.errors import IllegalMoveError, InvalidMoveError
from keisei.games.shogi.board import Board
from keisei.games.shogi.illegal import why_illegal
from keisei.games.shogi.kif import LONG_NAMES, TYPE_OF_KANJI
from keisei.games.shogi.moves import (
    SQUARES,
    TYPE_OF_LETTER,
    Move,
    Piece,
    PieceType,
    square_at,
    square_file,
    square_rank,
)
from keisei.games.shogi.picture import KANJI, KANJI_DIGITS

__all__ = ["read_typed_move", "written_moves"]

_FORMS = "moves are written like 7g7f, P-76, P*55 (a drop), Bx33+ (with promotion) or 7六歩"
_SIGNS = "|".join(sorted(TYPE_OF_KANJI, key=len, reverse=True))
_RANKS = "abcdefghi123456789一二三四五六七八九"
_SQUARE = rf"[1-9][{_RANKS}]"
_SQUARES = re.compile(rf"({_SQUARE})[-x]?({_SQUARE})({_SIGNS})?(\+|=|不成|成)?")
_WESTERN = re.compile(rf"(\+?[plnsbrgk])({_SQUARE})?([-x*']?)({_SQUARE})([+=])?")
_JAPANESE = re.compile(rf"({_SQUARE}|同)({_SIGNS})(不成|成|打)?(?:\(([1-9][1-9])\))?")
_MARKS = str.maketrans("", "", "▲△☗☖▼▽ 　\t")
_DASHES = str.maketrans("‐‑‒–—−×’", "------x'")
_PROMOTES = {"+": True, "成": True, "=": False, "不成": False}


@dataclass(frozen=True, slots=True)
class _Wish:
    """The parts of a move that a text states; None for a part that it leaves open."""

    target: int
    origin: int | None = None
    kind: PieceType | None = None
    promotion: bool | None = None
    drop: bool | None = None

    def fits(self, board: Board, move: Move) -> bool:
        if move.to_square != self.target or self.drop not in (None, move.drop is not None):
            return False
        if self.origin not in (None, move.from_square) or self.promotion not in (None, move.promotion):
            return False
        return self.kind in (None, _kind_of(board, move))


def read_typed_move(board: Board, text: str) -> list[Move]:
    """Finds the legal moves that a text may mean. If there is none, ``NotationError`` says why."""
    plain = unicodedata.normalize("NFKC", text.translate(_DASHES)).translate(_MARKS).casefold()
    wish = _wish(text, plain)
    found = sorted(move for move in board.legal_moves if wish.fits(board, move))
    if not found:
        raise IllegalMoveError(f"{text[:40]!r} is not possible: {_why_not(board, wish)}")
    # USI writes every promotion, so a whole move of USI leaves nothing open.
    return [move for move in found if move.usi().casefold() == plain] or found


def _wish(text: str, plain: str) -> _Wish:
    if match := _SQUARES.fullmatch(plain):
        origin, target, sign, promotion = match.groups()
        kind = None if sign is None else TYPE_OF_KANJI[sign]
        return _Wish(_square(target), _square(origin), kind, _PROMOTES.get(promotion or ""), False)
    if match := _WESTERN.fullmatch(plain):
        return _western(*match.groups())
    if match := _JAPANESE.fullmatch(plain):
        return _japanese(text, *match.groups())
    raise InvalidMoveError(f"{text[:40]!r} is no move; {_FORMS}")


def _western(sign: str, origin: str | None, how: str, target: str, promotion: str | None) -> _Wish:
    kind = TYPE_OF_LETTER[sign[-1].upper()]
    return _Wish(
        _square(target),
        None if origin is None else _square(origin),
        kind.promoted if sign.startswith("+") else kind,
        _PROMOTES.get(promotion or ""),
        {"*": True, "'": True, "x": False}.get(how),
    )


def _japanese(text: str, target: str, sign: str, suffix: str | None, origin: str | None) -> _Wish:
    if target == "同":
        raise InvalidMoveError(f"{text[:40]!r} does not name its square; write it out, as in 7六歩")
    if origin is None:
        drop = True if suffix == "打" else None
        return _Wish(_square(target), None, TYPE_OF_KANJI[sign], _PROMOTES.get(suffix or ""), drop)
    # With the square that it comes from it is KIF, which writes every promotion.
    return _Wish(_square(target), _square(origin), TYPE_OF_KANJI[sign], suffix == "成", False)


def _square(text: str) -> int:
    return square_at(int(text[0]), _RANKS.index(text[1]) % 9 + 1)


def _kind_of(board: Board, move: Move) -> PieceType | None:
    """Gets the type of the piece before the move."""
    if move.drop is not None:
        return move.drop
    assert move.from_square is not None
    piece = board.piece_at(move.from_square)
    return None if piece is None else piece.type


def _why_not(board: Board, wish: _Wish) -> str:
    """Explains why no legal move fits: by the rule if only one move can be meant, else in general."""
    meant = list(_moves_meant(board, wish))
    if len(meant) == 1 and meant[0] not in board.legal_moves:
        return why_illegal(board.setup, meant[0])
    kind = "piece" if wish.kind is None else wish.kind.name.lower().replace("_", "-")
    return f"no {kind} of yours can {'be dropped there' if wish.drop else 'do that'}; {_FORMS}"


def _moves_meant(board: Board, wish: _Wish) -> Iterator[Move]:
    """Yields the moves that fit a text, legal or not."""
    if wish.origin is not None:
        if wish.origin != wish.target:
            yield Move(wish.origin, wish.target, bool(wish.promotion))
        return
    kind = wish.kind
    if kind is None:
        return
    wants_drop = wish.drop or (wish.drop is None and kind in board.hand(board.turn))
    if wants_drop and PieceType.PAWN <= kind <= PieceType.GOLD:
        yield Move(None, wish.target, drop=kind)
    for square in SQUARES if not wish.drop else ():
        if square != wish.target and board.piece_at(square) == Piece(board.turn, kind):
            yield Move(square, wish.target, bool(wish.promotion))


def written_moves(board: Board, move: Move) -> list[str]:
    """Writes a legal move in USI, in the western and in the Japanese way, each so that it means this move alone."""
    ways = ([move.usi()], _in_letters(board, move), _in_kanji(board, move))
    return [next(text for text in way if read_typed_move(board, text) == [move]) for way in ways]


def _in_letters(board: Board, move: Move) -> list[str]:
    """Writes the short form of a move, and the form with its square of origin."""
    target = _digits(move.to_square)
    if move.drop is not None:
        return [f"{move.drop.letter}*{target}"]
    assert move.from_square is not None
    piece = board.piece_at(move.from_square)
    assert piece is not None
    sign = ("+" if piece.type.is_promoted else "") + piece.type.letter
    how = "-" if board.piece_at(move.to_square) is None else "x"
    tail = target + ("+" if move.promotion else "")
    ways = [f"{sign}{how}{tail}", f"{sign}{_digits(move.from_square)}{how}{tail}"]
    return ways if move.promotion else [*ways, *(f"{way}=" for way in ways)]


def _in_kanji(board: Board, move: Move) -> list[str]:
    target = f"{square_file(move.to_square)}{KANJI_DIGITS[square_rank(move.to_square)]}"
    kind = _kind_of(board, move)
    assert kind is not None
    name = target + LONG_NAMES.get(kind, KANJI[kind])
    if move.drop is not None:
        return [name, f"{name}打"]
    assert move.from_square is not None
    if move.promotion:
        return [f"{name}成", f"{name}成({_digits(move.from_square)})"]
    return [name, f"{name}不成", f"{name}({_digits(move.from_square)})"]


def _digits(square: int) -> str:
    return f"{square_file(square)}{square_rank(square)}"
