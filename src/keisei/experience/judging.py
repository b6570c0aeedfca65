"""Evaluates earlier experience with the policy that learns now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from keisei.experience.linked_slab import LinkedSlab
from keisei.games.contract import ByteArray, FloatArray, IntArray


class Judge(Protocol):
    """Evaluates earlier decisions with the policy that learns."""

    def __call__(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Computes the log-probability of each action and the value of each position, [n] both. For positions that
        only need a value, the action is 0, legal or not."""
        ...


def judge_again(judge: Judge, slabs: Sequence[LinkedSlab], *, everything: bool) -> None:
    """Values earlier decisions, or ``everything`` that estimates use, with the policy that learns now. It is asked
    once."""
    asked = [linked.to_judge(everything) for linked in slabs]
    ends = np.cumsum([0, *map(len, asked)])
    if not ends[-1]:
        return
    parts = [(*part, slice(*ends[i : i + 2])) for i, part in enumerate(zip(slabs, asked, strict=True))]
    packed = np.empty((ends[-1], slabs[0].slab.shape.packed_bytes), np.uint8)
    actions = np.empty(ends[-1], np.int32)
    for linked, positions, rows in parts:
        linked.packed_at(positions, packed[rows])
        linked.actions_at(positions, actions[rows])
    log_probs, values = judge(packed, actions)
    for linked, positions, rows in parts:
        linked.hear(positions, values[rows], log_probs[rows] if everything else None)
