"""A game of three seats, from its rules to a trained player: Pig, a race with one die.

In your turn you roll as often as you like, and the pips add up. A 1 loses the pips of this turn, and the turn is over.
If you hold, you keep them as points. The first player with 30 points and pips ends the game. The score of each
player is its points, as a share of these 30.

    python examples/three_seats.py

trains a run with the settings in three_seats.yaml, and tells how it does in one seat while random players have the
other two.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import keisei
from keisei.games import Outcome
from keisei.games.contract import Array
from keisei.games.randomness import KeyedRandom

ROLL, HOLD = range(2)
SETTINGS = Path(__file__).with_name("three_seats.yaml")


class Pig(keisei.SingleGame):
    """Roll and risk, or hold and keep."""

    name = "pig"
    seats = 3
    num_actions = 2
    # The pips of this turn, and the points of all players: mine, then those of the next players.
    observation = keisei.ObservationSpec((4,), np.dtype(np.uint8), scale=(1 / 30,) * 4)
    endings = ("goal reached",)

    def __init__(self, goal: int = 30) -> None:
        self.goal = goal

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move = 0
        self.pips = 0
        self.points = [0, 0, 0]

    def legal(self, seat: int) -> list[int]:
        return [ROLL, HOLD] if self.pips else [ROLL]

    def play(self, action: int, rng: KeyedRandom) -> None:
        face = 1 + rng.integer(6)
        if action == ROLL:
            self.pips = self.pips + face if face > 1 else 0
        if action == HOLD or self.points[self.to_move] + self.pips >= self.goal:
            self.points[self.to_move] += self.pips
            self.pips = 0
        if not self.pips:
            self.to_move = (self.to_move + 1) % self.seats

    def observe(self, seat: int) -> Array:
        others = [self.points[(seat + turn) % self.seats] for turn in range(self.seats)]
        return np.array([self.pips, *others], np.uint8)

    def outcome(self) -> Outcome | None:
        if max(self.points) < self.goal:
            return None
        return Outcome(tuple(points / self.goal for points in self.points), "goal reached")


def main(root: str | Path = "runs") -> None:
    keisei.check_game(Pig)
    result = keisei.train(SETTINGS, root=root)
    assert result.evaluation is not None
    for row in result.evaluation.rows:
        print(  # noqa: T201
            f"against {row.opponent}: return {row.mean_return:.2f} ({row.return_low:.2f} to {row.return_high:.2f}), "
            f"theirs {row.opponent_return:.2f}, mean rank {row.mean_rank:.2f} of {row.seats}"
        )


if __name__ == "__main__":
    main()
