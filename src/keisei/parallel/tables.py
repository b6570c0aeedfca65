"""The manager's view of tables: the orders of each one, the saved state of its games, and the worker that plays
it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from keisei.errors import ParallelError
from keisei.experience.slab import SlabRecord
from keisei.parallel.arena import Arena
from keisei.parallel.deliveries import Stock
from keisei.parallel.messages import THROUGH_PIPE, Order, OrderKind, Start
from keisei.policies.seating import SELF_PLAY, Lineup

FAILURE_WINDOW = 60.0
"""Failures within this many seconds are counted together."""
OUTSIDE_KILLS = 20
"""How often in a row a table or a worker may be killed from outside: by a person, or by a system out of memory."""


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """The games of one table between two slabs."""

    table: int
    epoch: int
    sequence: int
    """The sequence number of the next slab."""
    state: bytes
    """The saved games, with the members of the league that they meet; empty if the games of this epoch have not
    begun."""


@dataclass(frozen=True, slots=True)
class SavedGames:
    """Where the last known state of a table is stored."""

    epoch: int
    slot: int
    state: bytes = b""
    """The state itself, if it is too large for a slot."""


@dataclass(frozen=True, slots=True)
class TableFailure:
    """A worker failed while it played the table, and the cause did not come from outside."""

    worker: int
    at: float
    error: str
    """One line."""
    traceback: str = ""


@dataclass
class Table:
    """One table. Its games move between workers as a saved state, and this does not change the data."""

    number: int
    games: int
    seed: int
    epoch: int = 0
    """Counts resets. New orders have this epoch."""
    next_sequence: int = 0
    lineup: Lineup = SELF_PLAY
    """The opponents of games that begin in slabs ordered from now on."""
    saved: SavedGames | None = None
    """The state after the last slab that was handed in; None if there was none."""
    orders: deque[Order] = field(default_factory=deque)
    """Slabs to play, oldest first, including those that no worker has been given yet."""
    dealt: int = 0
    """How many of the orders were given to its worker."""
    worker: int | None = None
    """The worker that holds the games."""
    moving: bool = False
    """True if another worker will take it. It gets no more orders until its worker has done those that it has."""
    failures: list[TableFailure] = field(default_factory=list)
    outside_kills: int = 0
    _arriving: list[bytes] = field(default_factory=list, repr=False)

    @property
    def first_game(self) -> int:
        return self.number * self.games

    @property
    def _next_epoch(self) -> int:
        """The epoch of the slab that is played next."""
        return self.orders[0].epoch if self.orders else self.epoch

    @property
    def continued(self) -> SavedGames | None:
        """The saved games that the next slab continues; None if new games begin."""
        return self.saved if self.saved is not None and self.saved.epoch == self._next_epoch else None

    @property
    def waits(self) -> bool:
        """True if it has an order that was not given to a worker."""
        return len(self.orders) > self.dealt

    def add_order(self, slab: int, state_slot: int, version: int) -> None:
        """Adds an order for the next slab, with behaviour of a version (-1: the newest)."""
        order = Order(OrderKind.PLAY, self.number, self.epoch, self.next_sequence, version, slab, state_slot)
        self.orders.append(replace(order, lineup=self.lineup))
        self.next_sequence += 1

    def deal(self, worker: int, newest: int, most: int) -> list[Order]:
        """Deals the orders to send to a worker now: all that it has not been given, but at most ``most``.

        Old weights are not kept. An order outlives its weights if a collection times out and the learner continues
        without it. Such an order is played with the newest weights; every transition holds their version.
        """
        if self.dealt and worker != self.worker:
            raise ParallelError(f"table {self.number} is played by worker {self.worker}")
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
        """Adds where the games come from. The worker continues them, unless there was a reset or it does not hold
        them."""
        saved_epoch = self.saved.epoch if self.saved is not None else None
        epoch_before = self.orders[index - 1].epoch if index else saved_epoch
        if epoch_before != order.epoch:
            return replace(order, start=Start.BEGIN)
        if index or not is_new_to_it or self.saved is None:
            return order
        return replace(order, start=Start.LOAD, source=self.saved.slot)

    def take_piece(self, content: bytes, is_first: bool) -> None:
        """Takes one part of a state that is too large for a slot."""
        if is_first:
            self._arriving.clear()
        self._arriving.append(content)

    def done(self, record: SlabRecord) -> list[int]:
        """Notes that a slab was played. Returns the state slots that are free now."""
        order = self.orders[0] if self.dealt else None
        if order is None or (order.epoch, order.sequence, order.slab) != (
            record.epoch, record.sequence, record.slab,
        ):  # fmt: skip
            raise ParallelError(
                f"worker {record.worker} delivered slab {record.sequence} of table {self.number}, but its order is "
                f"{order}"
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
        """Removes its worker. All orders wait again."""
        self.worker, self.dealt, self.moving = None, 0, False
        self._arriving.clear()

    def reset(self) -> None:
        """Starts new games with later orders. Orders that a worker already has are still played."""
        self.epoch += 1
        for index in range(self.dealt, len(self.orders)):
            self.orders[index] = replace(self.orders[index], epoch=self.epoch)
        self.failures.clear()
        self.outside_kills = 0

    def note_failure(self, worker: int, error: str, from_outside: bool, traceback: str = "") -> None:
        now = time.monotonic()
        if from_outside:
            self.outside_kills += 1
            return
        recent = [failure for failure in self.failures if now - failure.at < FAILURE_WINDOW]
        self.failures = [*recent, TableFailure(worker, now, error, traceback)]

    def is_hopeless(self, max_failures: int) -> bool:
        """Checks if the table itself is the cause of its failures. This is so if it failed under two workers, too
        often under one worker, or was killed from outside too often."""
        tried = {failure.worker for failure in self.failures}
        return len(tried) > 1 or len(self.failures) >= max_failures or self.outside_kills >= OUTSIDE_KILLS

    def describe_failure(self) -> str:
        """Describes how a hopeless table failed."""
        tried = sorted({failure.worker for failure in self.failures})
        if len(tried) > 1:
            return f"failed under the workers {tried}"
        if tried and self.outside_kills < OUTSIDE_KILLS:
            return f"failed {len(self.failures)} times under worker {tried[0]}"
        return "took one worker after the other with it"

    @property
    def last_error(self) -> str:
        return self.failures[-1].error if self.failures else "they were killed, perhaps for want of memory"

    @property
    def last_traceback(self) -> str:
        return self.failures[-1].traceback if self.failures else ""

    def snapshot(self, arena: Arena) -> TableSnapshot:
        """Gets the games after the last slab that was handed in. Later states use other slots, so a worker that plays
        on does not change this one."""
        sequence = self.orders[0].sequence if self.orders else self.next_sequence
        saved = self.continued
        state = b"" if saved is None else saved.state or arena.read_state(saved.slot)
        return TableSnapshot(self.number, self._next_epoch, sequence, state)

    def restore(self, snapshot: TableSnapshot, arena: Arena, stock: Stock) -> None:
        """Restores a snapshot. Call it before anything is ordered."""
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
        """Moves the orders of a lost worker to other slabs and state slots, since it may still write to the old
        ones."""
        for index in range(self.dealt):
            slab, slot = fresh()
            self.orders[index] = replace(self.orders[index], slab=slab, state_slot=slot)

    def describe_place(self) -> str:
        """Describes the current place of a table, so that a failure can be reproduced."""
        order = self.orders[0] if self.orders else None
        return (
            f"seed {self.seed}, table {self.number} (games {self.first_game} … {self.first_game + self.games - 1}), "
            f"epoch {order.epoch if order else self.epoch}, slab {order.sequence if order else self.next_sequence}"
        )
