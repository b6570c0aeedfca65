"""The slabs of a replay: a ring of them in memory, and what came of each decision.

Positions are stored once, packed, where the worker wrote them. A decision is named by its *place*, and its next
position by a number too (``native/replay/replay.h``). Both are found by arithmetic, so a sample is copied in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from keisei.errors import CheckpointError, ConfigError
from keisei.experience.collected import Lease
from keisei.experience.replayed import ReplaySample
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab
from keisei.games.contract import Array, FloatArray, IntArray
from keisei.native import core

__all__ = ["SIDE_BYTES", "CreditedBy", "SlabRing", "StoredSlab"]

SIDE_BYTES = 12
"""Bytes beside the slab for each decision: its rewards, its discount and its next position."""
_MOST_POSITIONS = 1 << 31


@dataclass(frozen=True, slots=True)
class CreditedBy:
    """How decisions are credited."""

    n_step: int
    discount: float
    """Per ply."""
    owner: int
    """Whose decisions count."""
    one_chain: bool
    """Whether the decisions of both seats make one chain."""

    def chains(self, shape: SlabShape) -> int:
        """The number of chains of a table."""
        return shape.games * (1 if self.one_chain else shape.seats)


@dataclass(frozen=True)
class StoredSlab:
    """A slab that a replay keeps."""

    table: int
    epoch: int
    sequence: int
    slab: Slab
    lease: Lease | None
    """None if the slab has memory of its own."""

    def follows(self, other: StoredSlab) -> bool:
        """Whether the games of another slab continue in this one. Its number may fit by chance, if experience of
        several managers is mixed; its positions do not."""
        if (self.epoch, self.sequence) != (other.epoch, other.sequence + 1):
            return False
        begins, ended = self.slab.packed[0], other.slab.packed[-1]
        if begins.tobytes() == ended.tobytes():  # nine times as fast, and enough unless a seat rests
            return True
        both = self.slab.acting[0] & other.slab.acting[-1]
        return bool((begins == ended)[both].all())

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its content, computed once."""
        return sha256(self.slab.content()).hexdigest()

    @cached_property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.slab.written())

    def read(self) -> bytes:
        """Gives the content, as a piece of a checkpoint."""
        content = self.slab.content()
        if sha256(content).hexdigest() != self.digest:
            raise CheckpointError(
                f"slab {self.sequence} of table {self.table} is no longer in the replay: its memory was used again"
            )
        return content


class SlabRing:
    """A fixed number of slabs. The newest takes the place of the oldest."""

    def __init__(self, shape: SlabShape, slabs: int, rule: CreditedBy) -> None:
        positions = slabs * (2 * shape.steps + 1) * shape.slots
        if positions >= _MOST_POSITIONS:
            raise ConfigError(
                f"a replay of {slabs * shape.transitions:,} decisions has {positions:,} positions, and at most "
                f"{_MOST_POSITIONS:,} can be numbered; take a smaller capacity"
            )
        self.shape, self.rule = shape, rule
        self.core = core.ReplaySlabs(
            slabs, shape.steps, shape.games, shape.seats, shape.simultaneous, shape.packed_bytes,
            rule.n_step, rule.discount, rule.owner, rule.one_chain,
        )  # fmt: skip
        # Filled, so that the memory is taken now.
        self.rewards: FloatArray = np.full(slabs * shape.transitions, 0, np.float32)
        self.discounts: FloatArray = np.full(slabs * shape.transitions, 0, np.float32)
        self.next: IntArray = np.full(slabs * shape.transitions, -1, np.int32)
        self.generations: IntArray = np.zeros(slabs, np.int32)
        """How often each slab of the ring was filled. A place and its generation name one decision."""
        self.at = 0
        """The slab that is filled next."""
        self._addresses: NDArray[np.uint64] = np.zeros((3, slabs), np.uint64)
        self._slabs: list[StoredSlab | None] = [None] * slabs

    def __len__(self) -> int:
        return len(self._slabs)

    def __getitem__(self, index: int) -> StoredSlab | None:
        return self._slabs[index]

    def by_age(self) -> list[StoredSlab]:
        """Gives the slabs that are there, oldest first."""
        order = [*self._slabs[self.at :], *self._slabs[: self.at]]
        return [stored for stored in order if stored is not None]

    def put(self, stored: StoredSlab) -> int:
        """Puts a slab in the place of the oldest. Gives its number in the ring."""
        index, slab = self.at, stored.slab
        self._slabs[index] = stored
        self._addresses[:, index] = [
            column.ctypes.data for column in (slab.packed, slab.final_packed, slab.action)
        ]
        self.generations[index] += 1
        self.at = (index + 1) % len(self)
        return index

    def begin_at(self, index: int) -> None:
        """Says which slab is filled next. Raises ``ValueError`` if there is none of this number."""
        if type(index) is not int or not 0 <= index < len(self):
            raise ValueError(f"{index!r:.40} is none of {len(self)} slabs")
        self.at = index

    def end_position(self, index: int, slot: Array) -> Array:
        """Gives the numbers of the positions at the end of a slab."""
        steps, slots = self.shape.steps, self.shape.slots
        return index * (2 * steps + 1) * slots + steps * slots + slot

    def sample(self, places: IntArray, weights: FloatArray) -> ReplaySample:
        """Copies the decisions at some places."""
        size = len(places)
        sample = ReplaySample(
            packed=np.empty((size, self.shape.packed_bytes), np.uint8),
            actions=np.empty(size, np.int32),
            rewards=np.empty(size, np.float32),
            next_packed=np.empty((size, self.shape.packed_bytes), np.uint8),
            discounts=np.empty(size, np.float32),
            weights=weights,
            places=places,
            generations=np.empty(size, np.int32),
        )
        self.core.gather(
            self._addresses, self.rewards, self.discounts, self.next, self.generations, places, sample.packed,
            sample.next_packed, sample.actions, sample.rewards, sample.discounts, sample.generations,
        )  # fmt: skip
        return sample
