"""Advantages: how much better an action was than what was expected, game by game and seat by seat.

Generalised advantage estimation (Schulman et al., 2016): with delta_t = r_t + g V_{t+1} - V_t, the advantage is
A_t = delta_t + g l A_{t+1}. Four things are easy to get wrong in games, and are done here:

- A trajectory belongs to one game. It ends where the game ends, and never runs on into the next one.
- V_{t+1} is the estimate of whoever acts next. In a zero-sum game of two that is the negative of the mover's own,
  unless the mover stays; in other games each seat's decisions form a chain of their own.
- A game that was cut off (truncated) has a value where it was cut, while one that ended has none.
- What an opponent does is part of the world: the chain leads from the learner's decision to its next one, and an
  opponent's own estimate (which may be none at all) is never asked for.

Experience that older weights have played is corrected by V-trace (Espeholt et al., 2018). With pi the policy that
learns now, mu the one that acted, V the values of the former, rho_t = min(rho_bar, pi/mu) and
c_t = l min(c_bar, pi/mu), the targets of the values and the advantages of the actions are

    v_t = V_t + rho_t delta_t + g c_t (v_{t+1} - V_{t+1})        A_t = r_t + g v_{t+1} - V_t
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, FloatArray

UNKNOWN = np.float32(np.nan)
"""Stands for the value of a seat that does not act where its record ends; its own last word is then taken for it."""

Estimates: TypeAlias = tuple[FloatArray, FloatArray]
"""How far targets are from values, v - V, and advantages as in V-trace: A = r + g v' - V."""


@dataclass(frozen=True, slots=True)
class Targets:
    """[steps, slots] each; meaningful where the learner acted."""

    advantages: FloatArray
    returns: FloatArray
    """What the value should have been."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the policy that learns now says of a slab that other weights have played."""

    log_probs: FloatArray
    """[steps, slots]: of the actions that were taken. Looked at where the learner acted."""
    values: FloatArray
    """[steps + 1, slots]"""
    final_values: FloatArray
    """[steps, slots]: of the last positions of truncated games."""


def estimate_advantages(
    slab: Slab,
    discount: float,
    trace: float,
    *,
    zero_sum: bool,
    judged: Judged | None = None,
    rho_clip: float = 1.0,
    trace_clip: float = 1.0,
) -> Targets:
    """Advantages and returns of one slab: by GAE, or by V-trace where it was ``judged``. ``trace`` is lambda.

    Where nothing has changed since the slab was played (pi = mu, the same values), both give the same returns. Their
    advantages differ by how far they look: GAE's is delta_t + g l A_{t+1}, V-trace's is delta_t + g A_{t+1} with
    GAE's own A_{t+1}, that is, lambda begins to count one decision later. With lambda = 1 they are the same.
    """
    terms = _Terms.of(slab, trace, judged, rho_clip, trace_clip)
    if slab.shape.simultaneous:
        corrections, advantages = _per_slot(slab, terms, discount)
    elif zero_sum and slab.shape.seats == 2:
        corrections, advantages = _zero_sum(slab, terms, discount)
    else:
        corrections, advantages = _per_seat(slab, terms, discount)
    returns = corrections + terms.value[: slab.shape.steps]
    return Targets(corrections if judged is None else advantages, returns)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What both estimates are made of. GAE is the case in which rho is 1 and c is lambda."""

    value: FloatArray
    final_value: FloatArray
    rho: Array
    c: Array

    @classmethod
    def of(
        cls, slab: Slab, trace: float, judged: Judged | None, rho_clip: float, trace_clip: float
    ) -> _Terms:
        if judged is None:
            rho, c = (np.broadcast_to(np.float32(number), slab.action.shape) for number in (1, trace))
            return cls(slab.value, slab.final_value, rho, c)
        ratio_log = np.where(slab.policy == 0, judged.log_probs - slab.log_prob, np.float32(0))
        c = np.float32(trace) * _clipped(ratio_log, trace_clip)
        return cls(judged.values, judged.final_values, _clipped(ratio_log, rho_clip), c)


def _clipped(ratio_log: Array, clip: float) -> Array:
    """min(clip, exp(ratio_log)), clipped before the exponential, which else might overflow."""
    return np.exp(np.minimum(ratio_log, np.float32(math.log(clip))))


def _zero_sum(slab: Slab, terms: _Terms, discount: float) -> Estimates:
    """Two seats whose rewards add up to nothing: one chain of plies, in which the view turns with the mover."""
    steps, games = slab.shape.steps, np.arange(slab.shape.games)
    corrections, advantages = np.zeros((2, steps, len(games)), np.float32)
    value, following = terms.value[steps], np.zeros(len(games), np.float32)
    for t in reversed(range(steps)):
        mover, ours = slab.seat[t], slab.policy[t] == 0
        terminated, truncated = slab.terminated[t], slab.truncated[t]
        next_seat = np.where(truncated, slab.final_seat[t], slab.seat[t + 1])
        sign = np.where(next_seat == mover, np.float32(1), np.float32(-1))
        next_value = np.where(truncated, terms.final_value[t], value) * sign * ~terminated
        expected = slab.reward[t, games, mover] + discount * next_value
        delta = expected - terms.value[t]
        ahead = discount * sign * following * ~(terminated | truncated)
        correction = terms.rho[t] * delta + terms.c[t] * ahead
        corrections[t], advantages[t] = correction * ours, (delta + ahead) * ours
        # An opponent's ply is passed over: what is expected there is what comes of it.
        value = np.where(ours, terms.value[t], expected)
        following = np.where(ours, correction, ahead)
    return corrections, advantages


def _per_slot(slab: Slab, terms: _Terms, discount: float) -> Estimates:
    """Every seat acts in every step of its game, unless it has dropped out: a chain for each slot."""
    steps, seats = slab.shape.steps, slab.shape.seats
    corrections, advantages = np.zeros((2, steps, slab.shape.slots), np.float32)
    chain = _Chain(slab.shape.slots, discount)
    chain.value[:] = terms.value[steps] * slab.acting[steps]
    for t in reversed(range(steps)):
        terminated, truncated = np.repeat(slab.terminated[t], seats), np.repeat(slab.truncated[t], seats)
        chain.cut(terminated, truncated, terms.final_value[t])
        chain.reward += slab.reward[t].reshape(-1)
        who = np.flatnonzero(slab.acting[t])
        corrections[t, who], advantages[t, who] = chain.decide(
            who, terms.value[t, who], terms.rho[t, who], terms.c[t, who]
        )
    return corrections, advantages


def _per_seat(slab: Slab, terms: _Terms, discount: float) -> Estimates:
    """Turn-based games in which each seat has rewards of its own: a chain for each (game, seat), whose links are
    the seat's own decisions. What a seat earns while others move belongs to its decision before."""
    steps, games, seats = slab.shape.steps, slab.shape.games, slab.shape.seats
    corrections, advantages = np.zeros((2, steps, games), np.float32)
    chain = _Chain(games * seats, discount)
    rows = np.arange(games) * seats
    chain.value[:] = UNKNOWN
    chain.value[rows + slab.seat[steps]] = terms.value[steps]
    for t in reversed(range(steps)):
        terminated, truncated = np.repeat(slab.terminated[t], seats), np.repeat(slab.truncated[t], seats)
        final = np.full(games * seats, UNKNOWN, np.float32)
        final[rows + slab.final_seat[t]] = terms.final_value[t]
        chain.cut(terminated, truncated, final)
        chain.reward += slab.reward[t].reshape(-1)
        corrections[t], advantages[t] = chain.decide(
            rows + slab.seat[t], terms.value[t], terms.rho[t], terms.c[t]
        )
    return corrections, advantages


class _Chain:
    """Runs backwards through the decisions of many seats at once."""

    def __init__(self, size: int, discount: float) -> None:
        self._discount = discount
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

    def decide(self, who: Array, values: Array, rho: Array, c: Array) -> Estimates:
        """Credit what was earned to the seats that acted; gives their estimates."""
        following_value = np.where(np.isnan(self.value[who]), values, self.value[who])
        delta = self.reward[who] + self._discount * following_value - values
        ahead = self._discount * self._following[who]
        correction: FloatArray = rho * delta + c * ahead
        self._following[who] = correction
        self.value[who] = values
        self.reward[who] = 0
        return correction, delta + ahead
