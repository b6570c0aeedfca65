"""The buffer of an update: the experience since the last one, with advantages, in shuffled minibatches.

Experience of the newest weights is used as it is. For experience of older weights, a ``Judge`` evaluates it with
the newest weights, and V-trace corrects the advantages. The judge also evaluates decisions of earlier slabs that had
to wait for their outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.experience.advantages import CreditRule, estimate
from keisei.experience.collected import CollectedSlab, Leases
from keisei.experience.contract import Lend
from keisei.experience.judging import Judge, judge_again
from keisei.experience.linked_slab import LinkedSlab
from keisei.experience.links import LinkRule, is_one_chain
from keisei.experience.open_decisions import OpenDecisions
from keisei.games.contract import Array, ByteArray, FloatArray, GameSpec, IntArray
from keisei.games.randomness import keyed_word
from keisei.runs.metric_names import CARRIED, DROPPED_CARRIES
from keisei.runs.state import State

__all__ = ["ExperienceBuffer", "Judge", "Minibatch", "RolloutView", "keeping_chances", "merged"]

_LEAST = 0.25
"""The least chance of a row to be learned from, as a share of the usual chance."""


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Transitions of the learner, [n] each."""

    packed: ByteArray
    """[n, packed_bytes]; ``Game.unpack`` gives observations and masks."""
    actions: IntArray
    log_probs: FloatArray
    """Log-probabilities under the policy that acted."""
    values: FloatArray
    """Values before the update: of the policy that acted, or of the judge if it was used."""
    advantages: FloatArray
    returns: FloatArray
    weights: FloatArray = field(default_factory=lambda: np.zeros(0, np.float32))
    """How much each row counts in the loss of the values. Left out, all count alike."""

    def __post_init__(self) -> None:
        if not len(self.weights):
            object.__setattr__(self, "weights", np.ones(len(self.actions), np.float32))

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True, slots=True)
class RolloutView:
    """The experience of one update. It does not change while the next experience is collected."""

    whole: Minibatch

    def __len__(self) -> int:
        return len(self.whole)

    def merged(self) -> Minibatch:
        """Gets all transitions, slab by slab; after those of a slab, earlier decisions whose outcome it shows."""
        if not len(self):
            raise ConfigError("the buffer is empty: collect something before you learn")
        return self.whole

    def minibatches(self, size: int, seed: int, epoch: int, share: float = 1.0) -> Iterator[Minibatch]:
        """Yields a share of all transitions, in an order keyed by (seed, epoch). The last minibatch is filled up with
        the first transitions again. With a new size in each update, torch would prepare its convolutions again each
        time and keep them all (measured: 2 MB an update)."""
        whole = self.merged()
        random = np.random.Generator(np.random.Philox(key=keyed_word(seed, epoch)))
        order = random.permutation(len(whole))
        if share < 1:
            kept = _share_of(len(whole), share)
            chances = keeping_chances(whole.advantages, kept)
            order = order[_drawn(chances[order], kept, random.random())]
            weights = (kept / len(whole) / chances).astype(np.float32)
            whole = replace(whole, weights=weights)
        if len(order) > size and len(order) % size:
            order = np.concatenate([order, order[: size - len(order) % size]])
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield Minibatch(*(getattr(whole, name)[chosen] for name in Minibatch.__slots__))


class ExperienceBuffer:
    """Merges slabs column by column, never step by step. It holds only the decisions of one ``owner``; those of
    others are part of the environment.

    The ``judge`` is called when slabs are taken, between two updates, with the weights that the next update starts
    with. With ``vtrace`` it evaluates everything, and advantages are corrected. Without, it evaluates only decisions
    that waited for their outcome; a zero-sum game of two has none, and needs no judge.
    """

    def __init__(
        self,
        spec: GameSpec,
        discount: float,
        trace: float,
        judge: Judge | None = None,
        *,
        vtrace: bool = False,
        rho_clip: float = 1.0,
        trace_clip: float = 1.0,
        owner: int = 0,
    ) -> None:
        if judge is None and (vtrace or waits(spec)):
            why = (
                "V-trace compares"
                if vtrace
                else f"in {spec.name} decisions wait for the next slab, to be compared"
            )
            raise ConfigError(f"{why} with the newest policy: give the buffer a judge, such as PPO.judge")
        self._rule = CreditRule(discount, trace, rho_clip, trace_clip)
        self._spec = spec
        self._judge = judge
        self._vtrace = vtrace
        self._open = OpenDecisions(spec, LinkRule(1, discount, owner, is_one_chain(spec)))
        self._view = RolloutView(_empty(spec, 0))

    def __len__(self) -> int:
        return len(self._view)

    @property
    def num_actions(self) -> int:
        return self._spec.num_actions

    @property
    def carried(self) -> int:
        """The number of decisions that wait for the next slab of their table."""
        return len(self._open)

    @property
    def dropped_carries(self) -> Mapping[str, int]:
        """The number of decisions whose outcome will never be known, by reason: ``gap``, ``reset`` or ``age``."""
        return self._open.dropped

    @property
    def most_leases(self) -> int:
        """0: all is copied."""
        return 0

    def take(self, collected: Sequence[CollectedSlab]) -> Leases:
        """Takes the experience of an update, in the order (table, sequence), and replaces that of the last update.
        All is copied, so no slab is kept. Waiting decisions are not in the view before their outcome is known."""
        linked = [self._open.link(item) for item in collected]
        if self._judge is not None:
            judge_again(self._judge, linked, everything=self._vtrace)
        self._view = RolloutView(self._learned(linked))
        return Leases()

    def view(self) -> RolloutView:
        """Gets the experience that was taken last."""
        return self._view

    def numbers(self) -> Mapping[str, float]:
        return {CARRIED: self.carried, DROPPED_CARRIES: sum(self.dropped_carries.values())}

    def state(self) -> State:
        """Gets the waiting decisions. Taken experience is not included, since it is learned before a checkpoint."""
        return self._open.state()

    def restore(self, state: State, lend: Lend | None = None) -> None:
        """Restores a state. It needs no slabs."""
        self._open.restore(state)

    def _learned(self, slabs: Sequence[LinkedSlab]) -> Minibatch:
        """Joins all decisions of some slabs, with what is to be learned from them."""
        whole = _empty(self._spec, sum(map(len, slabs)))
        start = 0
        for linked in slabs:
            rows, positions = slice(start, start := start + len(linked)), linked.positions
            linked.packed_at(positions, whole.packed[rows])
            linked.actions_at(positions, whole.actions[rows])
            linked.behaviour(whole.log_probs[rows])
            whole.values[rows] = linked.values[positions]
            estimate(linked, self._rule, whole.log_probs[rows], whole.advantages[rows], whole.returns[rows])
        return whole


def waits(spec: GameSpec) -> bool:
    """Whether a seat of this game may wait where a slab ends, so that decisions wait for their outcome."""
    return spec.simultaneous or (spec.seats > 1 and not is_one_chain(spec))


def keeping_chances(advantages: FloatArray, kept: int) -> NDArray[np.float64]:
    """Computes the probability of each row to be one of the ``kept`` rows that are learned from. It grows with the
    distance of the advantage from the mean: the gradient of such a row is large, and so is its value's error.

    A row that is as good as expected keeps a quarter of the usual chance. So no weight is more than four times the
    usual one, and what all rows have in common, as the entropy, is not left to a few.
    """
    if kept == len(advantages):
        return np.ones(kept)
    distances = np.abs(advantages - advantages.mean(), dtype=np.float64)
    usual = distances.mean()
    chances: NDArray[np.float64] = np.ones(len(advantages))
    if usual > 0:
        chances = _LEAST + (1 - _LEAST) * distances / usual
    chances *= kept / chances.sum()
    while chances.max() > 1:  # what is beyond certain goes to the others
        certain = chances >= 1
        chances[certain] = 1
        chances[~certain] *= (kept - certain.sum()) / chances[~certain].sum()
    return chances


def _drawn(chances: NDArray[np.float64], count: int, uniform: float) -> NDArray[np.int64]:
    """Draws ``count`` rows, each with its own chance, by marks at equal distances on the sum of chances (systematic
    sampling). The chances add up to ``count``."""
    ends = np.cumsum(chances)
    ends[-1] = count  # not a rounding less
    return np.searchsorted(ends, np.arange(count) + 1 - uniform)


def _share_of(rows: int, share: float) -> int:
    return math.ceil(rows * share)


def merged(parts: Sequence[Minibatch]) -> Minibatch:
    """Joins the columns of several parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Array] = [
        np.concatenate([getattr(part, name) for part in parts]) for name in Minibatch.__slots__
    ]
    return Minibatch(*columns)


def _empty(spec: GameSpec, rows: int) -> Minibatch:
    """Makes room for so many transitions."""
    packed, actions = np.empty((rows, spec.packed_bytes), np.uint8), np.empty(rows, np.int32)
    return Minibatch(packed, actions, *np.empty((4, rows), np.float32))
