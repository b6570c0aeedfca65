"""Carries out requests to a run, and reports its state: the trainer's end of ``runs.control`` and ``runs.live``.

All of it happens between two updates. Workers are a placement, so adding or removing one changes no bit of the run.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from keisei.errors import KeiseiError, RunError
from keisei.machine.memory import resident_bytes
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.status import ManagerStatus
from keisei.runs.control import Action, Request, Requests
from keisei.runs.directory import RunDirectory
from keisei.runs.live import Answer, LiveStatus, LiveWorker, write_live
from keisei.training.events import Update
from keisei.training.interruption import Interruption

__all__ = ["PausableClock", "Reach", "RemoteControl"]

POLL_SECONDS = 0.1
"""How often a paused run looks for requests."""
QUIET_SECONDS = 0.5
"""Seconds between two writes of ``live.json``, at least."""
_KEPT_ANSWERS = 20
_GONE = ("stopped", "quarantined")


class PausableClock:
    """Counts seconds like ``time.monotonic``, but stands while the run is paused."""

    def __init__(self) -> None:
        self._paused_seconds = 0.0
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        now = time.monotonic() if self._stopped_at is None else self._stopped_at
        return now - self._paused_seconds

    def stop(self) -> None:
        self._stopped_at = time.monotonic()

    def go_on(self) -> None:
        if self._stopped_at is not None:
            self._paused_seconds += time.monotonic() - self._stopped_at
            self._stopped_at = None


@dataclass(frozen=True)
class Reach:
    """What a request can reach in a trainer."""

    manager: ParallelManager
    interruption: Interruption
    clock: PausableClock
    save: Callable[[], Path | None]
    """Writes a checkpoint of the current state, and returns its path; None if it could not be written."""
    tell: Callable[[str], None]


class RemoteControl:
    """Answers requests, and keeps ``live.json`` up to date."""

    def __init__(self, run: RunDirectory, reach: Reach) -> None:
        self._run, self._reach = run, reach
        self._requests = Requests(run.control)
        self._answers: deque[Answer] = deque(maxlen=_KEPT_ANSWERS)
        self._update: Update | None = None
        self._paused = False
        self._written_at = -QUIET_SECONDS
        self._write()

    def look(self, update: Update) -> None:
        """Called between two updates. Returns when the run may go on: at once, unless it is paused."""
        self._update = update
        self._answer_all()
        if time.monotonic() - self._written_at >= QUIET_SECONDS:
            self._write()
        if self._paused:
            self._wait()

    def _wait(self) -> None:
        """Waits for the end of a pause. The clock of the run stands."""
        manager, clock = self._reach.manager, self._reach.clock
        clock.stop()
        manager.pause_workers()
        self._write()
        while self._paused and not self._reach.interruption.requested:
            time.sleep(POLL_SECONDS)
            self._answer_all()
        self._paused = False
        manager.resume_workers()
        clock.go_on()
        self._write()

    def _answer_all(self) -> None:
        requests = self._requests.take()
        for request in requests:
            self._answers.append(self._answer(request))
        if requests:
            self._write()

    def _answer(self, request: Request) -> Answer:
        try:
            text, done = self._do(request), True
        except KeiseiError as error:
            text, done = str(error), False
        self._reach.tell(f"asked to {request.action.value}: {text}")
        return Answer(request.id, request.action.value, done, text, time.time())

    def _do(self, request: Request) -> str:
        """Does what a request asks for, and says what was done."""
        match request.action:
            case Action.PAUSE:
                self._paused = True
                return "the run pauses"
            case Action.RESUME:
                self._paused = False
                return "the run goes on"
            case Action.RESET:
                self._reach.manager.reset_workers()
                return "all tables start new games"
            case Action.ADD_WORKER:
                (number,) = self._reach.manager.add_workers(1)
                if self._paused:
                    self._reach.manager.pause_workers([number])
                return f"worker {number} plays too"
            case Action.REMOVE_WORKER:
                return f"worker {self._remove(request.worker)} is removed"
            case Action.CHECKPOINT:
                return self._checkpoint()
            case Action.STOP:
                self._reach.interruption.request("a request to stop")
                return "the run saves and ends"

    def _remove(self, wanted: int | None) -> int:
        workers = [w.worker for w in self._reach.manager.get_status().workers if w.state not in _GONE]
        number = workers[-1] if wanted is None and workers else wanted
        if number not in workers:
            raise RunError(f"there is no worker {number}; the workers are {workers}")
        if len(workers) == 1:
            raise RunError(
                f"worker {number} is the last one, and somebody has to play; pause the run instead"
            )
        self._reach.manager.remove_workers([number])
        return number

    def _checkpoint(self) -> str:
        path = self._reach.save()
        if path is None:
            raise RunError("the checkpoint could not be written; the log says why")
        return f"{path.name} is saved"

    def _write(self) -> None:
        with suppress(OSError):  # a full disk: nobody can watch, but the run goes on
            write_live(self._run, self._status(self._reach.manager.get_status()))
        self._written_at = time.monotonic()

    def _status(self, status: ManagerStatus) -> LiveStatus:
        own = resident_bytes(os.getpid())
        workers = tuple(
            LiveWorker(**{name: getattr(worker, name) for name in LiveWorker.__dataclass_fields__})
            for worker in status.workers
        )
        shared = LiveStatus(
            time=time.time(),
            paused=self._paused,
            queue=status.queue_info,
            restarts=status.restarts,
            memory_bytes=own,
            last_error=status.last_error,
            workers=workers,
            answers=tuple(self._answers),
        )
        return shared if self._update is None else _with_update(shared, self._update)


def _with_update(status: LiveStatus, update: Update) -> LiveStatus:
    return replace(
        status,
        update=update.counters.update,
        transitions=update.counters.transitions,
        games=update.counters.games,
        seconds=update.counters.seconds,
        progress=update.progress,
        speed=update.transitions_per_second,
        policy_lag=update.collection.policy_lag,
        utilisation=update.collection.worker_utilisation,
        dropped=update.collection.dropped,
        board=update.collection.glimpse,
    )
