"""Everything that passes between the manager and its workers, and who of them is still there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from keisei.parallel.backends.contract import Backend
from keisei.parallel.crew import Member, WorkerState
from keisei.parallel.messages import (
    ANSWER,
    Failed,
    Order,
    OrderKind,
    Question,
    Ready,
    Reply,
    ResetDone,
    decode_reply,
)
from keisei.parallel.self_play_worker import Manager

START_SECONDS = 60.0
"""The longest a first start may take."""
START_MARGIN = 20.0


@dataclass(frozen=True, slots=True)
class Death:
    """A worker is gone."""

    reason: str
    from_outside: bool = False


Event: TypeAlias = Reply | Death


class WorkerCommunicator:
    """Sends orders and gathers events. Each worker has its own pipe, so none can hold up another."""

    def __init__(self, backend: Backend, manager: Manager, hang_timeout: float) -> None:
        self._backend = backend
        self._manager = manager
        self._hang_timeout = hang_timeout
        self._quickest_start = START_SECONDS / START_MARGIN
        self.members: list[Member] = []

    def start(self, member: Member) -> None:
        """Start a worker where its last predecessor was known to be, and give it the open orders again."""
        if member.state not in (WorkerState.PAUSED, WorkerState.DRAINING):
            member.state = WorkerState.STARTING
        member.started_at, member.ready = time.monotonic(), False
        member.handle = self._backend.start(member.successor_plan(), member.memory, self._manager)
        for order in member.orders:
            member.handle.send(order.encode())

    def send(self, member: Member, order: Order) -> None:
        if member.handle is not None:
            member.handle.send(order.encode())

    def answer(self, member: Member) -> None:
        if member.handle is not None:
            member.handle.send(ANSWER)

    def stop(self, member: Member, seconds: float) -> bool:
        """Ask a worker to end, and end it where it does not. False where it can't be ended, and may still write
        to its memory."""
        handle = member.handle
        if handle is None:
            return True
        member.memory.control[1] = 1
        handle.send(Order(OrderKind.STOP).encode())
        ended = handle.join(seconds) or handle.kill()
        member.handle = None
        return ended

    def events(self, timeout: float) -> Iterator[tuple[Member, Event]]:
        """Wait for something to happen, and tell all that has."""
        alive = [member for member in self.members if member.handle is not None]
        if alive:
            self._backend.wait([member.handle for member in alive if member.handle is not None], timeout)
        else:
            time.sleep(timeout)  # nothing can happen before a successor is due
        for member in alive:
            yield from self._events_of(member)

    def _events_of(self, member: Member) -> Iterator[tuple[Member, Event]]:
        handle = member.handle
        if handle is None:
            return
        # Asked before the pipe is emptied: what a worker sent before it died is never missed.
        was_alive = handle.is_alive()
        failure = None
        while (message := handle.receive()) is not None:
            reply = decode_reply(message)
            if isinstance(reply, Ready):
                self._quickest_start = min(self._quickest_start, time.monotonic() - member.started_at)
            if isinstance(reply, Failed):
                failure = reply
                break
            yield member, reply
            if handle is not member.handle:
                return
        if failure is not None:
            handle.kill()
            yield member, Death(failure.traceback)
        elif not was_alive:
            yield member, Death(handle.exit_reason, handle.killed_from_outside)
        elif member.idle_seconds() > (patience := self._patience_with(member)):
            yield member, self._end_hung(member, patience)

    def _patience_with(self, member: Member) -> float:
        """How long a worker may do nothing. One that starts gets many times what the quickest start took, which
        is two seconds where it imports torch and some hundredths where it is forked."""
        if member.ready:
            return self._hang_timeout
        return max(self._hang_timeout, START_MARGIN * self._quickest_start)

    def _end_hung(self, member: Member, patience: float) -> Death:
        assert member.handle is not None
        reason = f"it made no step for {patience:g} s"
        if not member.handle.kill():
            # Its memory can't be given to a successor while it may still write there.
            member.state = WorkerState.QUARANTINED
            reason += ", and its thread cannot be ended"
        return Death(reason)

    def get_queue_info(self) -> dict[str, int]:
        """How full the queues are: slabs being played, free, and at the learner, over all workers."""
        return queue_info(self.members)


def queue_info(members: Iterable[Member]) -> dict[str, int]:
    members = list(members)
    total = sum(member.memory.slabs for member in members)
    playing = sum(member.playing for member in members)
    free = sum(len(member.free_slabs) for member in members)
    return {"slabs": total, "playing": playing, "free": free, "filled": total - playing - free}


__all__ = ["Death", "Event", "Question", "Ready", "ResetDone", "WorkerCommunicator", "queue_info"]
