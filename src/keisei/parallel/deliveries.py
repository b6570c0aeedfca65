"""The slabs of the arena: free ones, and those on their way to the learner, which are checked, lent, leased by buffers
and given back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from keisei.errors import ParallelError
from keisei.experience.agent_slabs import empty_slab
from keisei.experience.collected import CollectedSlab, Experiences, Lease, LentSlab
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord
from keisei.parallel.arena import Arena, ArenaSize, demand_memory
from keisei.parallel.config import ParallelConfig
from keisei.parallel.weights.shelf import Shelf

logger = logging.getLogger(__name__)


class Stock:
    """Keeps track of free slabs and slots. A slab is in one place at a time: free, ordered, arrived, lent or
    leased."""

    def __init__(self, config: ParallelConfig, leased: int = 0) -> None:
        """``leased`` slabs more are for buffers that keep slabs."""
        tables, queues = config.table_count, config.table_count * config.queue_maxsize
        self.slabs = queues + leased
        # A hung thread may still write to its slabs, because it cannot be ended. A process can be ended.
        reserve = queues if config.backend == "thread" else 0
        # Each slab has a state slot, because any slab may be the last one of a table. Each table has one more slot.
        self._slots = self.slabs + reserve + tables
        self._leased = leased
        # In synchronous mode, each table uses one slab at a time.
        self._in_use = leased + (queues if config.mode == "async" else tables)
        self._free_slabs = list(range(self.slabs))[::-1]
        self._reserve = list(range(self.slabs, self.slabs + reserve))
        self._free_slots = list(range(self._slots))[::-1]

    def arena(self, shape: SlabShape, shelf: Shelf | None) -> Arena:
        """Makes the memory for all slabs and slots."""
        demand_memory(shape, self._in_use)
        arena = Arena(ArenaSize.of(shape, self.slabs + len(self._reserve), self._slots), shelf)
        if self._leased:
            arena.reserve(self._in_use)  # slabs that are given back are the first to be used again
        return arena

    @property
    def free_slabs(self) -> int:
        return len(self._free_slabs)

    def take(self) -> tuple[int, int]:
        """Takes a slab, and a slot for the state after it."""
        return self._free_slabs.pop(), self._free_slots.pop()

    def take_slab(self) -> int:
        """Takes a slab for something that is not played."""
        if not self._free_slabs:
            raise ParallelError(
                f"none of the {self.slabs} slabs is free; make the manager with more leased_slabs"
            )
        return self._free_slabs.pop()

    def take_slot(self) -> int:
        return self._free_slots.pop()

    def replace_lost(self) -> tuple[int, int]:
        """Takes a slab and a slot that replace lost ones."""
        if not self._reserve:
            raise ParallelError(
                "too many threads hang in their games, and all spare memory is lost to them; repair the game, or play "
                "in processes (backend: process), which can be ended"
            )
        return self._reserve.pop(), self._free_slots.pop()

    def give_slab(self, slab: int) -> None:
        self._free_slabs.append(slab)

    def give_slot(self, slot: int) -> None:
        self._free_slots.append(slot)


@dataclass
class Drops:
    """Counts what did not reach the learner, and why. Every drop is counted."""

    lagging: int = 0
    """Transitions whose weights were too old (``max_policy_lag``)."""
    corrupted: int = 0
    """Slabs whose checksum was wrong. They were played again."""
    repeated: int = 0
    """Slabs that arrived a second time. The second one was ignored."""


class Deliveries:
    """Keeps the slabs that have arrived until the learner takes them."""

    def __init__(self, arena: Arena, stock: Stock, *, verify: bool, hand_out_copies: bool) -> None:
        self._arena, self._stock = arena, stock
        self._verify, self._hand_out_copies = verify, hand_out_copies
        self._arrived: list[CollectedSlab] = []
        self._lent: list[CollectedSlab] = []
        self._leased: set[Lease] = set()
        self.drops = Drops()
        self.transitions = 0
        """Transitions handed out since the start."""

    def is_whole(self, record: SlabRecord) -> bool:
        """Checks if the checksum of a slab is the one in its record."""
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
        """Copies what has arrived out of its slabs, so that the same collection can use them again."""
        self._arrived = [self._detached(item) for item in self._arrived]

    def arrived_by_table(self) -> Counter[int]:
        """Counts the slabs of each table that have arrived."""
        return Counter(item.record.table for item in self._arrived)

    def held_by_table(self) -> Counter[int]:
        """Counts the slabs of each table that have arrived or are lent, and are not yet given back."""
        held = [*self._arrived, *self._lent]
        return Counter(item.record.table for item in held if item.record.slab >= 0)

    def opponents(self) -> set[int]:
        """Lists the opponents that the learner met in games that ended in the slabs that have arrived."""
        return {
            number
            for item in self._arrived
            for number in item.slab.opponent[item.slab.terminated | item.slab.truncated].tolist()
        }

    def episodes_of(self, table: int) -> int:
        """Counts the games that a table has finished in the slabs that have arrived."""
        return sum(
            int(item.slab.terminated.sum() + item.slab.truncated.sum())
            for item in self._arrived
            if item.record.table == table
        )

    @property
    def arrived_transitions(self) -> int:
        return sum(item.record.transitions for item in self._arrived)

    def drop_older_than(self, version: int) -> None:
        """Drops what was played with weights older than a version, and counts it."""
        dropped = [item for item in self._arrived if item.record.version < version]
        self._arrived = [item for item in self._arrived if item.record.version >= version]
        self.drops.lagging += sum(item.record.transitions for item in dropped)
        self._give_back(dropped)

    def hand_out(self, version: int, target: int | None) -> Experiences:
        """Lends the slabs that have arrived to the learner: all of them, or as many as reach the target."""
        taken, total = 0, 0
        while taken < len(self._arrived) and (target is None or total < target):
            total += self._arrived[taken].record.transitions
            taken += 1
        self._lent, self._arrived = self._arrived[:taken], self._arrived[taken:]
        self.transitions += total
        ordered = sorted(self._lent, key=lambda item: (item.record.table, item.record.sequence))
        return Experiences(tuple(ordered), version)

    def release(self, keep: Collection[Lease] = ()) -> None:
        """Takes back the slabs that were lent. Those in ``keep`` stay with the learner under a lease. Calling it
        again does nothing."""
        # Copies need no lease, since they are never given back.
        lent, self._lent = [item for item in self._lent if item.record.slab >= 0], []
        self._leased |= {item.lease for item in lent if item.lease in keep}
        self._give_back(item for item in lent if item.lease not in keep)

    def end_leases(self, leases: Iterable[Lease]) -> None:
        """Makes slabs that a buffer kept free again. Ending a lease twice does nothing."""
        for lease in leases:
            if lease in self._leased:
                self._leased.remove(lease)
                self._stock.give_slab(lease.slab)

    def lend(self, count: int) -> list[LentSlab]:
        """Lends empty slabs to a buffer that restores its own."""
        if self._hand_out_copies:
            return [LentSlab(empty_slab(self._arena.size.shape), None) for _ in range(count)]
        leases = [Lease(self._stock.take_slab()) for _ in range(count)]
        self._leased |= set(leases)
        return [LentSlab(self._arena.slab(lease.slab), lease) for lease in leases]

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
        """Copies a slab into its own memory, and frees it in the arena."""
        if item.record.slab < 0:
            return item
        copy = copy_slab(item.slab)
        self._give_back([item])
        return CollectedSlab(item.record.without_slab(), item.first_game, copy)


def copy_slab(slab: Slab) -> Slab:
    """Copies a slab into private memory."""
    copy = empty_slab(slab.shape)
    for field, column in slab.columns():
        if field.per_transition:
            getattr(copy, field.name)[:] = column
        else:
            finished = slab.finished(field.name)
            getattr(copy, field.name)[finished] = column[finished]
    return copy
