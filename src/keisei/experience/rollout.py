"""The buffer of an update: what was collected since the last one, with advantages, in shuffled minibatches.

Experience that the newest weights have played is taken as it is. Where older ones may have played it, a ``Judge``
says what the newest make of it, and the advantages are corrected for the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.experience.advantages import Judged, estimate_advantages
from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, ByteArray, FloatArray, GameSpec, IntArray
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
    """As they were before the update: of the policy that acted, or of the judge where there is one."""
    advantages: FloatArray
    returns: FloatArray

    def __len__(self) -> int:
        return len(self.actions)


class Judge(Protocol):
    """The policy that learns, asked what it makes of decisions that were taken before."""

    def __call__(self, packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """The log-probability of each action and the value of each position, [n] both. Positions that are asked
        about for their value alone come with action 0, be it legal or not."""
        ...


class ExperienceBuffer:
    """Slabs merged column by column, never step by step. It holds the learner's own decisions alone: what an
    opponent did is part of the world.

    With a ``judge``, advantages are those of V-trace, whose ratios are clipped at ``rho_clip`` and ``trace_clip``.
    The judge is asked when slabs are added: between two updates, with the weights that the next one begins with.
    """

    def __init__(
        self,
        spec: GameSpec,
        discount: float,
        trace: float,
        judge: Judge | None = None,
        *,
        rho_clip: float = 1.0,
        trace_clip: float = 1.0,
    ) -> None:
        if not 0 < discount <= 1 or not 0 <= trace <= 1:
            raise ConfigError(f"discount is in (0, 1] and lambda in [0, 1]; got {discount} and {trace}")
        if rho_clip <= 0 or trace_clip <= 0:
            raise ConfigError(
                f"rho_clip and trace_clip are above 0 (1 is usual); got {rho_clip} and {trace_clip}"
            )
        self._spec = spec
        self._discount, self._trace = discount, trace
        self._judge = judge
        self._rho_clip, self._trace_clip = rho_clip, trace_clip
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
        """All transitions, in an order keyed by (seed, epoch). The last minibatch is filled up with the first ones
        again: a size that changes from update to update makes torch prepare its convolutions anew each time, and
        keep them all (measured: 2 MB an update)."""
        whole = self.merged()
        order = shuffled(len(whole), seed, epoch)
        if len(order) > size and len(order) % size:
            order = np.concatenate([order, order[: size - len(order) % size]])
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield Minibatch(*(getattr(whole, name)[chosen] for name in Minibatch.__slots__))

    def _part(self, slab: Slab) -> Minibatch:
        steps = slab.shape.steps
        chosen: BoolArray = slab.acting[:steps] & (slab.policy == 0)
        judged = None if self._judge is None else judge_slab(self._judge, slab, chosen)
        targets = estimate_advantages(
            slab,
            self._discount,
            self._trace,
            zero_sum=self._spec.zero_sum,
            judged=judged,
            rho_clip=self._rho_clip,
            trace_clip=self._trace_clip,
        )
        values = slab.value if judged is None else judged.values
        return Minibatch(
            packed=slab.packed[:steps][chosen],
            actions=slab.action[chosen],
            log_probs=slab.log_prob[chosen],
            values=values[:steps][chosen],
            advantages=targets.advantages[chosen],
            returns=targets.returns[chosen],
        )


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


def shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation that depends on nothing but its key."""
    return np.random.Generator(np.random.Philox(key=keyed_word(seed, epoch))).permutation(count)
