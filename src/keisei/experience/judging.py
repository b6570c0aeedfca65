"""Evaluates earlier experience with the policy that learns now."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keisei.experience.advantages import Judged
from keisei.experience.slab import Slab
from keisei.games.contract import BoolArray, ByteArray, FloatArray, IntArray


class Judge(Protocol):
    """Evaluates earlier decisions with the policy that learns."""

    def __call__(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Gives the log-probability of each action and the value of each position, [n] both. For positions that
        only need a value, the action is 0, legal or not."""
        ...


def judge_slab(judge: Judge, slab: Slab, chosen: BoolArray) -> Judged:
    """Evaluates the chosen decisions and all positions that bootstrap: at the end of the slab, and where games were
    truncated. Elsewhere the stored numbers stay."""
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
