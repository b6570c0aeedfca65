"""Who plays: what a policy is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keisei.games.contract import Array, BoolArray, FloatArray, Game, IntArray, Rows


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry for each row of a situation."""

    actions: IntArray
    log_probs: FloatArray
    """Of the action, under the distribution that it was drawn from."""
    values: FloatArray
    """The row's own estimate of its return; 0 where a policy has none."""


class Situation:
    """The rows of a batch that must act now, or some of them.

    Observations and masks are made when a policy asks for them, once, in memory that the next step
    uses again: a policy must not keep them.
    """

    def __init__(self, game: Game, seed: int, first_game: int) -> None:
        self.game = game
        self.seed = seed
        """With ``first_game``, the key of all randomness: see ``games.randomness``."""
        self.first_game = first_game
        self.rows: Rows = game.rows()
        self._observations: Array | None = None
        self._legal: BoolArray | None = None
        self._fresh = {"observations": False, "legal": False}

    def advance(self) -> Rows:
        """Look at the games again, after a step."""
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
    """Memory of an earlier step, where it has as many rows as this one."""
    return memory if memory is not None and len(memory) == rows else None


class Policy(Protocol):
    """Chooses actions. The same situation, weights and seed give the same decision, whatever process it
    runs in and whatever was decided before."""

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        """Decide for all rows, or for those whose indices are ``selected``."""
        ...

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        """[n]: the value of positions, from the view of the seat that would act in each."""
        ...


def no_values(count: int) -> FloatArray:
    return np.zeros(count, np.float32)
