"""The on-policy buffer: what was collected since the last update, with advantages, in shuffled minibatches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.experience.advantages import estimate_advantages
from keisei.experience.slab import Slab
from keisei.games.contract import Array, ByteArray, FloatArray, GameSpec, IntArray
from keisei.games.randomness import keyed_word


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Transitions of the learner, [n] each."""

    packed: ByteArray
    """[n, packed_bytes]; ``Game.unpack`` gives observations and masks."""
    actions: IntArray
    log_probs: FloatArray
    """Under the policy that acted."""
    values: FloatArray
    advantages: FloatArray
    returns: FloatArray

    def __len__(self) -> int:
        return len(self.actions)


class ExperienceBuffer:
    """Slabs merged column by column, never step by step. It holds the learner's own decisions alone: what an
    opponent did is part of the world."""

    def __init__(self, spec: GameSpec, discount: float, trace: float) -> None:
        if not 0 < discount <= 1 or not 0 <= trace <= 1:
            raise ConfigError(f"discount is in (0, 1] and lambda in [0, 1]; got {discount} and {trace}")
        self._spec = spec
        self._discount, self._trace = discount, trace
        self._parts: list[Minibatch] = []

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def add_batch(self, slabs: Sequence[Slab]) -> None:
        """Take the learner's transitions of these slabs; the slabs themselves may be given back afterwards."""
        for slab in slabs:
            self._parts.append(self._part(slab))

    def clear(self) -> None:
        self._parts.clear()

    def merged(self) -> Minibatch:
        """All transitions, in the order in which they were added."""
        if not len(self):
            raise ConfigError("the buffer is empty: collect something before you learn")
        if len(self._parts) > 1:
            columns: list[Array] = [
                np.concatenate([getattr(part, name) for part in self._parts]) for name in Minibatch.__slots__
            ]
            self._parts = [Minibatch(*columns)]
        return self._parts[0]

    def minibatches(self, size: int, seed: int, epoch: int) -> Iterator[Minibatch]:
        """All transitions once, in an order keyed by (seed, epoch); the last minibatch may be smaller."""
        whole = self.merged()
        order = shuffled(len(whole), seed, epoch)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield Minibatch(*(getattr(whole, name)[chosen] for name in Minibatch.__slots__))

    def _part(self, slab: Slab) -> Minibatch:
        steps = slab.shape.steps
        targets = estimate_advantages(slab, self._discount, self._trace, zero_sum=self._spec.zero_sum)
        chosen: Array = slab.acting[:steps] & (slab.policy == 0)
        return Minibatch(
            packed=slab.packed[:steps][chosen],
            actions=slab.action[chosen],
            log_probs=slab.log_prob[chosen],
            values=slab.value[:steps][chosen],
            advantages=targets.advantages[chosen],
            returns=targets.returns[chosen],
        )


def shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation that depends on nothing but its key."""
    return np.random.Generator(np.random.Philox(key=keyed_word(seed, epoch))).permutation(count)
