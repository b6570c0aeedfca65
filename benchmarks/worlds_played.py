"""Whole episodes of a world that one policy plays in all seats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keisei.evaluation.statistics import Interval, mean_interval
from keisei.policies.contract import Policy, Situation
from keisei.training.settings import TrainConfig


@dataclass(frozen=True)
class Played:
    """Whole episodes of a policy in all seats."""

    returns: NDArray[np.float64]
    """[games]: the mean return of the agents of a world."""
    rewards: NDArray[np.float32]
    """[turns, games, seats]; 0 after the end of an episode."""
    actions: NDArray[np.int32]
    """[turns, games, seats]; -1 where a seat did not act."""

    @property
    def mean(self) -> Interval:
        return mean_interval(self.returns.tolist())


def play_episodes(config: TrainConfig, policy: Policy, games: int) -> Played:
    """Plays the first episode of each game, with seeds that no training uses."""
    seed = 1_000_003 + config.run.seed
    world = config.env.make(batch=games, seed=seed)
    seats, running = world.spec.seats, np.ones(games, np.bool_)
    situation, rewards, actions = Situation(world, seed, 0), [], []
    while running.any():
        rows, chosen = situation.rows, policy.act(situation).actions
        acted = np.full((games, seats), -1, np.int32)
        acted[rows.game, rows.seat] = chosen
        step = world.step(chosen)
        rewards.append(np.where(running[:, None], step.rewards, np.float32(0)))
        actions.append(np.where(running[:, None], acted, np.int32(-1)))
        running &= ~step.done
        situation.advance()
    earned = np.stack(rewards)
    return Played(earned.sum(axis=0).mean(axis=1, dtype=np.float64), earned, np.stack(actions))
