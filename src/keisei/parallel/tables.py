"""Tables as the manager knows them: what each has promised, where its games are, and in whose hands."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from keisei.errors import ParallelError
from keisei.experience.slab import SlabRecord
from keisei.parallel.arena import Arena
from keisei.parallel.messages import THROUGH_PIPE, Order, OrderKind, Start
from keisei.parallel.stock import Stock

FAILURE_WINDOW = 60.0
"""Seconds within which failures count together."""
OUTSIDE_KILLS = 20
"""How often a table or a worker may be hit from outside in a row: by a person, or by a system out of memory."""


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The games of one table between two slabs."""

    table: int
    epoch: int
    sequence: int
    """Of the next slab."""
    state: bytes
    """``Game.save``; empty where the games of this epoch have not begun."""


@dataclass(frozen=True, slots=True)
class SavedGames:
    """Where the state lies that a table was last known to be in."""

    epoch: int
    slot: int
    state: bytes = b""
    """The state itself, where it is too large for a slot."""


@dataclass(frozen=True, slots=True)
class TableFailure:
    """A worker failed while it played the table, by no fault from outside."""

    worker: int
    at: float
    error: str


@dataclass
class Table:
    """One table. Its games move from worker to worker by their saved state, and nobody can tell from the data."""

    number: int
    games: int
    seed: int
    epoch: int = 0
    """Counts resets. New orders are of this epoch."""
    next_sequence: int = 0
    saved: SavedGames | None = None
    """The state after the last slab that was handed in; None where nothing was."""
    orders: deque[Order] = field(default_factory=deque)
    """Slabs that are to be played, oldest first, whether a worker has been told or not."""
    dealt: int = 0
    """How many of the orders its worker has been given."""
    worker: int | None = None
    """Who has the games in hand."""
    moving: bool = False
    """Gets no further orders until its worker has done those that it has: then another takes it."""
    failures: list[TableFailure] = field(default_factory=list)
    outside_kills: int = 0
    _arriving: list[bytes] = field(default_factory=list, repr=False)

    @property
    def first_game(self) -> int:
        return self.number * self.games

    @property
    def waits(self) -> bool:
        """Has an order that no worker has been given."""
        return len(self.orders) > self.dealt

    def add_order(self, slab: int, state_slot: int, version: int) -> None:
        """The next slab is to be played, with behaviour of a version (-1: the newest)."""
        self.orders.append(
            Order(OrderKind.PLAY, self.number, self.epoch, self.next_sequence, version, slab, state_slot)
        )
        self.next_sequence += 1

    def deal(self, worker: int, newest: int, most: int) -> list[Order]:
        """The orders that a worker is to be sent now: all that it has not been given, or as many as it takes.

        Old weights are not kept. Orders that outlived theirs, because a collection timed out and the learner went on
        without it, are played with the newest; every transition says which those are.
        """
        if self.dealt and worker != self.worker:
            raise ParallelError(f"table {self.number} is in the hands of worker {self.worker}")
        is_new_to_it = worker != self.worker
        sent = []
        for index in range(self.dealt, min(len(self.orders), self.dealt + most)):
            order = self.orders[index]
            if 0 <= order.version < newest:
                order = self.orders[index] = replace(order, version=newest)
            sent.append(self._with_start(order, index, is_new_to_it))
        self.worker, self.dealt, self.moving = worker, self.dealt + len(sent), False
        return sent

    def _with_start(self, order: Order, index: int, is_new_to_it: bool) -> Order:
        """Tell a worker where to take up the games: it goes on, unless they begin anew or are new to it."""
        saved_epoch = self.saved.epoch if self.saved is not None else None
        epoch_before = self.orders[index - 1].epoch if index else saved_epoch
        if epoch_before != order.epoch:
            return replace(order, start=Start.BEGIN)
        if index or not is_new_to_it or self.saved is None:
            return order
        return replace(order, start=Start.LOAD, source=self.saved.slot)

    def take_piece(self, content: bytes, is_first: bool) -> None:
        """A part of a state that is too large for a slot."""
        if is_first:
            self._arriving.clear()
        self._arriving.append(content)

    def done(self, record: SlabRecord) -> list[int]:
        """Take note of a slab that was played; gives the state slots that are free now."""
        order = self.orders[0] if self.dealt else None
        if order is None or (order.epoch, order.sequence, order.slab) != (
            record.epoch, record.sequence, record.slab,
        ):  # fmt: skip
            raise ParallelError(
                f"worker {record.worker} handed in slab {record.sequence} of table {self.number}, but was to do {order}"
            )
        self.orders.popleft()
        self.dealt -= 1
        self.failures.clear()
        self.outside_kills = 0
        before = self.saved
        self.saved = SavedGames(record.epoch, record.state_slot, b"".join(self._arriving))
        self._arriving.clear()
        free = [before.slot] if before is not None and before.slot != THROUGH_PIPE else []
        return [*free, order.state_slot] if record.state_slot == THROUGH_PIPE else free

    def drop_hands(self) -> None:
        """Its worker is gone, or plays it no more. All orders wait again."""
        self.worker, self.dealt, self.moving = None, 0, False
        self._arriving.clear()

    def reset(self) -> None:
        """The games of later orders begin anew. What a worker has in hand is still played."""
        self.epoch += 1
        for index in range(self.dealt, len(self.orders)):
            self.orders[index] = replace(self.orders[index], epoch=self.epoch)
        self.failures.clear()
        self.outside_kills = 0

    def note_failure(self, worker: int, error: str, from_outside: bool) -> None:
        now = time.monotonic()
        if from_outside:
            self.outside_kills += 1
            return
        recent = [failure for failure in self.failures if now - failure.at < FAILURE_WINDOW]
        self.failures = [*recent, TableFailure(worker, now, error)]

    def is_hopeless(self, max_failures: int) -> bool:
        """Failed under two workers, too often under one that can play other tables, or took too many of them with it:
        the fault is the table's own."""
        tried = {failure.worker for failure in self.failures}
        return len(tried) > 1 or len(self.failures) >= max_failures or self.outside_kills >= OUTSIDE_KILLS

    def describe_failure(self) -> str:
        """How a hopeless table got there."""
        tried = sorted({failure.worker for failure in self.failures})
        if len(tried) > 1:
            return f"failed under the workers {tried}"
        if tried and self.outside_kills < OUTSIDE_KILLS:
            return f"failed {len(self.failures)} times under worker {tried[0]}"
        return "took one worker after the other with it"

    @property
    def last_error(self) -> str:
        return self.failures[-1].error if self.failures else "they were killed, perhaps for want of memory"

    def snapshot(self, arena: Arena) -> TableSnapshot:
        """The games as they were after the last slab that was handed in. Later states have other slots, so that a
        worker that plays on does not disturb this."""
        following = self.orders[0] if self.orders else None
        epoch = self.epoch if following is None else following.epoch
        sequence = self.next_sequence if following is None else following.sequence
        state = b""
        if self.saved is not None and self.saved.epoch == epoch:
            state = self.saved.state or arena.read_state(self.saved.slot)
        return TableSnapshot(self.number, epoch, sequence, state)

    def restore(self, snapshot: TableSnapshot, arena: Arena, stock: Stock) -> None:
        """Take up a snapshot, before anything is ordered."""
        self.epoch, self.next_sequence = snapshot.epoch, snapshot.sequence
        if not snapshot.state:
            return
        slot = stock.take_slot()
        if arena.write_state(slot, snapshot.state):
            self.saved = SavedGames(snapshot.epoch, slot)
        else:
            stock.give_slot(slot)
            self.saved = SavedGames(snapshot.epoch, THROUGH_PIPE, snapshot.state)

    def move_orders(self, fresh: Callable[[], tuple[int, int]]) -> None:
        """Give the orders in hand other slabs and state slots: whoever had them may still write to theirs."""
        for index in range(self.dealt):
            slab, slot = fresh()
            self.orders[index] = replace(self.orders[index], slab=slab, state_slot=slot)

    def describe_place(self) -> str:
        """Where a table stands, for somebody who wants to see its failure again."""
        order = self.orders[0] if self.orders else None
        return (
            f"seed {self.seed}, table {self.number} (games {self.first_game} … {self.first_game + self.games - 1}), "
            f"epoch {order.epoch if order else self.epoch}, slab {order.sequence if order else self.next_sequence}"
        )
