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
from keisei.experience.links import GAP, OVERWRITTEN, RESET, ROW, LinkRule, Links, OpenRows, linker
from keisei.experience.replayed import ReplaySample
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab
from keisei.games.contract import FloatArray, IntArray
from keisei.native import core

__all__ = ["SIDE_BYTES", "SlabRing", "StoredSlab"]

SIDE_BYTES = 12
"""Bytes beside the slab for each decision: its rewards, its discount and its next position."""
_MOST_POSITIONS = 1 << 31


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
        """Reads the content, as a piece of a checkpoint."""
        content = self.slab.content()
        if sha256(content).hexdigest() != self.digest:
            raise CheckpointError(
                f"slab {self.sequence} of table {self.table} is no longer in the replay: its memory was used again"
            )
        return content


class SlabRing:
    """A fixed number of slabs. The newest takes the place of the oldest."""

    def __init__(self, shape: SlabShape, slabs: int, rule: LinkRule, tables: int) -> None:
        positions = slabs * (2 * shape.steps + 1) * shape.slots
        if positions >= _MOST_POSITIONS:
            raise ConfigError(
                f"a replay of {slabs * shape.transitions:,} decisions has {positions:,} positions, and at most "
                f"{_MOST_POSITIONS:,} can be numbered; take a smaller capacity"
            )
        self.shape, self.rule = shape, rule
        self.core = core.ReplaySlabs(
            slabs, shape.steps, shape.games, shape.seats, shape.simultaneous, shape.packed_bytes
        )
        self.links = Links(slabs * shape.transitions)
        self.generations: IntArray = np.zeros(slabs, np.int32)
        """How often each slab of the ring was filled. A place and its generation name one decision."""
        self.at = 0
        """The slab that is filled next."""
        self._addresses: NDArray[np.uint64] = np.zeros((3, slabs), np.uint64)
        self._slabs: list[StoredSlab | None] = [None] * slabs
        self._maker = linker(shape, rule, slabs)
        self.open = {table: OpenRows(rule.most_open(shape)) for table in range(tables)}
        """The open decisions of each table. They are there from the start, so that their memory is."""
        self._last: dict[int, tuple[int, StoredSlab]] = {}
        """The slab of each table that was followed last, and its number in the ring."""
        self._closed: IntArray = np.full(_most_closed(shape, rule), 0, np.int32)
        self.dropped = dict.fromkeys((GAP, RESET, OVERWRITTEN), 0)
        """The number of decisions whose outcome will never be known, by reason."""

    @staticmethod
    def bytes_beside(shape: SlabShape, rule: LinkRule, tables: int) -> int:
        """Computes the bytes that do not depend on the number of slabs: those of open decisions."""
        return tables * rule.most_open(shape) * ROW.itemsize + 4 * _most_closed(shape, rule)

    def __len__(self) -> int:
        return len(self._slabs)

    def __getitem__(self, index: int) -> StoredSlab | None:
        return self._slabs[index]

    def by_age(self) -> list[StoredSlab]:
        """Lists the slabs that are there, oldest first."""
        order = [*self._slabs[self.at :], *self._slabs[: self.at]]
        return [stored for stored in order if stored is not None]

    def put(self, stored: StoredSlab) -> IntArray:
        """Puts a slab in the place of the oldest, and follows the games of its table through it. Gives the places of
        decisions whose outcome is known now."""
        index, slab = self.at, stored.slab
        self._overwrite(index)
        self._slabs[index] = stored
        self._addresses[:, index] = [
            column.ctypes.data for column in (slab.packed, slab.final_packed, slab.action)
        ]
        self.generations[index] += 1
        self.at = (index + 1) % len(self)
        rows = self.open.setdefault(stored.table, OpenRows(self.rule.most_open(self.shape)))
        stopped = self._break_off(rows, stored)
        closed = rows.follow(self._maker, index, slab, self.links, self._closed, games=True, end=False)
        self._last[stored.table] = (index, stored)
        return np.concatenate([stopped, closed])

    def _break_off(self, rows: OpenRows, following: StoredSlab) -> IntArray:
        """If a slab does not continue the games of its table, ends open returns where the last slab ended. Gives the
        places of those whose seat acts there, and drops the others."""
        index, last = self._last.get(following.table, (0, following))
        if not len(rows) or following.follows(last):
            return np.zeros(0, np.int32)
        stopped = rows.follow(
            self._maker, index, last.slab, self.links, self._closed, games=False, end=True
        ).copy()
        self.dropped[RESET if following.epoch != last.epoch else GAP] += rows.keep(rows.rows["place"] < 0)
        return stopped

    def _overwrite(self, index: int) -> None:
        """Drops the open decisions of a slab that is about to be overwritten."""
        stored = self._slabs[index]
        if stored is not None and len(rows := self.open[stored.table]):
            elsewhere = rows.rows["place"] // self.shape.transitions != index
            self.dropped[OVERWRITTEN] += rows.keep(elsewhere)

    def begin_at(self, index: int) -> None:
        """Says which slab is filled next. Raises ``ValueError`` if there is none of this number."""
        if type(index) is not int or not 0 <= index < len(self):
            raise ValueError(f"{index!r:.40} is none of {len(self)} slabs")
        self.at = index

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
            self._addresses, *self.links.arrays[:3], self.generations, places, sample.packed,
            sample.next_packed, sample.actions, sample.rewards, sample.discounts, sample.generations,
        )  # fmt: skip
        return sample


def _most_closed(shape: SlabShape, rule: LinkRule) -> int:
    """The most decisions that one slab closes."""
    return shape.transitions + rule.most_open(shape)
