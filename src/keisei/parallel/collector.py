"""Two ways to collect: in rounds that alternate with the learner, or as a stream that never waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from keisei.errors import (
    CollectTimeoutError,
    NoWorkersError,
    ParallelError,
    TableFailedError,
    WorkerTraceback,
)
from keisei.parallel.backends.contract import START_SECONDS
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import ParallelConfig
from keisei.parallel.dealer import Dealer
from keisei.parallel.deliveries import Deliveries, Stock
from keisei.parallel.supervision import Supervisor
from keisei.parallel.tables import Table
from keisei.parallel.workers import WORKING, WorkerState

POLL_SECONDS = 0.05
"""The longest time that the manager sleeps before it checks for hung workers again."""


class Collector:
    """Orders slabs and waits for them."""

    def __init__(
        self,
        config: ParallelConfig,
        slab_transitions: int,
        tables: Sequence[Table],
        communicator: WorkerCommunicator,
        stock: Stock,
        deliveries: Deliveries,
        dealer: Dealer,
        supervisor: Supervisor,
    ) -> None:
        self._config = config
        self._slab_transitions = slab_transitions
        self._tables, self._communicator, self._workers = tables, communicator, communicator.workers
        self._stock, self._deliveries = stock, deliveries
        self._dealer, self._supervisor = dealer, supervisor

    def round(self, target: int | None, version: int, patience: float) -> None:
        """Plays every table equally far with behaviour of one version. Returns when all slabs have arrived."""
        owed = self._owed(target)
        watch = _Progress(patience)
        while True:
            self._demand_hands()
            self._demand_hope()
            if self._anybody_works():
                self._order_owed(owed, version)
                if not any(table.orders for table in self._tables):
                    self._demand_slabs(any(owed.values()))
                    return
            for worker, orders in self._dealer.one_each():
                self._communicator.send(worker, orders)
            self._supervisor.pump(POLL_SECONDS)
            watch.look(self._progress(), self._stuck, START_SECONDS if self._all_start() else 0.0)

    def stream(self, target: int | None, seconds: float, oldest: int = 0) -> None:
        """Keeps every free slab in play, until enough transitions of version ``oldest`` or newer have arrived, or the
        time is up.

        Weights do not change during the call. The slab that a worker is playing may be too old, but its next slab is
        not. So a call with enough time for two slabs never returns empty, even if weights change often between calls.
        """
        deadline = time.monotonic() + seconds
        needed = target or 1
        self._supervisor.pump(0)  # takes in what has arrived, even if there is no time to wait
        self._dealer.balance()
        while True:
            self._deliveries.drop_older_than(oldest)
            has_some = self._deliveries.arrived_transitions > 0
            if not has_some:
                self._demand_hands()
            self._demand_hope()
            self.play_on()
            left = deadline - time.monotonic()
            if self._deliveries.arrived_transitions >= needed or left <= 0:
                return
            if has_some and not self._anybody_works() and not self._anybody_plays():
                return  # no worker is left, but something arrived before
            if not any(table.orders for table in self._tables):
                # All slabs are full, and the target is larger than all of them.
                self._deliveries.make_room()
                self._demand_slabs(not has_some)
                if not self._stock.free_slabs:
                    return
                continue
            self._supervisor.pump(min(POLL_SECONDS, left))

    def play_on(self) -> None:
        """Orders a slab for each free one, the same number for each table, and returns at once."""
        if not self._anybody_works():
            return
        held = self._deliveries.held_by_table()
        for ahead in range(1, self._config.queue_maxsize + 1):
            for table in self._tables:
                room = (
                    len(table.orders) < ahead
                    and len(table.orders) + held[table.number] < self._config.queue_maxsize
                )
                if room and self._stock.free_slabs and not table.moving:
                    table.add_order(*self._stock.take(), version=-1)
            for worker, orders in self._dealer.ahead():
                self._communicator.send(worker, orders)

    def _owed(self, target: int | None) -> dict[int, int]:
        """Computes how many slabs must still be ordered for each table. Slabs from a call that timed out count too."""
        each = 1
        if target is not None and not self._config.episodes_per_worker:
            each = max(1, -(-target // (len(self._tables) * self._slab_transitions)))
        arrived = self._deliveries.arrived_by_table()
        return {
            table.number: max(0, each - arrived[table.number] - len(table.orders)) for table in self._tables
        }

    def _order_owed(self, owed: dict[int, int], version: int) -> None:
        """Orders the next slab of each table whose last order is done."""
        for table in self._tables:
            if table.orders:
                continue
            self._owe_episodes(table, owed)
            if not owed[table.number]:
                continue
            if not self._stock.free_slabs:
                self._deliveries.make_room()
            if self._stock.free_slabs:
                table.add_order(*self._stock.take(), version)
                owed[table.number] -= 1

    def _owe_episodes(self, table: Table, owed: dict[int, int]) -> None:
        """Adds one slab if episodes are counted instead of steps, and the table has finished too few of them."""
        wanted = self._config.episodes_per_worker
        if wanted and not owed[table.number] and self._deliveries.episodes_of(table.number) < wanted:
            owed[table.number] = 1

    def _anybody_works(self) -> bool:
        return any(worker.state in WORKING for worker in self._workers)

    def _anybody_plays(self) -> bool:
        return any(worker.orders for worker in self._workers)

    def _demand_hands(self) -> None:
        """Raises an error if no worker is active, unless paused or leaving workers still play."""
        if not self._anybody_works() and not self._anybody_plays():
            last = next((worker.last_traceback for worker in self._workers if worker.last_traceback), "")
            raise NoWorkersError(self._why_nobody_works()) from WorkerTraceback.of(last)

    def _demand_slabs(self, wanted: bool) -> None:
        """Raises an error if no slab is free because buffers keep all of them."""
        if wanted and not self._stock.free_slabs:
            raise ParallelError(
                f"all {self._stock.slabs} slabs are kept under leases, and none is left to play in; end some "
                f"(end_leases), or make the manager with more leased_slabs"
            )

    def _demand_hope(self) -> None:
        """Raises an error for a table that no worker can play, before it makes one worker after another fail."""
        for table in self._tables:
            if table.is_hopeless(self._config.max_failures):
                raise TableFailedError(
                    f"a table {table.describe_failure()} ({table.describe_place()}): {table.last_error}. Look at it "
                    f"with backend: inline, or call reset_workers, which restarts its games"
                ) from WorkerTraceback.of(table.last_traceback)

    def _progress(self) -> tuple[int, int]:
        """Counts steps, slabs and restarts, and the workers that have started. A restart counts as progress, so that
        the successor of a hung worker gets the full time."""
        steps = sum(worker.handle.steps for worker in self._workers if worker.handle is not None)
        done = steps + sum(worker.totals.restarts + worker.totals.slabs for worker in self._workers)
        return done, sum(worker.is_ready for worker in self._workers)

    def _all_start(self) -> bool:
        """Checks if workers are starting and none runs, for example after all were lost. A start may take longer than a
        step: on a busy machine, a new process imports torch for half a minute."""
        states = {worker.state for worker in self._workers if not worker.is_queued}
        return WorkerState.STARTING in states and WorkerState.RUNNING not in states

    def _stuck(self, patience: float) -> str:
        states = ", ".join(
            f"{worker.number} {'waiting for a place' if worker.is_queued else worker.state.value}"
            for worker in self._workers
        )
        return (
            f"no worker made a step for {patience:g} s (workers: {states}). Raise parallel.timeout if a step may take "
            f"that long; what has been collected comes with the next call"
        )

    def _why_nobody_works(self) -> str:
        if any(worker.state is WorkerState.PAUSED for worker in self._workers):
            return "all workers are paused; call resume_workers first"
        told = [
            f"workers {numbers}: {error}" + (f" ({place})" if place else "")
            for error, (numbers, place) in self._last_errors().items()
        ]
        return "; ".join(["no worker is left that could collect anything", *told])

    def _last_errors(self) -> dict[str, tuple[list[int], str]]:
        """Lists each error once, with the workers that had it and the place of the last one."""
        found: dict[str, tuple[list[int], str]] = {}
        for worker in self._workers:
            if worker.last_error:
                numbers, _ = found.get(worker.last_error, ([], ""))
                found[worker.last_error] = [*numbers, worker.number], worker.last_place
        return found


class _Progress:
    """Raises an error if two numbers have not changed for too long."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._seen = (-1, -1)
        self._since = time.monotonic()

    def look(self, progress: tuple[int, int], message: Callable[[float], str], at_least: float) -> None:
        """Raises an error if ``progress`` has not changed for too long. ``at_least`` is the shortest patience, for
        times in which a change takes longer."""
        patience = max(self._patience, at_least)
        if progress != self._seen:
            self._seen, self._since = progress, time.monotonic()
        elif time.monotonic() - self._since > patience:
            raise CollectTimeoutError(message(patience))
