"""Advantages: how much better an action was than what was expected, game by game and seat by seat.

Generalised advantage estimation (Schulman et al., 2016): with delta_t = r_t + g V_{t+1} - V_t, the advantage is
A_t = delta_t + g l A_{t+1}. Three things are easy to get wrong in games, and are done here:

- A trajectory belongs to one game. It ends where the game ends, and never runs on into the next one.
- V_{t+1} is the estimate of whoever acts next. In a zero-sum game of two that is the negative of the mover's own,
  unless the mover stays; in other games each seat's decisions form a chain of their own.
- A game that was cut off (truncated) has a value where it was cut, while one that ended has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, FloatArray

UNKNOWN = np.float32(np.nan)
"""Stands for the value of a seat that does not act where its record ends; its own last word is then taken for it."""


@dataclass(frozen=True, slots=True)
class Targets:
    """[steps, slots] each; meaningful where a row acted."""

    advantages: FloatArray
    returns: FloatArray
    """Advantage plus value: what the value should have been."""


def estimate_advantages(slab: Slab, discount: float, trace: float, *, zero_sum: bool) -> Targets:
    """Advantages and returns of one slab. ``trace`` is GAE's lambda."""
    if slab.shape.simultaneous:
        advantages = _per_slot(slab, discount, trace)
    elif zero_sum and slab.shape.seats == 2:
        advantages = _zero_sum(slab, discount, trace)
    else:
        advantages = _per_seat(slab, discount, trace)
    return Targets(advantages, advantages + slab.value[: slab.shape.steps])


def _zero_sum(slab: Slab, discount: float, trace: float) -> FloatArray:
    """Two seats whose rewards add up to nothing: one chain of plies, in which the view turns with the mover."""
    steps, games = slab.shape.steps, np.arange(slab.shape.games)
    advantages = np.zeros((steps, slab.shape.games), np.float32)
    following = np.zeros(slab.shape.games, np.float32)
    for t in reversed(range(steps)):
        mover = slab.seat[t]
        terminated, truncated = slab.terminated[t], slab.truncated[t]
        next_seat = np.where(truncated, slab.final_seat[t], slab.seat[t + 1])
        sign = np.where(next_seat == mover, np.float32(1), np.float32(-1))
        next_value = np.where(truncated, slab.final_value[t], slab.value[t + 1]) * sign * ~terminated
        reward = slab.reward[t, games, mover]
        delta = reward + discount * next_value - slab.value[t]
        following = delta + discount * trace * sign * following * ~(terminated | truncated)
        advantages[t] = following
    return advantages


def _per_slot(slab: Slab, discount: float, trace: float) -> FloatArray:
    """Every seat acts in every step of its game, unless it has dropped out: a chain for each slot."""
    steps, seats = slab.shape.steps, slab.shape.seats
    advantages = np.zeros((steps, slab.shape.slots), np.float32)
    chain = _Chain(slab.shape.slots, discount, trace)
    chain.value[:] = slab.value[steps] * slab.acting[steps]
    for t in reversed(range(steps)):
        terminated = np.repeat(slab.terminated[t], seats)
        truncated = np.repeat(slab.truncated[t], seats)
        chain.cut(terminated, truncated, slab.final_value[t])
        chain.reward += slab.reward[t].reshape(-1)
        advantages[t] = chain.decide(slab.acting[t], slab.value[t])
    return advantages


def _per_seat(slab: Slab, discount: float, trace: float) -> FloatArray:
    """Turn-based games in which each seat has rewards of its own: a chain for each (game, seat), whose links are
    the seat's own decisions. What a seat earns while others move belongs to its decision before."""
    steps, games, seats = slab.shape.steps, slab.shape.games, slab.shape.seats
    advantages = np.zeros((steps, games), np.float32)
    chain = _Chain(games * seats, discount, trace)
    rows = np.arange(games) * seats
    chain.value[:] = UNKNOWN
    chain.value[rows + slab.seat[steps]] = slab.value[steps]
    for t in reversed(range(steps)):
        terminated, truncated = np.repeat(slab.terminated[t], seats), np.repeat(slab.truncated[t], seats)
        final = np.full(games * seats, UNKNOWN, np.float32)
        final[rows + slab.final_seat[t]] = slab.final_value[t]
        chain.cut(terminated, truncated, final)
        chain.reward += slab.reward[t].reshape(-1)
        acting = np.zeros(games * seats, np.bool_)
        acting[rows + slab.seat[t]] = True
        values = np.zeros(games * seats, np.float32)
        values[rows + slab.seat[t]] = slab.value[t]
        advantages[t] = chain.decide(acting, values)[rows + slab.seat[t]]
    return advantages


class _Chain:
    """Runs backwards through the decisions of many seats at once."""

    def __init__(self, size: int, discount: float, trace: float) -> None:
        self._discount, self._trace = discount, trace
        self.value = np.zeros(size, np.float32)
        """Of each seat's next decision."""
        self.reward = np.zeros(size, np.float32)
        """Earned since, but not yet credited to a decision."""
        self._following = np.zeros(size, np.float32)

    def cut(self, terminated: BoolArray, truncated: BoolArray, final_value: Array) -> None:
        """A game ended in this step: what came after belongs to the next game."""
        ended = terminated | truncated
        self.value = np.where(ended, np.where(truncated, final_value, 0), self.value).astype(np.float32)
        self.reward[ended] = 0
        self._following[ended] = 0

    def decide(self, acting: BoolArray, values: Array) -> FloatArray:
        """Credit what was earned to those that acted; gives their advantages, and 0 for the others."""
        following_value = np.where(np.isnan(self.value), values, self.value)
        delta = self.reward + self._discount * following_value - values
        advantage = delta + self._discount * self._trace * self._following
        self._following = np.where(acting, advantage, self._following).astype(np.float32)
        self.value = np.where(acting, values, self.value).astype(np.float32)
        self.reward[acting] = 0
        return np.where(acting, advantage, 0).astype(np.float32)
