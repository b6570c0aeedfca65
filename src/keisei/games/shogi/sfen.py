"""SFEN: a position as one line of text, and the rules for valid positions.

lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1
the ranks from a to i, each from file 9 to file 1         │ │ └ move number, from 1
                                            side to move ─┘ └ hands, '-' for none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from keisei.errors import InvalidPositionError
from keisei.games.shogi.moves import (
    BLACK,
    HAND_ORDER,
    PIECES_IN_SET,
    SQUARE_NAMES,
    TYPE_OF_LETTER,
    WHITE,
    Color,
    Piece,
    PieceType,
    square_at,
    square_file,
    square_rank,
)
from keisei.native import core

STARTING_SFEN: Final = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"

_HANDICAP_BOARDS = {
    "香落ち": "lnsgkgsn1/1r5b1",
    "右香落ち": "1nsgkgsnl/1r5b1",
    "角落ち": "lnsgkgsnl/1r7",
    "飛車落ち": "lnsgkgsnl/7b1",
    "飛香落ち": "lnsgkgsn1/7b1",
    "二枚落ち": "lnsgkgsnl/9",
    "三枚落ち": "lnsgkgsn1/9",
    "四枚落ち": "1nsgkgsn1/9",
    "五枚落ち": "2sgkgsn1/9",
    "左五枚落ち": "1nsgkgs2/9",
    "六枚落ち": "2sgkgs2/9",
    "八枚落ち": "3gkg3/9",
    "十枚落ち": "4k4/9",
}
HANDICAPS: Final = {"平手": STARTING_SFEN} | {
    name: f"{ranks}/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
    for name, ranks in _HANDICAP_BOARDS.items()
}
"""Named handicaps, as KIF uses them. White gives the pieces and moves first."""

MAX_MOVE_NUMBER: Final = 65_535
"""The highest move number of a position, far above that of any real game."""

_HAND_ITEM = re.compile(r"([0-9]*)([A-Za-z])")


@dataclass(frozen=True, slots=True)
class Setup:
    """A position without its history, in the codes of the native core."""

    board: bytes
    """81 piece codes."""
    hands: bytes
    """7 counts for black, then 7 for white, in the order pawn … gold of ``PieceType``."""
    turn: Color
    ply: int
    """The number of moves played before: SFEN's move number minus one."""

    def hand(self, color: Color) -> dict[PieceType, int]:
        """Gets the pieces in a side's hand and their counts, rook first. Counts of 0 are left out."""
        counts = {kind: self.hands[7 * color + kind - 1] for kind in HAND_ORDER}
        return {kind: count for kind, count in counts.items() if count}


def parse_sfen(text: str) -> Setup:
    """Reads SFEN, with or without the word ``sfen`` before it, or ``startpos``.

    This checks the form; ``native_position`` checks that the position is possible.
    """
    if not isinstance(text, str):
        raise InvalidPositionError(f"SFEN is text; got {type(text).__name__}")
    fields = text.split()
    if fields == ["startpos"]:
        fields = STARTING_SFEN.split()
    elif fields[:1] == ["sfen"]:
        fields = fields[1:]
    if len(fields) not in (3, 4):
        raise _malformed(
            text,
            f"it needs the board, the side to move, the hands and the move number; got {len(fields)} fields",
        )
    board = _parse_board(text, fields[0])
    turn = _parse_turn(text, fields[1])
    hands = _parse_hands(text, fields[2])
    ply = _parse_move_number(text, fields[3]) - 1 if len(fields) == 4 else 0
    return Setup(board, hands, turn, ply)


def write_sfen(setup: Setup) -> str:
    """Writes canonical SFEN. Every position has exactly one."""
    ranks = "/".join(_write_rank(setup.board, rank) for rank in range(1, 10))
    return f"{ranks} {'bw'[setup.turn]} {_write_hands(setup)} {setup.ply + 1}"


def native_position(setup: Setup, text: str | None = None, *, strict: bool = True) -> core.PlayedPosition:
    """Gets the native position of a setup. Impossible positions are errors.

    The native core decides; this module only finds the wrong piece. Errors show ``text`` if the position was not
    written as SFEN. Without ``strict``, composed positions with more pieces than a set has are allowed.
    """
    try:
        return core.PlayedPosition.from_pieces(setup.board, setup.hands, int(setup.turn), setup.ply, strict)
    except core.PositionError as error:
        shown = _shorten(write_sfen(setup) if text is None else text)
        fault = (_offender(setup) if strict else None) or str(error)
        raise InvalidPositionError(f"impossible position: {fault} (in {shown!r})") from None


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def _malformed(text: str, fault: str) -> InvalidPositionError:
    return InvalidPositionError(f"malformed SFEN: {fault} (in {_shorten(text)!r})")


def _parse_board(text: str, field: str) -> bytes:
    ranks = field.split("/")
    if len(ranks) != 9:
        raise _malformed(text, f"a board has 9 ranks divided by '/'; got {len(ranks)}")
    board = bytearray(81)
    for rank, row in enumerate(ranks, start=1):
        for file, code in _parse_rank(text, row, rank):
            board[square_at(file, rank)] = code
    return bytes(board)


def _parse_rank(text: str, row: str, rank: int) -> list[tuple[int, int]]:
    """Reads the pieces of one rank as (file, code)."""
    pieces: list[tuple[int, int]] = []
    file, promoted, after_digit = 9, False, False
    where = f"rank {'abcdefghi'[rank - 1]} ({_shorten(row)!r})"
    for letter in row:
        if letter in "123456789" and not promoted:
            if after_digit:
                raise _malformed(text, f"{where} has two numbers in a row; write their sum")
            file, after_digit = file - int(letter), True
            continue
        after_digit = False
        if letter == "+" and not promoted:
            promoted = True
            continue
        pieces.append((file, _piece_code(text, where, letter, promoted)))
        file, promoted = file - 1, False
    if promoted:
        raise _malformed(text, f"{where} ends with '+', which belongs before a piece")
    if file != 0:
        raise _malformed(text, f"{where} describes {9 - file} squares instead of 9")
    return pieces


def _piece_code(text: str, where: str, letter: str, promoted: bool) -> int:
    kind = TYPE_OF_LETTER.get(letter.upper()) if letter.isascii() else None
    if kind is None:
        raise _malformed(text, f"{where} has {letter!r}, which is not a piece; pieces are P L N S G B R K")
    if promoted and not kind.can_promote:
        raise _malformed(text, f"{where} has '+{letter}', but a {kind.name.lower()} never promotes")
    return Piece(BLACK if letter.isupper() else WHITE, kind.promoted if promoted else kind).native


def _parse_turn(text: str, field: str) -> Color:
    if field not in ("b", "w"):
        raise _malformed(text, f"the side to move is 'b' or 'w'; got {_shorten(field)!r}")
    return BLACK if field == "b" else WHITE


def _parse_hands(text: str, field: str) -> bytes:
    hands = bytearray(14)
    position = 0
    while field != "-" and position < len(field):
        match = _HAND_ITEM.match(field, position)
        kind = TYPE_OF_LETTER.get(match[2].upper()) if match else None
        if match is None or kind is None or kind is PieceType.KING:
            raise _malformed(
                text, f"hands hold P L N S G B R, or are '-'; got {_shorten(field[position:])!r}"
            )
        count, most = match[1] or "1", PIECES_IN_SET[kind]
        if not re.fullmatch("[1-9][0-9]?", count) or int(count) > most:
            raise _malformed(text, f"a hand holds 1 … {most} of {match[2]!r}; got {_shorten(count)!r}")
        slot = 7 * match[2].islower() + kind - 1
        if hands[slot]:
            raise _malformed(text, f"the hands name {match[2]!r} twice")
        hands[slot] = int(count)
        position = match.end()
    return bytes(hands)


def _parse_move_number(text: str, field: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", field) or not 1 <= int(field) <= MAX_MOVE_NUMBER:
        raise _malformed(
            text, f"the move number is a whole number in 1 … {MAX_MOVE_NUMBER}; got {_shorten(field)!r}"
        )
    return int(field)


def _offender(setup: Setup) -> str | None:
    """Finds the first rule that the pieces break, with the piece; None for a king in check."""
    return _misplaced(setup) or _miscounted(setup)


def _misplaced(setup: Setup) -> str | None:
    pawns: set[tuple[Color, int]] = set()
    for square, code in enumerate(setup.board):
        if not code:
            continue
        piece, file = Piece.from_native(code), square_file(square)
        if is_dead_end(piece, square):
            name = piece.type.name.lower()
            return f"{piece.color.name.lower()}'s {name} on {SQUARE_NAMES[square]} could never move again"
        if piece.type is PieceType.PAWN:
            if (piece.color, file) in pawns:
                return f"nifu, {piece.color.name.lower()} has two unpromoted pawns on file {file}"
            pawns.add((piece.color, file))
    return None


def _miscounted(setup: Setup) -> str | None:
    pieces = [Piece.from_native(code) for code in setup.board if code]
    for color in Color:
        kings = pieces.count(Piece(color, PieceType.KING))
        if kings != 1:
            return (
                f"{color.name.lower()} has {kings or 'no'} king{'s' * (kings > 1)}; each side has exactly one"
            )
    for kind, most in PIECES_IN_SET.items():
        count = sum(piece.type.plain is kind for piece in pieces)
        if kind is not PieceType.KING:
            count += setup.hands[kind - 1] + setup.hands[7 + kind - 1]
        if count > most:
            return f"{count} pieces of kind {kind.letter}, hands included; a set has {most}"
    return None


def is_dead_end(piece: Piece, square: int) -> bool:
    """Checks if a piece could never move from a square, which is forbidden for pawns, lances and knights."""
    ahead = square_rank(square) - 1 if piece.color is BLACK else 9 - square_rank(square)
    return ahead < {PieceType.PAWN: 1, PieceType.LANCE: 1, PieceType.KNIGHT: 2}.get(piece.type, 0)


def _write_rank(board: bytes, rank: int) -> str:
    parts: list[str] = []
    empty = 0
    for file in range(9, 0, -1):
        code = board[square_at(file, rank)]
        if not code:
            empty += 1
            continue
        parts.append((str(empty) if empty else "") + Piece.from_native(code).symbol)
        empty = 0
    return "".join(parts) + (str(empty) if empty else "")


def _write_hands(setup: Setup) -> str:
    items = [
        (str(count) if count > 1 else "") + Piece(color, kind).symbol
        for color in Color
        for kind, count in setup.hand(color).items()
    ]
    return "".join(items) or "-"
