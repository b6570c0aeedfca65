"""Tic-tac-toe: three in a row on a board of 3 x 3."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from keisei.games.contract import Array, ObservationSpec
from keisei.games.grid_faces import MarkFace
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome, SingleGame

_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_WINS = tuple(sum(1 << square for square in line) for line in _LINES)
_FULL = (1 << 9) - 1


class TicTacToe(SingleGame):
    """Seat 0 plays X and begins, seat 1 plays O. Action 3*row + column marks a square."""

    name = "tictactoe"
    num_actions = 9
    observation = ObservationSpec((2, 3, 3), np.dtype(np.uint8))
    zero_sum = True
    endings = ("three in a row", "full board")
    face = MarkFace()

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move = 0
        self.marks = [0, 0]
        """The squares of each seat, as bits."""

    def legal(self, seat: int) -> list[int]:
        taken = self.marks[0] | self.marks[1]
        return [square for square in range(9) if not taken >> square & 1]

    def play(self, action: int, rng: KeyedRandom) -> None:
        self.marks[self.to_move] |= 1 << action
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        """Plane 0 has the marks of the observing seat, plane 1 those of the other."""
        planes = [[self.marks[owner] >> square & 1 for square in range(9)] for owner in (seat, 1 - seat)]
        return np.array(planes, np.uint8).reshape(2, 3, 3)

    def move_name(self, action: int) -> str:
        """Squares are counted from 1, row by row."""
        return str(action + 1)

    def observation_meaning(self) -> list[str]:
        return ["own marks", "the opponent's marks"]

    def action_meaning(self) -> list[str]:
        return [f"mark row {square // 3 + 1}, column {square % 3 + 1}" for square in range(9)]

    def outcome(self) -> Outcome | None:
        last = 1 - self.to_move
        if any(self.marks[last] & line == line for line in _WINS):
            return Outcome.win(last, "three in a row")
        if self.marks[0] | self.marks[1] == _FULL:
            return Outcome.draw("full board")
        return None

    def copy(self) -> Self:
        other = copy(self)
        other.marks = self.marks.copy()
        return other

    def position_key(self) -> tuple[int, int]:
        return (self.marks[0], self.marks[1])  # whose turn it is follows from their number

    def __str__(self) -> str:
        signs = ["X" if self.marks[0] >> s & 1 else "O" if self.marks[1] >> s & 1 else "." for s in range(9)]
        return "\n".join(" ".join(signs[row : row + 3]) for row in (0, 3, 6))
