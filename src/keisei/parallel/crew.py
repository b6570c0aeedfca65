"""The crew of a manager: its workers are started, awaited, added, removed and ended here, by hand or by load."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence

from keisei.errors import ParallelError, SharedMemoryError, WorkerStartError, WorkerTraceback
from keisei.parallel.backend_names import runs_elsewhere
from keisei.parallel.backends.contract import START_SECONDS, Backend
from keisei.parallel.collector import POLL_SECONDS
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import MAX_WORKERS, ParallelConfig
from keisei.parallel.supervision import Supervisor
from keisei.parallel.tables import Table
from keisei.parallel.workers import GONE, WORKING, Worker, WorkerState, WorkerTotals

logger = logging.getLogger(__name__)

STOP_SECONDS = 2.0
GROW_SECONDS = 5.0
"""Seconds between two looks for machines that have joined."""
WINDOW = 10
"""A decision is based on this many collections."""
STARVED = 0.5
"""If the learner waits for more than this share of its time, a worker is added."""
IDLE = 0.5
"""If workers wait for more than this share of their time, one is removed."""


class Crew:
    """Any number of workers for the same tables. More of them play faster, and change no bit of a synchronous run."""

    def __init__(
        self,
        config: ParallelConfig,
        tables: Sequence[Table],
        backend: Backend,
        communicator: WorkerCommunicator,
        supervisor: Supervisor,
    ) -> None:
        self._config, self._tables, self._backend = config, tables, backend
        self._communicator, self._supervisor = communicator, supervisor
        self._load = LoadWatch(config)
        self._grow_at = 0.0

    @property
    def workers(self) -> list[Worker]:
        return self._communicator.workers

    def chosen(self, numbers: Iterable[int] | None) -> list[Worker]:
        """Gets the workers with these numbers, by default all that were not removed."""
        if numbers is None:
            return [worker for worker in self.workers if worker.state is not WorkerState.STOPPED]
        by_number = {worker.number: worker for worker in self.workers}
        wanted = list(numbers)
        unknown = [number for number in wanted if number not in by_number]
        if unknown:
            raise ParallelError(f"there is no worker {unknown[0]}; the workers are {sorted(by_number)}")
        return [by_number[number] for number in wanted]

    # More workers.

    def start(self) -> None:
        """Starts the first workers, and returns when they are ready."""
        count = self._config.workers
        if self._follows_cluster:
            count = max(1, min(len(self._tables), self._backend.places()))
        self.add(count)

    def add(self, count: int) -> list[int]:
        """Starts more workers while the others play on, and returns their numbers when they are ready."""
        added = self._fresh(count)
        try:
            for worker in added:
                self._communicator.start(worker)
            self._await_ready(added)
        except BaseException:
            self._end(added)
            raise
        return [worker.number for worker in added]

    def grow(self) -> None:
        """Starts workers on machines that have joined, without waiting for them. More workers than tables would have
        nothing to do."""
        if not self._follows_cluster or time.monotonic() < self._grow_at:
            return
        self._grow_at = time.monotonic() + GROW_SECONDS
        present = [worker for worker in self.workers if worker.state not in GONE]
        most = min(len(self._tables), self._backend.places(), MAX_WORKERS)
        for worker in self._fresh(max(0, most - len(present))):
            self._communicator.start(worker)
            logger.info("worker %d is added: the cluster has grown", worker.number)

    @property
    def _follows_cluster(self) -> bool:
        """True if the number of workers follows from the machines that there are."""
        return self._config.num_workers == "auto" and runs_elsewhere(self._config.backend)

    def _fresh(self, count: int) -> list[Worker]:
        """Finds workers that can be started: first those that were removed, then new ones."""
        fresh = [worker for worker in self.workers if worker.state is WorkerState.STOPPED][:count]
        most = len(self.workers) + count - len(fresh)
        if most > MAX_WORKERS:
            raise ParallelError(f"a manager has room for {MAX_WORKERS} workers, and this makes {most}")
        while len(fresh) < count:
            fresh.append(Worker(len(self.workers)))
            self.workers.append(fresh[-1])
        for worker in fresh:
            worker.revive()
        return fresh

    def _await_ready(self, workers: list[Worker]) -> None:
        """Waits until all workers are ready, except those for which there is no place yet: they come later."""
        patience = max(self._config.timeout, START_SECONDS)
        deadline = time.monotonic() + patience
        while starting := [worker for worker in workers if worker.state is WorkerState.STARTING]:
            is_late = time.monotonic() > deadline
            if all(worker.is_queued for worker in starting) and self._can_go_on(is_late):
                logger.warning("workers that wait for a place to run: %d", len(starting))
                return
            self._supervisor.pump(POLL_SECONDS)
            broken = next((w for w in workers if w.failures or w.state is WorkerState.QUARANTINED), None)
            if broken is not None:
                raise WorkerStartError(
                    f"worker {broken.number} could not be started: {broken.last_error}"
                ) from WorkerTraceback.of(broken.last_traceback)
            if is_late:
                raise WorkerStartError(_why_not_ready(starting[0], patience))

    def _can_go_on(self, is_late: bool) -> bool:
        """Checks if the workers that can play are enough to go on: they take all places, or the others have waited long
        enough for theirs."""
        playing = sum(worker.can_play for worker in self.workers)
        return playing > 0 and (is_late or playing >= self._backend.places())

    # Fewer workers.

    def remove(self, numbers: Iterable[int]) -> None:
        """Lets workers finish the slabs that they have begun, and ends them. Other workers take over their tables."""
        leaving = [worker for worker in self.chosen(numbers) if worker.state not in GONE]
        for worker in leaving:
            worker.drain()
        deadline = time.monotonic() + self._config.timeout
        while any(worker.orders for worker in leaving) and time.monotonic() < deadline:
            self._supervisor.pump(POLL_SECONDS)
        self._end(leaving)

    def stop(self) -> None:
        """Ends all workers. Those that do not end by themselves are killed."""
        for worker in self.workers:
            if worker.handle is not None:
                worker.handle.ask_to_stop()  # ask all of them before waiting for any
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self.workers:
            self._communicator.stop(worker, max(0.1, deadline - time.monotonic()))

    def _end(self, workers: list[Worker]) -> None:
        for worker in workers:
            ended = self._communicator.stop(worker, STOP_SECONDS)
            self._supervisor.hand_on_tables(worker, still_writes=not ended)

    # As many as the load asks for.

    def rescale(self, learner_waited: float) -> None:
        """Adds or removes a worker after a collection, if ``parallel.scaling`` is on and the load asks for it."""
        self._load.learner_waited(learner_waited)
        working = [worker for worker in self.workers if worker.state in WORKING]
        advice = self._load.advice(len(working), summed([worker.totals for worker in self.workers]))
        if advice > 0:
            self._add_by_load(advice)
        elif advice < 0:
            self.remove([working[-1].number])
        if advice:
            logger.info("%d workers by load", len(working) + advice)

    def _add_by_load(self, count: int) -> None:
        """Adds workers. If a start fails, this is only logged, so that the experience just collected is not lost."""
        try:
            self.add(count)
        except (WorkerStartError, SharedMemoryError) as error:
            logger.error("no worker could be added by load: %s", str(error))


def _why_not_ready(worker: Worker, patience: float) -> str:
    if worker.handle is not None and worker.handle.is_queued:
        return f"worker {worker.number} found no place to run in {patience:g} s: {worker.handle.exit_reason}"
    return f"workers were not ready after {patience:g} s; raise parallel.timeout"


class LoadWatch:
    """Measures how long learner and workers wait. It decides only after a whole window, so that the number does not
    swing up and down."""

    def __init__(self, config: ParallelConfig) -> None:
        self._config = config
        self._restart(WorkerTotals())

    def _restart(self, now: WorkerTotals) -> None:
        self._since = time.monotonic()
        self._learner_waited = 0.0
        self._collections = 0
        self._seconds_before = now.seconds
        self._waited_before = now.waited_seconds

    def learner_waited(self, seconds: float) -> None:
        self._learner_waited += seconds
        self._collections += 1

    def advice(self, workers: int, crew: WorkerTotals) -> int:
        """Advises, at the end of a window, to add a worker (+1), to remove one (-1) or neither (0). ``crew`` holds the
        totals of all workers."""
        if self._config.scaling != "auto" or self._collections < WINDOW:
            return 0
        elapsed = max(1e-9, time.monotonic() - self._since)
        starved = self._learner_waited / elapsed
        worked, waited = crew.seconds - self._seconds_before, crew.waited_seconds - self._waited_before
        idle = waited / max(1e-9, worked + waited)
        self._restart(crew)
        if starved > STARVED and workers < self._config.most_workers:
            return 1
        if starved < STARVED and idle > IDLE and workers > self._config.min_workers:
            return -1
        return 0


def summed(totals: list[WorkerTotals]) -> WorkerTotals:
    return WorkerTotals(
        seconds=sum(each.seconds for each in totals),
        waited_seconds=sum(each.waited_seconds for each in totals),
    )
