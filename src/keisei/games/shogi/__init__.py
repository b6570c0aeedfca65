"""Shogi: the batched game for training, and a ``Board`` for people and tests.

>>> from keisei.games import shogi
>>> board = shogi.Board()
>>> len(board.legal_moves)
30
"""

from keisei.games.shogi import csa, kif
from keisei.games.shogi.board import Board, LegalMoves, Outcome, Termination, perft
from keisei.games.shogi.match_records import record_of
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
from keisei.games.shogi.record import GameRecord
from keisei.games.shogi.sfen import STARTING_SFEN, Setup, parse_sfen, write_sfen

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
    "record_of",
    "square_at",
    "square_file",
    "square_rank",
    "write_sfen",
]
