"""Slabs on their way to the learner: checked when they arrive, lent, leased by buffers, and given back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from keisei.experience.collected import CollectedSlab, Experiences, Lease
from keisei.experience.memory import SharedBlock
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord, slab_layout
from keisei.parallel.arena import Arena
from keisei.parallel.stock import Stock

logger = logging.getLogger(__name__)


@dataclass
class Drops:
    """What did not reach the learner, and why. Nothing is dropped uncounted."""

    lagging: int = 0
    """Transitions whose weights were too old (``max_policy_lag``)."""
    corrupted: int = 0
    """Slabs whose checksum was wrong; they were played again."""

    def copy(self) -> Drops:
        return replace(self)


class Deliveries:
    """Keeps what has arrived until the learner takes it."""

    def __init__(self, arena: Arena, stock: Stock, *, verify: bool, hand_out_copies: bool) -> None:
        self._arena, self._stock = arena, stock
        self._verify, self._hand_out_copies = verify, hand_out_copies
        self._arrived: list[CollectedSlab] = []
        self._lent: list[CollectedSlab] = []
        self._leased: set[Lease] = set()
        self.drops = Drops()
        self.transitions = 0
        """Handed out since the start."""

    def is_whole(self, record: SlabRecord) -> bool:
        """Does a slab hold what its record says?"""
        if not self._verify or self._arena.slab(record.slab).checksum() == record.checksum:
            return True
        self.drops.corrupted += 1
        logger.warning(
            "slab %d of table %d, played by worker %d, is damaged and is played again",
            record.sequence, record.table, record.worker,
        )  # fmt: skip
        return False

    def arrive(self, record: SlabRecord, first_game: int) -> None:
        item = CollectedSlab(record, first_game, self._arena.slab(record.slab))
        self._arrived.append(self._detached(item) if self._hand_out_copies else item)

    def make_room(self) -> None:
        """Copy what has arrived out of its slabs, where they are needed for the same collection."""
        self._arrived = [self._detached(item) for item in self._arrived]

    def arrived_by_table(self) -> Counter[int]:
        """How many slabs of each table have arrived."""
        return Counter(item.record.table for item in self._arrived)

    def held_by_table(self) -> Counter[int]:
        """How many slabs of each table the learner has not given back, those that only arrived included."""
        held = [*self._arrived, *self._lent]
        return Counter(item.record.table for item in held if item.record.slab >= 0)

    def episodes_of(self, table: int) -> int:
        """Games that a table finished in what has arrived."""
        return sum(
            int(item.slab.terminated.sum() + item.slab.truncated.sum())
            for item in self._arrived
            if item.record.table == table
        )

    @property
    def arrived_transitions(self) -> int:
        return sum(item.record.transitions for item in self._arrived)

    def drop_older_than(self, version: int) -> None:
        """Drop (and count) what was played with weights before a version."""
        dropped = [item for item in self._arrived if item.record.version < version]
        self._arrived = [item for item in self._arrived if item.record.version >= version]
        self.drops.lagging += sum(item.record.transitions for item in dropped)
        self._give_back(dropped)

    def hand_out(self, version: int, target: int | None) -> Experiences:
        """Lend what has arrived, or as much of it as makes up the target, to the learner."""
        taken, total = 0, 0
        while taken < len(self._arrived) and (target is None or total < target):
            total += self._arrived[taken].record.transitions
            taken += 1
        self._lent, self._arrived = self._arrived[:taken], self._arrived[taken:]
        self.transitions += total
        ordered = sorted(self._lent, key=lambda item: (item.record.table, item.record.sequence))
        return Experiences(tuple(ordered), version)

    def release(self, keep: Collection[Lease] = ()) -> None:
        """The learner is done with what it was lent, but for what it keeps under a lease. It may say so twice."""
        # Copies need no lease: they stay anyway.
        lent, self._lent = [item for item in self._lent if item.record.slab >= 0], []
        self._leased |= {item.lease for item in lent if item.lease in keep}
        self._give_back(item for item in lent if item.lease not in keep)

    def end_leases(self, leases: Iterable[Lease]) -> None:
        """Slabs that a buffer kept may be played in again. A lease ends once."""
        for lease in leases:
            if lease in self._leased:
                self._leased.remove(lease)
                self._stock.give_slab(lease.slab)

    @property
    def leased(self) -> int:
        return len(self._leased)

    def forget(self) -> None:
        self._arrived, self._lent = [], []
        self._leased.clear()

    def _give_back(self, items: Iterable[CollectedSlab]) -> None:
        for item in items:
            if item.record.slab >= 0:
                self._stock.give_slab(item.record.slab)

    def _detached(self, item: CollectedSlab) -> CollectedSlab:
        """A copy in memory of its own; the slab itself is free again."""
        if item.record.slab < 0:
            return item
        copy = copy_slab(item.slab)
        self._give_back([item])
        return CollectedSlab(item.record.without_slab(), item.first_game, copy)


def copy_slab(slab: Slab) -> Slab:
    """The same content in private memory."""
    shape: SlabShape = slab.shape
    copy = Slab(shape, SharedBlock(slab_layout(shape).nbytes, sparse=True))
    for field, column in slab.columns():
        if field.per_transition:
            getattr(copy, field.name)[:] = column
        else:
            finished = slab.finished(field.name)
            getattr(copy, field.name)[finished] = column[finished]
    return copy
