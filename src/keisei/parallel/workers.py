"""The manager's view of workers: the state of each one, and every way in which it changes."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from keisei.experience.slab import SlabRecord
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.messages import Order, OrderKind
from keisei.parallel.plan import MAX_IN_FLIGHT
from keisei.parallel.tables import FAILURE_WINDOW, OUTSIDE_KILLS

FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0
FORGET_WITH_AN_ORDER = 2
"""How many tables a worker is told to forget with each order. Even with all orders in flight, the pipe has room for
them."""


class WorkerState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    """It finishes its orders and is removed afterwards."""
    STOPPED = "stopped"
    FAILED = "failed"
    """It is dead and will be replaced."""
    QUARANTINED = "quarantined"
    """It failed too often and is not replaced."""


WORKING = frozenset({WorkerState.STARTING, WorkerState.RUNNING, WorkerState.FAILED})
"""States in which a worker plays, or will play after a restart."""
GONE = frozenset({WorkerState.STOPPED, WorkerState.QUARANTINED})


@dataclass
class WorkerTotals:
    """Totals of a worker since the start."""

    transitions: int = 0
    slabs: int = 0
    episodes: int = 0
    restarts: int = 0
    seconds: float = 0.0
    """Seconds in which it played."""
    game_seconds: float = 0.0
    policy_seconds: float = 0.0
    waited_seconds: float = 0.0

    def add(self, record: SlabRecord, episodes: int) -> None:
        self.transitions += record.transitions
        self.slabs += 1
        self.episodes += episodes
        self.seconds += record.seconds
        self.game_seconds += record.game_seconds
        self.policy_seconds += record.policy_seconds
        self.waited_seconds += record.waited_seconds


@dataclass
class Worker:
    """A worker and its successors, which have the same number. If the worker dies, a successor is started.

    All changes of its state are made in this class.
    """

    number: int
    handle: WorkerHandle | None = None
    state: WorkerState = WorkerState.STARTING
    orders: deque[Order] = field(default_factory=deque)
    """Orders that were sent and are not yet done, oldest first."""
    stale: list[int] = field(default_factory=list)
    """Tables that other workers play now. The worker is told with its next orders, a few tables at a time. So the
    pipe of a worker that does not read is never filled up."""
    asks: bool = False
    """It waits for an answer of the manager. It makes no step, but it does not hang."""
    is_ready: bool = False
    """It has reported ready since its last start."""
    failures: list[float] = field(default_factory=list)
    outside_kills: int = 0
    retry_at: float = 0.0
    last_error: str = ""
    """The last error in one line."""
    last_place: str = ""
    """The table that it played when it failed last, and where."""
    last_traceback: str = ""
    totals: WorkerTotals = field(default_factory=WorkerTotals)
    started_at: float = 0.0
    _steps_seen: int = -1
    _progress_at: float = 0.0

    # Its state.

    @property
    def can_play(self) -> bool:
        """True if it runs and takes new orders."""
        return self.handle is not None and self.is_ready and self.state is WorkerState.RUNNING

    @property
    def is_queued(self) -> bool:
        """True if it waits for a place to run."""
        return self.handle is not None and self.handle.is_queued

    @property
    def room(self) -> int:
        """How many orders it can be sent now. The limit keeps its pipe from filling up."""
        return MAX_IN_FLIGHT - len(self.orders)

    @property
    def is_due(self) -> bool:
        """True if it is dead and its successor can be started. A paused or leaving worker gets no successor."""
        return self.handle is None and self.state is WorkerState.FAILED and time.monotonic() >= self.retry_at

    # Changes of its state.

    def started(self, handle: WorkerHandle) -> None:
        self.handle, self.is_ready, self.started_at = handle, False, time.monotonic()
        self._steps_seen = -1
        self.stale.clear()
        if self.state is not WorkerState.PAUSED:
            self.state = WorkerState.STARTING

    def became_ready(self) -> None:
        self.is_ready = True
        self.watch_anew()
        if self.state is WorkerState.STARTING:
            self.state = WorkerState.RUNNING

    def take(self, orders: list[Order]) -> list[Order]:
        """Takes new orders. Returns the messages to send: these orders, and the tables to forget."""
        if not self.orders:
            self.watch_anew()  # it had no orders, and nobody may have checked it during the update
        self.orders.extend(orders)
        given = {order.table for order in orders}
        stale = [table for table in self.stale if table not in given]
        most = FORGET_WITH_AN_ORDER * len(orders)
        self.stale = stale[most:]
        return [*(Order(OrderKind.FORGET, table) for table in stale[:most]), *orders]

    def played(self, record: SlabRecord, episodes: int) -> None:
        self.orders.popleft()
        self.failures.clear()
        self.outside_kills = 0
        self.totals.add(record, episodes)

    def pause(self) -> None:
        if self.state in WORKING:
            self.state = WorkerState.PAUSED

    def resume(self) -> None:
        """Ends a pause. If the worker died during the pause, its successor is started."""
        if self.state is WorkerState.PAUSED:
            self.state = self._working_state()

    def _working_state(self) -> WorkerState:
        if self.handle is None:
            return WorkerState.FAILED
        return WorkerState.RUNNING if self.is_ready else WorkerState.STARTING

    def drain(self) -> None:
        self.state = WorkerState.DRAINING

    def died(
        self, error: str, *, from_outside: bool, max_failures: int, place: str = "", traceback: str = ""
    ) -> None:
        """Notes its death. It gets a successor, unless it has failed too often. After repeated failures, the start is
        delayed."""
        now = time.monotonic()
        self.handle, self.asks, self.is_ready = None, False, False
        self.orders.clear()
        self.last_error, self.last_place, self.last_traceback = error, place, traceback
        if from_outside:
            self.outside_kills += 1
        else:
            self.failures = [*(at for at in self.failures if now - at < FAILURE_WINDOW), now]
        if len(self.failures) > 1:
            self.retry_at = now + min(FIRST_BACKOFF * 2.0 ** (len(self.failures) - 2), LONGEST_BACKOFF)
        if self.outside_kills >= OUTSIDE_KILLS or len(self.failures) >= max_failures:
            self.put_out(error)
        elif self.state in WORKING:
            self.state = WorkerState.FAILED
        elif self.state is WorkerState.DRAINING:
            self.state = WorkerState.STOPPED

    def put_out(self, error: str) -> None:
        """Quarantines it: it gets no successor."""
        self.state, self.last_error = WorkerState.QUARANTINED, error

    def stopped(self, ended: bool) -> None:
        """Notes its end. A thread that cannot be ended is quarantined, because its number cannot be used again."""
        self.handle, self.asks, self.is_ready = None, False, False
        self.orders.clear()
        if self.state is not WorkerState.QUARANTINED:
            self.state = WorkerState.STOPPED if ended else WorkerState.QUARANTINED

    def revive(self) -> None:
        """Makes a removed worker ready to start again."""
        self.failures.clear()
        self.outside_kills, self.retry_at, self.state = 0, 0.0, WorkerState.STARTING

    # Its progress.

    def idle_seconds(self) -> float:
        """Computes for how long a worker with orders has made no step."""
        if self.handle is None:
            return 0.0
        steps, now = self.handle.steps, time.monotonic()
        if self.handle.is_queued:
            self.started_at = now
        if not self.is_ready:
            return now - self.started_at
        if steps != self._steps_seen or not self.orders or self.asks:
            self._steps_seen, self._progress_at = steps, now
        return now - self._progress_at

    def watch_anew(self) -> None:
        """Starts to count idle time from now."""
        self._progress_at = time.monotonic()
