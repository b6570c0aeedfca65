"""Ludo: the batched game for training, and a ``LudoBoard`` for people and tests.

>>> from keisei.games.ludo import LudoBoard
>>> board = LudoBoard(seed=7)
>>> board.play(board.legal_actions()[0])
"""

from keisei.games.ludo.board import LudoBoard, action_of, split_action
from keisei.games.ludo.picture import board_svg, board_text
from keisei.games.ludo.squares import HOME, SAFE_SQUARES, YARD

__all__ = [
    "HOME",
    "SAFE_SQUARES",
    "YARD",
    "LudoBoard",
    "action_of",
    "board_svg",
    "board_text",
    "split_action",
]
