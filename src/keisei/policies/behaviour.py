"""A behaviour: what a learner publishes, and workers play with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import nn

from keisei.games.contract import FloatArray, IntArray

__all__ = ["Behaviour", "PlaySettings", "epsilon_of_games"]


class PlaySettings(NamedTuple):
    """How freely a network is played."""

    temperature: float = 1.0
    """Temperature of the distribution that actions are drawn from; 0 takes the best action."""
    epsilon: float = 0.0
    """Share of decisions that are random."""
    spread: float = 0.0
    """How much epsilon differs between games; see ``epsilon_of_games``. 0 is the same epsilon for all."""


@dataclass(frozen=True, eq=False)
class Behaviour:
    """A network, and how freely it is played. Each publication has a version, and orders name it."""

    network: nn.Module
    """The network. Its weights are copied when it is published."""
    temperature: float = 1.0
    epsilon: float = 0.0
    spread: float = 0.0

    @property
    def settings(self) -> PlaySettings:
        return PlaySettings(self.temperature, self.epsilon, self.spread)


def epsilon_of_games(epsilon: float, spread: float, games: IntArray, total: int) -> float | FloatArray:
    """Gives the epsilon of each of ``games``, by its number 0 … total-1: epsilon^(1 + spread · number/(total-1)).

    So some games explore much and others little (Ape-X; Horgan and others, 2018, with a spread of 7). It depends
    only on the number of the game, whoever plays it. Without a spread it is one number.
    """
    if not spread:
        return epsilon
    share = games / max(1, total - 1)
    return np.power(epsilon, 1 + spread * share).astype(np.float32)
