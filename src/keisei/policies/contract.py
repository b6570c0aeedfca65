"""The contract of policies: what a policy gets, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keisei.games.contract import Array, BoolArray, FloatArray, Game, IntArray, Rows


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy decided, with one entry for each row of a situation."""

    actions: IntArray
    log_probs: FloatArray
    """The log-probability of the action, under the distribution that it was drawn from."""
    values: FloatArray
    """The estimated return of the row's seat; 0 if a policy has no estimate."""


class Situation:
    """The rows of a batch that must act now, or some of them.

    Observations and masks are computed once, when a policy asks for them. The next step uses the same memory again,
    so a policy must not keep them.
    """

    def __init__(self, game: Game, seed: int, first_game: int) -> None:
        self.game = game
        self.seed = seed
        """The seed. With ``first_game`` it is the key of all randomness; see ``games.randomness``."""
        self.first_game = first_game
        self.rows: Rows = game.rows()
        self._observations: Array | None = None
        self._legal: BoolArray | None = None
        self._fresh = {"observations": False, "legal": False}

    def advance(self) -> Rows:
        """Reads the games again after a step."""
        self.rows = self.game.rows()
        self._fresh = {"observations": False, "legal": False}
        return self.rows

    @property
    def observations(self) -> Array:
        """[rows, *observation.shape]"""
        if not self._fresh["observations"]:
            self._observations = self.game.observe(out=_fitting(self._observations, len(self.rows)))
            self._fresh["observations"] = True
        assert self._observations is not None
        return self._observations

    @property
    def legal(self) -> BoolArray:
        """[rows, num_actions]"""
        if not self._fresh["legal"]:
            self._legal = self.game.legal(out=_fitting(self._legal, len(self.rows)))
            self._fresh["legal"] = True
        assert self._legal is not None
        return self._legal


def _fitting(memory: Array | None, rows: int) -> Array | None:
    """Gets the memory of an earlier step if it has the same number of rows."""
    return memory if memory is not None and len(memory) == rows else None


class Policy(Protocol):
    """Chooses actions. The same situation, weights and seed give the same decision, in every process and after any
    earlier decisions."""

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        """Decides for all rows, or for those with the indices ``selected``."""
        ...

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        """[n]: the value of positions, for the seat that would act in each."""
        ...


class TrainedPolicy(Policy, Protocol):
    """A policy with learned weights. It also knows the probability of each action."""

    def log_probabilities(self, observations: Array, legal: BoolArray) -> FloatArray:
        """[n, num_actions]: the log-probability of each action before any temperature. Those of actions that are not
        legal are finite, and so low that their probability is 0."""
        ...


@dataclass(frozen=True, slots=True)
class Player:
    """A policy and its name."""

    name: str
    policy: Policy


def no_values(count: int) -> FloatArray:
    return np.zeros(count, np.float32)
