"""Decisions of a replay whose outcome is not known yet, table by table.

A decision closes when its chain has made ``n_step`` more decisions, or when its game ends. Until then it waits here,
with the rewards and plies so far, also beyond the end of its slab: the next slab of its table continues the games.

If that slab is missing, because it was dropped or the games were reset, the return ends where the last slab ended. It
bootstraps from the position there. Where the seat does not act in that position, the decision is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from keisei.experience.replay_slabs import CreditedBy, SlabRing, StoredSlab
from keisei.experience.schema import SlabShape
from keisei.games.contract import Array, IntArray

__all__ = ["OpenDecisions"]

GAP, RESET, OVERWRITTEN = "gap", "reset", "overwritten"
"""Reasons for drops: a slab of the table is missing; its games were reset; the ring came round before it closed."""


class OpenDecisions:
    """The open decisions of all tables."""

    def __init__(self, ring: SlabRing, tables: int) -> None:
        self._ring = ring
        self._tables = {number: _Table(ring) for number in range(tables)}
        self._closed: IntArray = np.full(_most_closed(ring.shape, ring.rule), 0, np.int32)
        self.dropped = dict.fromkeys((GAP, RESET, OVERWRITTEN), 0)
        """The number of decisions whose outcome will never be known, by reason."""

    @staticmethod
    def nbytes(shape: SlabShape, rule: CreditedBy, tables: int) -> int:
        """Computes the memory that the open decisions of some tables take."""
        chains = rule.chains(shape)
        each = _Table.COUNT_BYTES + _Table.ENTRY_BYTES * rule.n_step
        return tables * chains * each + 4 * _most_closed(shape, rule)

    def __len__(self) -> int:
        return sum(int(table.count.sum()) for table in self._tables.values())

    def follow(self, index: int, stored: StoredSlab) -> IntArray:
        """Follows the games of a table through a slab of the ring. Gives the places of decisions that it closes."""
        ring, slab = self._ring, stored.slab
        if stored.table not in self._tables:
            self._tables[stored.table] = _Table(ring)
        table = self._tables[stored.table]
        cut = self._cut(table, stored)
        found = ring.core.follow(
            index, slab.acting, slab.seat, slab.owner, slab.reward, slab.terminated, slab.truncated, slab.final_seat,
            table.count, table.place, table.seat, table.earned, table.factor,
            ring.rewards, ring.discounts, ring.next, self._closed,
        )  # fmt: skip
        table.last = (index, stored)
        closed = self._closed[:found]
        return np.concatenate([cut, closed]) if len(cut) else closed.copy()

    def overwrite(self, index: int) -> None:
        """Drops the decisions of a slab of the ring that is about to be overwritten."""
        stored = self._ring[index]
        if stored is not None and stored.table in self._tables:
            self.dropped[OVERWRITTEN] += self._tables[stored.table].drop_slab(index)

    def drops(self) -> Mapping[str, int]:
        return dict(self.dropped)

    def _cut(self, table: _Table, following: StoredSlab) -> IntArray:
        """If a slab does not continue the games of its table, ends open returns where the last slab ended."""
        if table.last is None or following.follows(table.last[1]) or not table.count.any():
            return np.zeros(0, np.int32)
        closed, dropped = table.close_at_end(*table.last)
        self.dropped[RESET if following.epoch != table.last[1].epoch else GAP] += dropped
        return closed


def _most_closed(shape: SlabShape, rule: CreditedBy) -> int:
    """The most decisions that one slab closes."""
    return shape.transitions + rule.chains(shape) * rule.n_step


class _Table:
    """The open decisions of one table: for each chain up to ``n_step``, oldest first."""

    COUNT_BYTES, ENTRY_BYTES = 4, 24

    def __init__(self, ring: SlabRing) -> None:
        self._ring = ring
        chains = ring.rule.chains(ring.shape)
        entries = (chains, ring.rule.n_step)
        # Filled, so that the memory is taken now.
        self.count: IntArray = np.full(chains, 0, np.int32)
        self.place: IntArray = np.full(entries, 0, np.int32)
        self.seat: IntArray = np.full(entries, 0, np.int32)
        self.earned: NDArray[np.float64] = np.full(entries, 0, np.float64)
        self.factor: NDArray[np.float64] = np.full(entries, 0, np.float64)
        self.last: tuple[int, StoredSlab] | None = None
        """The slab that was followed last, and its number in the ring."""

    def close_at_end(self, index: int, stored: StoredSlab) -> tuple[IntArray, int]:
        """Closes all decisions at the end of a slab. Gives the places that were closed, and the number of those whose
        seat does not act there."""
        ring, shape, slab = self._ring, self._ring.shape, stored.slab
        chain, entry = np.nonzero(self._is_open)
        place, seat = self.place[chain, entry], self.seat[chain, entry]
        game = chain // (len(self.count) // shape.games)
        slot = game * shape.seats + seat if shape.simultaneous else game
        there = slab.seat[shape.steps, slot]
        fits: Array = slab.acting[shape.steps, slot] & (ring.rule.one_chain | (there == seat))
        factor = np.where(there == seat, 1, -1) * self.factor[chain, entry]
        closed = place[fits]
        ring.rewards[closed] = self.earned[chain, entry][fits]
        ring.discounts[closed] = factor[fits]
        ring.next[closed] = ring.end_position(index, slot)[fits]
        self.count[:] = 0
        return closed, int((~fits).sum())

    def drop_slab(self, index: int) -> int:
        """Drops the decisions of one slab of the ring, which is the oldest of the table. Gives how many."""
        size = self._ring.shape.transitions
        gone = (self._is_open & (self.place // size == index)).sum(axis=1)
        if not gone.any():
            return 0
        # The oldest come first, so the others move to the front.
        order = (np.arange(self.place.shape[1]) + gone[:, None]) % self.place.shape[1]
        for column in (self.place, self.seat, self.earned, self.factor):
            column[:] = np.take_along_axis(column, order, axis=1)
        self.count -= gone.astype(np.int32)
        return int(gone.sum())

    @property
    def _is_open(self) -> NDArray[np.bool_]:
        is_open: NDArray[np.bool_] = np.arange(self.place.shape[1]) < self.count[:, None]
        return is_open
