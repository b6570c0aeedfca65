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

Games continue after the end of a slab. Where a seat of the chain acts there, the value of that position is used. The
last decision of a seat that waits stays *open* until a later slab of its table (``experience.open_decisions``), and
earlier decisions use its value.

All of this is in the links of decisions (``experience.links``). The estimators themselves are one pass over them,
backwards, and know neither seats nor games (``native/links/links.cpp``).

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
from keisei.experience.linked_slab import LinkedSlab
from keisei.games.contract import FloatArray


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


def estimate(
    linked: LinkedSlab, rule: CreditRule, behaviour: FloatArray, advantages: FloatArray, returns: FloatArray
) -> None:
    """Computes ``advantages`` and ``returns``, [n] each: by GAE, or by V-trace if the slab was judged again.
    ``behaviour`` are the log-probabilities under the policy that acted.

    If nothing has changed since the slab was played (pi = mu, the same values), both give the same returns. Their
    advantages differ: GAE's is delta_t + g l A_{t+1}, V-trace's is delta_t + g A_{t+1} with GAE's own A_{t+1}. So
    lambda counts one decision later. With lambda = 1 they are the same.
    """
    rho = c = np.zeros(0, np.float32)
    if linked.log_probs is not None:
        rho, c = _ratios(linked.log_probs - behaviour, rule)
    places = linked.places.astype(np.int32)
    linked.maker.estimate(
        *linked.links.arrays, linked.values, rho, c, rule.trace, places, advantages, returns
    )


def _ratios(logs: FloatArray, rule: CreditRule) -> tuple[FloatArray, FloatArray]:
    """Computes V-trace's clipped ratios pi/mu: one for rho, one for c. They are clipped before the exponential,
    which might overflow."""
    rho, c = (
        np.exp(np.minimum(logs, np.float32(math.log(clip)))) for clip in (rule.rho_clip, rule.trace_clip)
    )
    return rho, c
