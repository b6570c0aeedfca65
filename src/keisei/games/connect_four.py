"""Connect four: pieces fall down in columns, and four in a row win."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from keisei.games.contract import Array, ByteArray, ObservationSpec
from keisei.games.grid_faces import DropFace
from keisei.games.options import whole_number
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome, SingleGame

_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


class ConnectFour(SingleGame):
    """Seat 0 begins. Action c drops a piece in column c; the board's size and the length of a winning
    row are options."""

    zero_sum = True
    endings = ("line", "full board")

    def __init__(self, rows: int = 6, columns: int = 7, connect: int = 4) -> None:
        self.rows = whole_number("rows", rows, 1, 32)
        self.columns = whole_number("columns", columns, 1, 32)
        self.connect = whole_number("connect", connect, 2, max(2, self.rows, self.columns))
        self.name = "connect-four"
        self.num_actions = self.columns
        self.observation = ObservationSpec((2, self.rows, self.columns), np.dtype(np.uint8))
        self.face = DropFace(self.rows, self.columns)

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move = 0
        self.pieces: ByteArray = np.zeros((2, self.rows, self.columns), np.uint8)
        """[seat, row, column], row 0 at the top."""
        self.heights = [0] * self.columns
        self.won = False

    def legal(self, seat: int) -> list[int]:
        return [column for column, height in enumerate(self.heights) if height < self.rows]

    def play(self, action: int, rng: KeyedRandom) -> None:
        row = self.rows - 1 - self.heights[action]
        self.pieces[self.to_move, row, action] = 1
        self.heights[action] += 1
        self.won = self._makes_line(row, action)
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> Array:
        """Plane 0 has the pieces of the observing seat, plane 1 those of the other."""
        return self.pieces if seat == 0 else self.pieces[::-1]

    def move_name(self, action: int) -> str:
        """Columns are counted from 1 at the left."""
        return str(action + 1)

    def observation_meaning(self) -> list[str]:
        return ["own pieces; row 0 is at the top", "the opponent's pieces"]

    def action_meaning(self) -> list[str]:
        return [f"drop a piece in column {column}" for column in range(1, self.columns + 1)]

    def outcome(self) -> Outcome | None:
        if self.won:
            return Outcome.win(1 - self.to_move, "line")
        if sum(self.heights) == self.rows * self.columns:
            return Outcome.draw("full board")
        return None

    def _makes_line(self, row: int, column: int) -> bool:
        """Checks if the last piece completes a line. Only lines through it can be new."""
        return any(
            1 + self._run(row, column, down, right) + self._run(row, column, -down, -right) >= self.connect
            for down, right in _DIRECTIONS
        )

    def _run(self, row: int, column: int, down: int, right: int) -> int:
        """Counts the pieces of the same seat that follow in one direction."""
        mine = self.pieces[self.to_move]
        length = 0
        row, column = row + down, column + right
        while 0 <= row < self.rows and 0 <= column < self.columns and mine[row, column]:
            length += 1
            row, column = row + down, column + right
        return length

    def copy(self) -> Self:
        other = copy(self)
        other.pieces, other.heights = self.pieces.copy(), self.heights.copy()
        return other

    def position_key(self) -> tuple[int, int, bytes]:
        return (self.rows, self.connect, self.pieces.tobytes())  # whose turn it is follows from their number

    def __str__(self) -> str:
        signs = np.full((self.rows, self.columns), ".")
        signs[self.pieces[0] == 1] = "X"
        signs[self.pieces[1] == 1] = "O"
        return "\n".join(" ".join(row) for row in signs)
