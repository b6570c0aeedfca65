"""Disturbance from outside: a thread that kills and stops worker processes, and measures how they recover.

It acts like a person with ``kill -9``, a system out of memory or a frozen machine, at times that do not depend on
the worker's work. It only limits its rate: a worker that never finishes a slab before the next strike would rightly
be quarantined.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from keisei.errors import ParallelError
from keisei.parallel.backends.contract import WorkerHandle
from keisei.parallel.messages import Start
from keisei.parallel.tables import Table
from keisei.parallel.workers import Worker, WorkerState

TICK = 0.002
"""Seconds between two looks at the workers, which is the precision of recovery times."""
HITS_ON_ONE_SLAB = 4
"""The most strikes on a worker or a table during one slab. Then it is left alone until the slab is played."""
HEIR_SHARE = 0.5
"""Share of strikes that hit a worker that has just received another's table, if there is one."""
RUDE_SHARE = 0.1
"""Share of kills that may hit any worker, also one that is just starting to replace another."""


@dataclass
class Toll:
    """The strikes, and how workers recovered."""

    kills: int = 0
    stops: int = 0
    interrupted: int = 0
    """Kills that hit a successor before its first step."""
    heirs: int = 0
    """Strikes on a worker that had just received another's table."""
    recoveries: list[float] = field(default_factory=list)
    """Seconds from the signal until the successor makes its first step, or is ready if there is no work. For a
    worker that is stopped while it rests, the time counts from its next order."""

    @property
    def strikes(self) -> int:
        return self.kills + self.stops

    def __add__(self, other: Toll) -> Toll:
        return Toll(
            self.kills + other.kills,
            self.stops + other.stops,
            self.interrupted + other.interrupted,
            self.heirs + other.heirs,
            self.recoveries + other.recoveries,
        )


@dataclass
class _Blow:
    """A signal from which a worker has not yet recovered."""

    handle: WorkerHandle
    since: float
    stopped: bool
    """True for SIGSTOP, which the manager only notices when the worker has work."""
    steps: int | None = None
    """The step count of its place when the successor was first seen."""


class Disturber:
    """Strikes workers at a given mean interval, from the start of the ``with`` until ``cease`` or its end.

    Leave it before the manager stops its workers, since it reads their memory.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        tables: Sequence[Table],
        *,
        every: float,
        stop_share: float = 0.0,
        limit: int | None = None,
        seed: int = 0,
    ) -> None:
        """``stop_share`` of the strikes are SIGSTOP, the others SIGKILL. There are at most ``limit`` strikes."""
        if not hasattr(signal, "SIGSTOP"):
            raise ParallelError("workers are killed and stopped by signals, which this system does not have")
        self._workers, self._tables = workers, tables
        self._every, self._stop_share, self._limit = every, stop_share, limit
        self._chance = random.Random(seed)
        self._next_strike = 0.0
        self._blows: dict[int, _Blow] = {}
        self._ceased = threading.Event()
        self._left = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="disturber", daemon=True)
        self.toll = Toll()

    def __enter__(self) -> Self:
        self._next_strike = time.monotonic() + self._pause()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()
        if error is None:
            self._raise_own_error()

    def cease(self) -> None:
        """Ends the strikes; recoveries are still measured."""
        self._ceased.set()

    @property
    def at_rest(self) -> bool:
        """Whether all strikes are done and every worker has recovered."""
        self._raise_own_error()
        return (self._ceased.is_set() or self._spent) and not self._blows

    @property
    def _spent(self) -> bool:
        return self._limit is not None and self.toll.strikes >= self._limit

    def _raise_own_error(self) -> None:
        if self._error is not None:
            raise ParallelError(f"the thread that disturbs workers failed: {self._error!r}") from self._error

    def _run(self) -> None:
        try:
            while not self._left.wait(TICK):
                for worker in list(self._workers):
                    self._watch(worker)
                if not self._ceased.is_set() and not self._spent and time.monotonic() >= self._next_strike:
                    self._strike()
        except BaseException as error:
            self._error = error

    def _pause(self) -> float:
        return self._every * self._chance.uniform(0.5, 1.5)

    def _strike(self) -> None:
        stop = self._chance.random() < self._stop_share
        rude = not stop and self._chance.random() < RUDE_SHARE
        victims = [worker for worker in list(self._workers) if self._may_hit(worker, rude)]
        if not victims:
            # Not as soon as a worker makes progress: that would always be the same moment of its work.
            self._next_strike = time.monotonic() + self._chance.uniform(0, self._every / 2)
            return
        heirs = [worker for worker in victims if _is_heir(worker)]
        if heirs and self._chance.random() < HEIR_SHARE:
            victims = heirs
        self._hit(self._chance.choice(victims), stop)
        self._next_strike = time.monotonic() + self._pause()

    def _may_hit(self, worker: Worker, rude: bool) -> bool:
        """Checks if worker and table may be hit once more without being quarantined."""
        if worker.handle is None or worker.handle.process_id is None:
            return False
        if worker.failures or worker.outside_kills >= HITS_ON_ONE_SLAB or self._table_suffers(worker):
            return False
        blow = self._blows.get(worker.number)
        if rude:
            # Its successor may be hit, but the dying process would not notice.
            return blow is None or worker.handle is not blow.handle
        return blow is None and worker.state is WorkerState.RUNNING

    def _table_suffers(self, worker: Worker) -> bool:
        """Checks if its current table has been hit often, also under other workers."""
        tables = [self._tables[order.table] for order in tuple(worker.orders)[:1]]
        return any(table.failures or table.outside_kills >= HITS_ON_ONE_SLAB for table in tables)

    def _hit(self, worker: Worker, stop: bool) -> None:
        handle = worker.handle
        if handle is None or handle.process_id is None:
            return
        is_heir, since = _is_heir(worker), time.monotonic()
        try:
            os.kill(handle.process_id, signal.SIGSTOP if stop else signal.SIGKILL)
        except ProcessLookupError:
            return  # it has just died by itself
        if stop:
            self.toll.stops += 1
        else:
            self.toll.kills += 1
        self.toll.heirs += is_heir
        if worker.number in self._blows:
            self.toll.interrupted += 1
        self._blows[worker.number] = _Blow(handle, since, stop)

    def _watch(self, worker: Worker) -> None:
        blow = self._blows.get(worker.number)
        if blow is None:
            return
        if worker.state in (WorkerState.QUARANTINED, WorkerState.STOPPED):
            del self._blows[worker.number]
            return
        now, resting, handle = time.monotonic(), not worker.orders, worker.handle
        if handle is None or handle is blow.handle:
            if resting and (blow.stopped or worker.state is WorkerState.PAUSED):
                blow.since = now
            return
        steps = handle.steps
        if blow.steps is None:
            blow.steps = steps
        if steps != blow.steps or (resting and worker.is_ready):
            del self._blows[worker.number]
            self.toll.recoveries.append(now - blow.since)


def _is_heir(worker: Worker) -> bool:
    """Checks if a worker has received another's games and has not handed in a slab of them yet."""
    return any(order.start is Start.LOAD for order in tuple(worker.orders)[:1])
