"""Communication between the manager and its workers. It also detects workers that died or hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from keisei.parallel.backends.contract import START_SECONDS, Backend
from keisei.parallel.messages import (
    ANSWER,
    Failed,
    Manager,
    Order,
    OrderKind,
    Ready,
    Reply,
    decode_reply,
)
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.workers import Worker

START_MARGIN = 20.0


@dataclass(frozen=True, slots=True)
class Death:
    """A worker has died or was ended."""

    reason: str
    """One line."""
    traceback: str = ""
    """The traceback of the worker's error, if it had one."""
    from_outside: bool = False
    still_writes: bool = False
    """The worker is a thread that could not be ended. Its slabs cannot be given to another worker."""


Event: TypeAlias = Reply | Death


class WorkerCommunicator:
    """Sends orders and gathers events. Each worker has its own pipe, so no worker can block another."""

    def __init__(
        self,
        backend: Backend,
        manager: Manager,
        plan_of: Callable[[int], WorkerPlan],
        queue_info: Callable[[], dict[str, int]],
        hang_timeout: float,
    ) -> None:
        self._backend = backend
        self._manager = manager
        self._plan_of = plan_of
        self._hang_timeout = hang_timeout
        self._quickest_start = START_SECONDS / START_MARGIN
        self.workers: list[Worker] = []
        self.get_queue_info = queue_info
        """How full the queues are: slabs being played, free, and at the learner."""

    def start(self, worker: Worker) -> None:
        worker.started(self._backend.start(self._plan_of(worker.number), self._manager))

    def send(self, worker: Worker, orders: list[Order]) -> None:
        messages = worker.take(orders)
        if worker.handle is not None:
            for message in messages:
                worker.handle.send(message.encode())

    def answer(self, worker: Worker) -> None:
        worker.asks = False
        worker.watch_anew()
        if worker.handle is not None:
            worker.handle.send(ANSWER)

    def stop(self, worker: Worker, seconds: float) -> bool:
        """Asks a worker to end, and ends it if it does not. Returns False if it is a thread that cannot be ended."""
        handle = worker.handle
        ended = True
        if handle is not None:
            handle.ask_to_stop()
            handle.send(Order(OrderKind.STOP).encode())
            ended = handle.join(seconds) or handle.kill()
        worker.stopped(ended)
        return ended

    def events(self, timeout: float) -> Iterator[tuple[Worker, Event]]:
        """Waits for events, and yields all that have happened."""
        alive = [worker for worker in self.workers if worker.handle is not None]
        if alive:
            self._backend.wait([worker.handle for worker in alive if worker.handle is not None], timeout)
        else:
            time.sleep(timeout)  # nothing can happen before the next restart
        for worker in alive:
            yield from self._events_of(worker)

    def _events_of(self, worker: Worker) -> Iterator[tuple[Worker, Event]]:
        handle = worker.handle
        if handle is None:
            return
        # Check this before the pipe is emptied, so that messages sent before the death are never missed.
        was_alive = handle.is_alive()
        failure = None
        while (message := handle.receive()) is not None:
            reply = decode_reply(message)
            if isinstance(reply, Ready):
                self._quickest_start = min(self._quickest_start, time.monotonic() - worker.started_at)
            if isinstance(reply, Failed):
                failure = reply
                break
            yield worker, reply
            if handle is not worker.handle:
                return
        if failure is not None:
            handle.kill()
            yield worker, Death(failure.reason, failure.traceback)
        elif not was_alive:
            yield worker, Death(handle.exit_reason, from_outside=handle.killed_from_outside)
        elif worker.idle_seconds() > (patience := self._patience_with(worker)):
            yield worker, self._end_hung(worker, patience)

    def _patience_with(self, worker: Worker) -> float:
        """Computes how long a worker may make no step. A worker that starts gets 20 times as long as the quickest
        start. A start takes two seconds if it imports torch, and some hundredths of a second if it is forked."""
        if worker.is_ready:
            return self._hang_timeout
        return max(self._hang_timeout, START_MARGIN * self._quickest_start)

    def _end_hung(self, worker: Worker, patience: float) -> Death:
        assert worker.handle is not None
        suspended = worker.handle.is_suspended
        reason = f"it made no step for {patience:g} s"
        if suspended:
            reason += ", since somebody has stopped it"
        ended = worker.handle.kill()
        if not ended:
            reason += ", and its thread cannot be ended"
        return Death(reason, from_outside=suspended, still_writes=not ended)
