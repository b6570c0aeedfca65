"""Slabs on the manager's side: checked when they arrive, lent to the learner, given back to their workers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from keisei.experience.collected import CollectedSlab, Experiences
from keisei.experience.memory import SharedBlock
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord, slab_layout
from keisei.parallel.crew import Member

logger = logging.getLogger(__name__)


@dataclass
class Drops:
    """What did not reach the learner, and why. Nothing is dropped uncounted."""

    lagging: int = 0
    """Transitions whose weights were too old (``max_policy_lag``)."""
    corrupted: int = 0
    """Slabs whose checksum was wrong; they were played again."""


class Gathering:
    """Keeps what has arrived until the learner takes it. A slab is in one place at a time: free, being played,
    arrived, or lent."""

    def __init__(self, members: list[Member], *, verify: bool, hand_out_copies: bool) -> None:
        self._members = members
        self._verify = verify
        self._hand_out_copies = hand_out_copies
        self._arrived: list[CollectedSlab] = []
        self._lent: list[CollectedSlab] = []
        self.drops = Drops()
        self.transitions = 0
        """Handed out since the start."""

    def is_whole(self, member: Member, record: SlabRecord) -> bool:
        """Does a slab hold what its record says?"""
        if not self._verify or member.memory.slab(record.slab).checksum() == record.checksum:
            return True
        self.drops.corrupted += 1
        logger.warning("slab %d of worker %d is damaged and is played again", record.sequence, member.worker)
        return False

    def arrive(self, member: Member, record: SlabRecord) -> None:
        slab = member.memory.slab(record.slab)
        item = CollectedSlab(record, member.plan.first_game, slab)
        self._arrived.append(self._detached(item) if self._hand_out_copies else item)

    def make_room(self, member: Member) -> None:
        """Copy what a worker has handed in out of its slabs, where it needs them for the same round."""
        self._arrived = [
            self._detached(item) if item.record.worker == member.worker else item for item in self._arrived
        ]

    def arrived_from(self, member: Member) -> int:
        return sum(item.record.worker == member.worker for item in self._arrived)

    def episodes_from(self, member: Member) -> int:
        """Games that a worker finished in what has arrived."""
        return sum(
            int(item.slab.terminated.sum() + item.slab.truncated.sum())
            for item in self._arrived
            if item.record.worker == member.worker
        )

    @property
    def arrived_transitions(self) -> int:
        return sum(item.record.transitions for item in self._arrived)

    def drop_older_than(self, version: int) -> None:
        """Drop (and count) what was played with weights before a version."""
        keep = [item for item in self._arrived if item.record.version >= version]
        dropped = [item for item in self._arrived if item.record.version < version]
        self.drops.lagging += sum(item.record.transitions for item in dropped)
        self._arrived = keep
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

    def release(self) -> None:
        """The learner is done with what it was lent. It may say so twice."""
        self._give_back(self._lent)
        self._lent = []

    def forget(self) -> None:
        self._arrived, self._lent = [], []

    def _give_back(self, items: Iterable[CollectedSlab]) -> None:
        by_worker = {member.worker: member for member in self._members}
        for item in items:
            if item.record.slab >= 0 and item.record.worker in by_worker:
                by_worker[item.record.worker].free_slabs.append(item.record.slab)

    def _detached(self, item: CollectedSlab) -> CollectedSlab:
        """A copy in memory of its own; the slab itself is free again."""
        if item.record.slab < 0:
            return item
        self._give_back([item])
        copy = copy_slab(item.slab)
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
