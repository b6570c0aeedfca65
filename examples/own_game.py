"""A game of your own, in one small class: both seats act at once, and there is chance.

Each round has a random prize of 1 to 5. Both players show rock, paper or scissors at the same time. The winner
takes the prize; if they show the same, nobody does. After ten rounds the game is over.

    python examples/own_game.py
"""

from __future__ import annotations

import numpy as np

import keisei
from keisei.games import Outcome
from keisei.games.contract import Array
from keisei.games.randomness import KeyedRandom

ROCK, PAPER, SCISSORS = range(3)


class PrizeDuel(keisei.SingleGame):
    """Rock, paper, scissors for ten random prizes."""

    name = "prize-duel"
    num_actions = 3
    # The prize, the remaining rounds, and what each player showed last (0 in the first round): mine, then theirs.
    observation = keisei.ObservationSpec((4,), np.dtype(np.uint8), scale=(0.2, 0.1, 0.33, 0.33))
    simultaneous = True
    zero_sum = True
    scored_by_rewards = True

    def __init__(self, rounds: int = 10) -> None:
        self.rounds = rounds

    def reset(self, rng: KeyedRandom) -> None:
        self.left = self.rounds
        self.prize = 1 + rng.integer(5)
        self.shown = (0, 0)

    def legal(self, seat: int) -> list[int]:
        return [ROCK, PAPER, SCISSORS]

    def play(self, action: tuple[int, int], rng: KeyedRandom) -> list[float]:
        mine, theirs = action
        sign = (0, 1, -1)[(mine - theirs) % 3]
        rewards = [float(sign * self.prize), float(-sign * self.prize)]
        self.left -= 1
        self.shown = (mine + 1, theirs + 1)
        self.prize = 1 + rng.integer(5)
        return rewards

    def observe(self, seat: int) -> Array:
        return np.array([self.prize, self.left, self.shown[seat], self.shown[1 - seat]], np.uint8)

    def outcome(self) -> Outcome | None:
        return Outcome() if self.left == 0 else None


def main() -> None:
    keisei.check_game(PrizeDuel)
    game = keisei.make_game(PrizeDuel, batch=256, seed=7)
    scores = []
    while len(scores) < 1000:
        step = game.step(game.random_actions())
        scores += step.scores[step.done, 0].tolist()
    print(f"{len(scores)} games at random: player 0 takes {np.mean(scores):+.2f} on average")  # noqa: T201


if __name__ == "__main__":
    main()
