"""Advantages: how much better an action was than expected, for each game and seat.

Generalised advantage estimation (Schulman et al., 2016): with delta_t = r_t + g V_{t+1} - V_t, the advantage is
A_t = delta_t + g l A_{t+1}. In games, five points need care:

- A trajectory belongs to one game. It ends with the game, and never continues into the next one.
- V_{t+1} is the estimate of the seat that acts next. In a zero-sum game of two its sign is changed, unless the same
  seat moves again. In other games each seat's decisions form their own chain.
- A truncated game has a value at its last position, a terminated game has none. A seat without its own last
  position uses the value of its own last decision.
- Decisions of others are part of the environment. The chain leads from a decision of the owner to the owner's next
  one. Estimates of others, if there are any, are never used.
- Time is counted in plies. Where the next decision of a chain comes k plies later, the target is

      r_t + g r_{t+1} + … + g^(k-1) r_{t+k-1} + g^k V_{t+k}

  and the trace is multiplied by l^k. So both have the same meaning in zero-sum games and in other games.

Games continue after the end of a slab. A zero-sum chain of two uses the value of the last position. In other games,
a seat that acts there does so too. The last decision of a seat that waits stays *open*. It is carried to the next
slab of its table (``experience.carry``), and earlier decisions use its value.

V-trace (Espeholt et al., 2018) corrects experience of older weights. With pi the policy that learns now, mu the one
that acted, V the values of the former, rho_t = min(rho_bar, pi/mu) and c_t = l^k min(c_bar, pi/mu), the targets of
the values and the advantages of the actions are (k is 1 here)

    v_t = V_t + rho_t delta_t + g c_t (v_{t+1} - V_{t+1})        A_t = r_t + g v_{t+1} - V_t
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keisei.errors import ConfigError
from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, FloatArray, GameSpec


@dataclass(frozen=True, slots=True)
class CreditRule:
    """Discount, trace and clips of the estimators."""

    discount: float
    """g: the worth of a reward one ply later."""
    trace: float
    """Lambda: the factor by which temporal differences fade per ply."""
    rho_clip: float = 1.0
    """V-trace's limit on the ratio of a temporal difference (rho)."""
    trace_clip: float = 1.0
    """V-trace's limit on the ratio that passes later temporal differences back (c)."""

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1 or not 0 <= self.trace <= 1:
            raise ConfigError(
                f"discount is in (0, 1] and lambda in [0, 1]; got {self.discount} and {self.trace}"
            )
        if self.rho_clip <= 0 or self.trace_clip <= 0:
            raise ConfigError(
                f"rho_clip and trace_clip are above 0 (1 is usual); got {self.rho_clip} and {self.trace_clip}"
            )


@dataclass(frozen=True, slots=True)
class Judged:
    """A slab as the policy that learns now evaluates it."""

    log_probs: FloatArray
    """[steps, slots]: log-probabilities of the actions that were taken. Used where the owner acted."""
    values: FloatArray
    """[steps + 1, slots]"""
    final_values: FloatArray
    """[steps, slots]: values of the last positions of truncated games."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What each seat can expect at the first position of a slab, [games * seats] each. It closes decisions of
    earlier slabs."""

    worth: FloatArray
    """Rewards up to the seat's next decision and the value there, discounted to the first position."""
    own: FloatArray
    """How much the value of the seat's last decision is added. It is not 0 if the game is truncated and the seat
    has no last position."""
    ahead: FloatArray
    """The target of the next decision minus its value, v - V, discounted to the first position."""
    trail: FloatArray
    """The same, multiplied by the trace."""
    closes: BoolArray
    """False where the seat never acts and its game continues; ``worth`` is then its rewards."""


@dataclass(frozen=True, slots=True)
class OpenDecisions:
    """The last decisions of seats that wait at the end of a slab, [n] each."""

    step: Array
    slot: Array
    place: Array
    """game * seats + seat"""
    earned: FloatArray
    """Rewards from the decision to the end of the slab, discounted to the decision."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Advantages and returns of a slab."""

    advantages: FloatArray
    """[steps, slots]; meaningful where ``settled``."""
    returns: FloatArray
    """[steps, slots]: the targets of the values; meaningful where ``settled``."""
    settled: BoolArray
    """[steps, slots]: decisions of the owner that are not open."""
    open: OpenDecisions | None = None
    """None in a zero-sum chain of two, where nothing is carried."""
    outlook: Outlook | None = None
    """None in a zero-sum chain of two."""


def carries(spec: GameSpec) -> bool:
    """Whether decisions are carried in this game: whether a seat may wait at the end of a slab."""
    return spec.simultaneous or (spec.seats > 1 and not (spec.zero_sum and spec.seats == 2))


def owned_by(slab: Slab, owner: int) -> BoolArray:
    """[steps, slots]: True where a decision belongs to this learner."""
    owned: BoolArray = slab.acting[: slab.shape.steps] & (slab.owner == owner)
    return owned


def estimate_advantages(
    slab: Slab, rule: CreditRule, *, zero_sum: bool, owner: int = 0, judged: Judged | None = None
) -> Targets:
    """Computes advantages and returns of one owner in one slab: by GAE, or by V-trace if it was ``judged``.

    If nothing has changed since the slab was played (pi = mu, the same values), both give the same returns. Their
    advantages differ: GAE's is delta_t + g l A_{t+1}, V-trace's is delta_t + g A_{t+1} with GAE's own A_{t+1}. So
    lambda counts one decision later. With lambda = 1 they are the same.
    """
    owned = owned_by(slab, owner)
    terms = _Terms.of(slab, rule, owned, judged)
    if zero_sum and slab.shape.seats == 2 and not slab.shape.simultaneous:
        return _zero_sum(slab, terms, rule, owned)
    return _per_seat(slab, terms, rule, owned)


def ratios(log_probs: Array, behaviour: Array, rule: CreditRule) -> tuple[Array, Array]:
    """Computes V-trace's clipped ratios pi/mu: one for rho, one for c. They are clipped before the exponential,
    which might overflow."""
    ratio_log = log_probs - behaviour
    rho, c = (
        np.exp(np.minimum(ratio_log, np.float32(math.log(clip)))) for clip in (rule.rho_clip, rule.trace_clip)
    )
    return rho, c


@dataclass(frozen=True, slots=True)
class _Terms:
    """The inputs of both estimators. In GAE all ratios are 1."""

    value: FloatArray
    final_value: FloatArray
    rho: Array
    c: Array
    """The clipped ratio c, without its power of lambda."""
    corrected: bool
    """True for V-trace, whose advantages are r + g v' - V; GAE's are v - V."""

    @classmethod
    def of(cls, slab: Slab, rule: CreditRule, owned: BoolArray, judged: Judged | None) -> _Terms:
        if judged is None:
            one = np.broadcast_to(np.float32(1), slab.action.shape)
            return cls(slab.value, slab.final_value, one, one, False)
        rho, c = ratios(np.where(owned, judged.log_probs, slab.log_prob), slab.log_prob, rule)
        return cls(judged.values, judged.final_values, rho, c, True)


def _zero_sum(slab: Slab, terms: _Terms, rule: CreditRule, owned: BoolArray) -> Targets:
    """Estimates for two seats with zero sum: one chain of plies, in which the sign changes with the mover."""
    steps, value = slab.shape.steps, terms.value
    earned, link = _turning(slab, terms, rule.discount)
    fading = link * np.float32(rule.trace)
    whole = bool(owned.all())
    corrections, advantages = np.zeros((2, *owned.shape), np.float32)
    next_value = value[steps]
    ahead = trail = np.zeros(slab.shape.games, np.float32)
    for t in reversed(range(steps)):
        expected = earned[t] + link[t] * next_value
        ahead, trail = link[t] * ahead, fading[t] * trail
        delta = expected - value[t]
        correction = terms.rho[t] * delta + terms.c[t] * trail
        corrections[t], advantages[t] = correction, delta + ahead
        if whole:
            next_value, ahead, trail = value[t], correction, correction
        else:  # plies of others are skipped: the expectation there is that of the next own ply
            ours = owned[t]
            next_value = np.where(ours, value[t], expected)
            ahead, trail = np.where(ours, correction, ahead), np.where(ours, correction, trail)
    chosen = advantages if terms.corrected else corrections
    return Targets(chosen, corrections + value[:steps], owned)


def _turning(slab: Slab, terms: _Terms, discount: float) -> tuple[FloatArray, FloatArray]:
    """Gives two arrays [steps, games]: the mover's reward of each ply, including the value where its game was
    truncated; and the factor of the next ply, from the mover's view."""
    steps = slab.shape.steps
    mover = slab.seat[:steps]
    next_seat = np.where(slab.truncated, slab.final_seat, slab.seat[1:])
    turn = np.where(next_seat == mover, np.float32(discount), np.float32(-discount))
    earned: FloatArray = np.take_along_axis(slab.reward, mover[..., None], axis=2)[..., 0]
    cut = np.nonzero(slab.truncated)
    earned[cut] += turn[cut] * terms.final_value[cut]
    turn[slab.terminated | slab.truncated] = 0
    return earned, turn


def _per_seat(slab: Slab, terms: _Terms, rule: CreditRule, owned: BoolArray) -> Targets:
    """Estimates for seats with their own rewards: a chain for each (game, seat) of the seat's own decisions.
    Rewards while a seat waits or rests belong to its decision before."""
    steps, place = slab.shape.steps, _places(slab)
    at, counted = place[:steps][owned], owned.sum(1)
    last = _last_decisions(slab, np.arange(steps).repeat(counted), at, place)
    settled = owned.copy()
    settled[last.step, last.slot] = False
    # One list of all decisions, step by step. A slice of it is cheaper than selecting the owner's rows in each step.
    bounds = [0, *counted.cumsum().tolist()]
    value, rho, c = (column[:steps][owned] for column in (terms.value, terms.rho, terms.c))
    counts = settled[owned].astype(np.float32)
    targets, corrections, aheads = np.zeros((3, len(at)), np.float32)
    inflow, link = _seat_flow(slab, terms, rule.discount)
    state = np.zeros((4, link.shape[1]), np.float32)
    worth, own, ahead, trail = state
    end = np.flatnonzero(slab.acting[steps])
    worth[place[steps, end]] = terms.value[steps, end]
    fade = np.float32(rule.trace)
    for t in reversed(range(steps)):
        state *= link[t]
        trail *= fade
        state[:2] += inflow[t]
        mine = slice(bounds[t], bounds[t + 1])
        who, now = at[mine], value[mine]
        target = worth[who] + own[who] * now
        correction = (rho[mine] * (target - now) + c[mine] * trail[who]) * counts[mine]
        targets[mine], corrections[mine], aheads[mine] = target, correction, ahead[who]
        worth[who], own[who], ahead[who], trail[who] = now, 0, correction, correction
    advantages, returns, earned = np.zeros((3, *owned.shape), np.float32)
    advantages[owned] = targets - value + aheads if terms.corrected else corrections
    returns[owned] = value + corrections
    earned[owned] = targets
    return Targets(
        advantages,
        returns,
        settled,
        OpenDecisions(last.step, last.slot, last.place, earned[last.step, last.slot]),
        Outlook(worth, own, ahead, trail, last.closes),
    )


def _places(slab: Slab) -> Array:
    """[steps + 1, slots]: game * seats + seat of each row."""
    shape = slab.shape
    if shape.simultaneous:
        return np.broadcast_to(np.arange(shape.slots), slab.seat.shape)
    return np.arange(shape.games) * shape.seats + slab.seat


@dataclass(frozen=True, slots=True)
class _LastDecisions:
    """The open decisions of a slab, [n] each, and the seats that close earlier ones."""

    step: Array
    slot: Array
    place: Array
    closes: BoolArray
    """[games * seats]: as in ``Outlook``."""


def _last_decisions(slab: Slab, step: Array, at: Array, place: Array) -> _LastDecisions:
    """Finds the open decisions: the last decision of a seat is open if no game ended after it and the seat waits at
    the end of the slab. ``step`` and ``at`` give step and place of the owner's decisions, in the order of steps."""
    shape = slab.shape
    places = shape.games * shape.seats
    decided = np.full(places, -1)
    decided[at] = step  # the last one stays
    done = slab.terminated | slab.truncated
    ended = np.where(done.any(0), shape.steps - 1 - done[::-1].argmax(0), -1).repeat(shape.seats)
    waits = np.ones(places, np.bool_)
    waits[place[shape.steps, slab.acting[shape.steps]]] = False
    waiting = np.flatnonzero(waits & (decided > ended))
    closes = ~waits | (decided >= 0) | (ended >= 0)
    slot = waiting if shape.simultaneous else waiting // shape.seats
    return _LastDecisions(decided[waiting], slot, waiting, closes)


def _seat_flow(slab: Slab, terms: _Terms, discount: float) -> tuple[FloatArray, FloatArray]:
    """Gives what each ply brings to each (game, seat), and the factor of the next ply.

    The first is [steps, 2, games * seats]: rewards, including the value where the game was truncated; and the
    weight of the seat's own last value, where it has no last position. The second is [steps, games * seats].
    """
    steps, games, seats = slab.reward.shape
    inflow: FloatArray = np.zeros((steps, 2, games * seats), np.float32)
    inflow[:, 0] = slab.reward.reshape(steps, -1)
    step, game = np.nonzero(slab.truncated)
    inflow.reshape(steps, 2, games, seats)[step, 1, game] = discount
    step, slot = np.nonzero(slab.finished("final_value") & (slab.final_seat >= 0))
    at = slot if slab.shape.simultaneous else slot * seats + slab.final_seat[step, slot]
    inflow[step, 0, at] += discount * terms.final_value[step, slot]
    inflow[step, 1, at] = 0
    goes_on = ~(slab.terminated | slab.truncated)
    return inflow, (goes_on * np.float32(discount)).repeat(seats, axis=1)
