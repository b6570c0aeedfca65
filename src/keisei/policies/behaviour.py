"""A behaviour: what a learner publishes, and policies in workers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from keisei.games.contract import Array, BoolArray, FinalRows, FloatArray, IntArray, Rows
from keisei.policies.contract import Policy
from keisei.policies.networks import ActorCritic

__all__ = ["Behaviour", "LearnerPolicy", "Play", "PlaySettings", "TableGames", "epsilon_of_games"]


class PlaySettings(NamedTuple):
    """How freely one player draws its actions."""

    temperature: float = 1.0
    """Temperature of the distribution that actions are drawn from; 0 takes the best action."""
    epsilon: float = 0.0
    """Share of decisions that are random."""
    spread: float = 0.0
    """How much epsilon differs between games; see ``epsilon_of_games``. 0 is the same epsilon for all."""


Play: TypeAlias = tuple[PlaySettings, ...]
"""One entry if one network plays all seats, else one for the agent of each seat."""


class Behaviour:
    """A network, and how freely it is played. Each publication has a version, and orders name it."""

    def __init__(
        self,
        network: ActorCritic,
        temperature: float = 1.0,
        epsilon: float = 0.0,
        spread: float = 0.0,
        *,
        agents: Play = (),
    ) -> None:
        """``agents`` say how freely the agent of each seat plays, in place of the three numbers."""
        self.network = network
        """The network. Its weights are copied when it is published."""
        self.settings: Play = agents or (PlaySettings(temperature, epsilon, spread),)


@dataclass(frozen=True, slots=True)
class TableGames:
    """The numbers of the games of a table, among those of all tables."""

    first: int
    count: int
    total: int

    @property
    def numbers(self) -> IntArray:
        return np.arange(self.first, self.first + self.count, dtype=np.int32)


class LearnerPolicy(Policy, Protocol):
    """The policy of the learner at one table. It is told its behaviour, and asked for decisions and values."""

    def behave(self, settings: Play, games: TableGames) -> None:
        """Plays as freely as ``settings`` say from now on."""
        ...

    def owners(self, rows: Rows) -> Array | int:
        """[rows]: who learns from each decision; one number if it is the same for all."""
        ...

    def values(self, observations: Array, legal: BoolArray, rows: Rows | FinalRows) -> FloatArray:
        """[rows]: the values of positions of this table, for the seat of each row."""
        ...


def epsilon_of_games(epsilon: float, spread: float, games: IntArray, total: int) -> float | FloatArray:
    """Computes the epsilon of each of ``games``, by its number 0 … total-1: epsilon^(1 + spread · number/(total-1)).

    So some games explore much and others little (Ape-X; Horgan and others, 2018, with a spread of 7). It depends
    only on the number of the game, whoever plays it. Without a spread it is one number.
    """
    if not spread:
        return epsilon
    share = games / max(1, total - 1)
    return np.power(epsilon, 1 + spread * share).astype(np.float32)
