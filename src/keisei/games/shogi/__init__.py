"""Shogi: the batched game for training, and a ``Board`` for people and tests.

>>> from keisei.games import shogi
>>> board = shogi.Board()
>>> len(board.legal_moves)
30
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keisei.games.shogi.board import Board, LegalMoves, Outcome, Termination, perft
from keisei.games.shogi.moves import (
    BLACK,
    SQUARE_NAMES,
    SQUARES,
    WHITE,
    Color,
    Move,
    Piece,
    PieceType,
    parse_square,
    square_at,
    square_file,
    square_rank,
)
from keisei.games.shogi.picture import board_svg, board_text
from keisei.games.shogi.sfen import STARTING_SFEN, Setup, parse_sfen, write_sfen

if TYPE_CHECKING:
    from keisei.games.shogi import csa, kif
    from keisei.games.shogi.match_records import read_records, record_of
    from keisei.games.shogi.record import GameRecord

__all__ = [
    "BLACK",
    "SQUARES",
    "SQUARE_NAMES",
    "STARTING_SFEN",
    "WHITE",
    "Board",
    "Color",
    "GameRecord",
    "LegalMoves",
    "Move",
    "Outcome",
    "Piece",
    "PieceType",
    "Setup",
    "Termination",
    "board_svg",
    "board_text",
    "csa",
    "kif",
    "parse_sfen",
    "parse_square",
    "perft",
    "read_records",
    "record_of",
    "square_at",
    "square_file",
    "square_rank",
    "write_sfen",
]

_RECORDS = {"GameRecord": "record", "read_records": "match_records", "record_of": "match_records"}


def __getattr__(name: str) -> Any:
    """Imports the modules for records when they are first used, since training does not need them."""
    if name in ("csa", "kif"):
        return import_module(f"{__name__}.{name}")
    if name in _RECORDS:
        return getattr(import_module(f"{__name__}.{_RECORDS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
