"""Games as users write them in a file of their own: one with a board, one with words, one that draws nothing."""

from __future__ import annotations

import numpy as np

import keisei
from keisei.games import Outcome


class Claim(keisei.SingleGame):
    """Who claims the last of 9 squares wins."""

    name = "claim"
    num_actions = 9
    observation = keisei.ObservationSpec((9,), np.dtype(np.uint8))
    zero_sum = True

    def reset(self, rng: object) -> None:
        self.squares, self.to_move = ["."] * 9, 0

    def legal(self, seat: int) -> list[int]:
        return [square for square, sign in enumerate(self.squares) if sign == "."]

    def play(self, action: int, rng: object) -> None:
        self.squares[action] = "xo"[self.to_move]
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> np.ndarray:
        return np.array([sign != "." for sign in self.squares], np.uint8)

    def outcome(self) -> Outcome | None:
        return None if "." in self.squares else Outcome.win(1 - self.to_move)

    def __str__(self) -> str:
        rows = ["".join(self.squares[at : at + 3]) for at in (0, 3, 6)]
        return "\n".join([*rows, f"{self.squares.count('.')} squares are free"])


class Race(keisei.SingleGame):
    """Who takes the last of 7 stones wins."""

    name = "race"
    num_actions = 3
    observation = keisei.ObservationSpec((1,), np.dtype(np.uint8))
    zero_sum = True

    def reset(self, rng: object) -> None:
        self.stones, self.to_move = 7, 0

    def legal(self, seat: int) -> range:
        return range(min(3, self.stones))

    def play(self, action: int, rng: object) -> None:
        self.stones -= action + 1
        self.to_move = 1 - self.to_move

    def observe(self, seat: int) -> np.ndarray:
        return np.array([self.stones], np.uint8)

    def outcome(self) -> Outcome | None:
        return None if self.stones else Outcome.win(1 - self.to_move)

    def move_name(self, action: int) -> str:
        return f"take {action + 1}"

    def __str__(self) -> str:
        return f"{self.stones} stones are left"


class Blind(Race):
    """The same, drawn by nobody."""

    name = "blind"
    __str__ = keisei.SingleGame.__str__
