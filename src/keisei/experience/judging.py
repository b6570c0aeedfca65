"""What the policy that learns now makes of experience that was played before."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keisei.experience.advantages import Judged
from keisei.experience.slab import Slab
from keisei.games.contract import BoolArray, ByteArray, FloatArray, IntArray


class Judge(Protocol):
    """The policy that learns, asked what it makes of decisions that were taken before."""

    def __call__(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """The log-probability of each action and the value of each position, [n] both. Positions that are asked
        about for their value alone come with action 0, be it legal or not."""
        ...


def judge_slab(judge: Judge, slab: Slab, chosen: BoolArray) -> Judged:
    """Ask once about the chosen decisions and all positions that bootstrap: where the slab ends, and where games
    were cut off. Elsewhere, what was written when it was played stands."""
    steps = slab.shape.steps
    end = slab.acting[steps]
    cut = slab.finished("final_value") & (slab.final_seat >= 0)
    parts = (slab.packed[:steps][chosen], slab.packed[steps][end], slab.final_packed[cut])
    packed = np.concatenate(parts)
    actions = np.zeros(len(packed), np.int32)
    actions[: len(parts[0])] = slab.action[chosen]
    log_probs, values = judge(packed, actions)
    at_decisions, at_end, at_cuts = np.split(values, np.cumsum([len(part) for part in parts[:-1]]))
    judged = Judged(slab.log_prob.copy(), slab.value.copy(), np.zeros_like(slab.final_value))
    judged.log_probs[chosen] = log_probs[: len(parts[0])]
    judged.values[:steps][chosen] = at_decisions
    judged.values[steps, end] = at_end
    judged.final_values[cut] = at_cuts
    return judged
