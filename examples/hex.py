"""Hex on a board of 5 x 5, ready to be trained: each seat joins its two sides with a chain of stones.

keisei train examples/hex.py            # five minutes; it beats a random player within the first
keisei play hex
"""

from __future__ import annotations

import numpy as np

import keisei
from keisei.games import Outcome
from keisei.games.contract import Array
from keisei.games.randomness import KeyedRandom

BESIDE = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, 1), (1, -1))


class Hex(keisei.SingleGame):
    """Seat 0 joins the upper and the lower side. Seat 1 sees the board turned, so that it does the same."""

    name = "hex"
    zero_sum = True
    endings = ("sides joined",)

    def __init__(self, size: int = 5) -> None:
        self.size, self.num_actions = size, size * size
        self.observation = keisei.ObservationSpec((2, size, size), np.dtype(np.uint8))

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move = 0
        self.stones = np.zeros((2, self.size, self.size), np.uint8)
        self.won = False

    def legal(self, seat: int) -> Array:
        free = ~self.stones.any(axis=0)
        return (free if seat == 0 else free.T).ravel()

    def play(self, action: int, rng: KeyedRandom) -> None:
        row, column = divmod(action, self.size)
        place = (row, column) if self.to_move == 0 else (column, row)
        self.stones[self.to_move][place] = 1
        self.won = self.joins_sides(self.to_move, place)
        self.to_move = 1 - self.to_move

    def joins_sides(self, seat: int, place: tuple[int, int]) -> bool:
        """Whether the chain of a stone reaches both sides of its seat."""
        chain = [place]
        for row, column in chain:  # it grows meanwhile
            beside = [(row + down, column + right) for down, right in BESIDE]
            inside = [(r, c) for r, c in beside if 0 <= r < self.size and 0 <= c < self.size]
            chain += [near for near in inside if self.stones[seat][near] and near not in chain]
        return {0, self.size - 1} <= {reached[seat] for reached in chain}

    def observe(self, seat: int) -> Array:
        return self.stones if seat == 0 else self.stones[::-1].transpose(0, 2, 1)

    def outcome(self) -> Outcome | None:
        return Outcome.win(1 - self.to_move, "sides joined") if self.won else None

    def __str__(self) -> str:
        signs = np.array([".", "x", "o"])[self.stones[0] + 2 * self.stones[1]]
        return "\n".join(" " * row + " ".join(line) for row, line in enumerate(signs))

    def move_name(self, action: int) -> str:
        row, column = divmod(action, self.size)
        row, column = (row, column) if self.to_move == 0 else (column, row)
        return f"{'abcdefghijklmnopqrs'[column]}{row + 1}"
