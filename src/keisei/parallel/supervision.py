"""Keeps the crew at work: takes in what workers say, and replaces those that die."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from keisei.experience.slab import SlabRecord
from keisei.parallel.communication import Death, Event, WorkerCommunicator
from keisei.parallel.crew import Member, WorkerState
from keisei.parallel.gathering import Gathering
from keisei.parallel.inference import GATHER_SECONDS, CentralInference
from keisei.parallel.messages import Question, Ready, ResetDone
from keisei.parallel.timeline import Timeline

logger = logging.getLogger(__name__)


class Supervisor:
    """What happens on every event. A worker's death changes nothing in the experience: its successor takes up the
    state that was last committed and plays the unfinished slabs again."""

    def __init__(
        self,
        communicator: WorkerCommunicator,
        gathering: Gathering,
        inference: CentralInference | None,
        timeline: Timeline,
        max_failures: int,
        newest_version: Callable[[], int],
    ) -> None:
        self._communicator = communicator
        self._gathering = gathering
        self._inference = inference
        self._timeline = timeline
        self._max_failures = max_failures
        self._newest_version = newest_version

    def pump(self, timeout: float) -> None:
        """Wait for events, act on them, and start the successors that are due."""
        for member, event in self._communicator.events(self._patience(timeout)):
            self._act_on(member, event)
        if self._inference is not None:
            for member in self._inference.answer(self._communicator.members):
                member.asks = False
                member.watch_anew()
                self._communicator.answer(member)
        now = time.monotonic()
        for member in self._communicator.members:
            if member.needs_successor and now >= member.retry_at:
                member.tally.restarts += 1
                member.take_newest_weights(self._newest_version())
                self._communicator.start(member)

    def _patience(self, timeout: float) -> float:
        """Not longer than until the next successor is due, or a question has waited long enough."""
        if self._inference is not None and self._inference.is_asked:
            timeout = min(timeout, GATHER_SECONDS)
        due = [m.retry_at for m in self._communicator.members if m.needs_successor]
        return max(0.0, min([timeout, *(at - time.monotonic() for at in due)]))

    def _act_on(self, member: Member, event: Event) -> None:
        match event:
            case Ready():
                member.ready = True
                member.watch_anew()
                self._timeline.mark(f"worker {member.worker}", "ready")
                if member.state is WorkerState.STARTING:
                    member.state = WorkerState.RUNNING
            case SlabRecord():
                self._take_slab(member, event)
            case Question():
                if self._inference is not None:
                    self._inference.note(member, event)
                    member.asks = True
            case ResetDone():
                member.reset_done(event.epoch)
            case Death():
                self._bury(member, event)

    def _take_slab(self, member: Member, record: SlabRecord) -> None:
        if not self._gathering.is_whole(member, record):
            if member.handle is not None:
                member.handle.kill()
            self._bury(member, Death("it handed in a slab whose checksum is wrong"))
            return
        slab = member.memory.slab(record.slab)
        if self._inference is not None:
            self._inference.value_ends(slab)
        episodes = int(slab.terminated.sum() + slab.truncated.sum())
        member.done(record, episodes)
        self._gathering.arrive(member, record)
        self._timeline.slab(record)

    def _bury(self, member: Member, death: Death) -> None:
        member.handle, member.asks = None, False
        if self._inference is not None:
            self._inference.forget(member)
        self._timeline.mark(f"worker {member.worker}", "died")
        hung_thread = member.state is WorkerState.QUARANTINED
        leaving = member.state in (WorkerState.DRAINING, WorkerState.STOPPED) and not member.orders
        replace = member.note_failure(death.reason, death.from_outside, self._max_failures)
        if leaving:
            return
        if hung_thread or not replace:
            member.state = WorkerState.QUARANTINED
            member.last_error = f"{death.reason}\n(worker {member.worker}: {member.describe_place()})"
            logger.error(
                "worker %d failed too often and is out (%s): %s",
                member.worker, member.describe_place(), death.reason,
            )  # fmt: skip
        else:
            if member.state is not WorkerState.PAUSED and member.state is not WorkerState.DRAINING:
                member.state = WorkerState.FAILED
            logger.warning("worker %d died (%s) and is replaced", member.worker, _last_line(death.reason))


def _last_line(text: str) -> str:
    return text.strip().rsplit("\n", 1)[-1]
