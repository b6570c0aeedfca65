"""Two ways to collect: in rounds, in lock-step with the learner; and as a stream that never waits for it."""

from __future__ import annotations

import time
from typing import Protocol

from keisei.errors import CollectTimeoutError, NoWorkersError
from keisei.parallel.communication import WorkerCommunicator
from keisei.parallel.config import ParallelConfig
from keisei.parallel.crew import WORKING, Member, WorkerState
from keisei.parallel.gathering import Gathering

POLL_SECONDS = 0.05
"""How long the manager sleeps at the most before it looks for hung workers again."""


class Pump(Protocol):
    def pump(self, timeout: float) -> None: ...


class Collector:
    """Orders slabs and waits for them."""

    def __init__(
        self, config: ParallelConfig, communicator: WorkerCommunicator, gathering: Gathering, supervisor: Pump
    ) -> None:
        self._config = config
        self._communicator = communicator
        self._gathering = gathering
        self._supervisor = supervisor

    def round(self, target: int | None, version: int, patience: float) -> None:
        """Every worker plays its share with weights of one version. Returns when all of it has arrived."""
        owed: dict[int, int] = {}
        watch = _Progress(patience)
        while True:
            self._share(owed, self._working(enough_if_arrived=not self._anybody_out()), target)
            busy = self._order_owed(owed, version)
            if not busy and not any(owed.values()):
                return
            self._supervisor.pump(POLL_SECONDS)
            watch.look(self._progress(), self._stuck)

    def stream(self, target: int | None, seconds: float, oldest: int = 0) -> None:
        """Keep every free slab in play, until enough has arrived that is of a version or newer, or the time is up.

        Weights do not change meanwhile: what a worker is in the middle of may be too old, but its next slab is not.
        So a call that has the time for two slabs never ends empty, however often weights change between calls.
        """
        deadline = time.monotonic() + seconds
        needed = target or 1
        self._supervisor.pump(0)  # so that what has come is taken in, also where there is no time to wait
        while True:
            self._gathering.drop_older_than(oldest)
            working = self._working(enough_if_arrived=True)
            self._keep_busy(working)
            left = deadline - time.monotonic()
            if self._gathering.arrived_transitions >= needed or left <= 0:
                return
            if not working and not self._anybody_busy():
                return  # nobody works any more, but something had arrived before
            if working and not self._anybody_busy():
                # Every slab is full, and the learner wants more than all of them hold.
                for member in working:
                    self._gathering.make_room(member)
                continue
            self._supervisor.pump(min(POLL_SECONDS, left))

    def play_on(self) -> None:
        """Order a slab for every one that is free, and wait for nothing."""
        self._keep_busy([member for member in self._communicator.members if member.state in WORKING])

    def _keep_busy(self, working: list[Member]) -> None:
        for member in working:
            while member.may_get_order:
                self._communicator.send(member, member.order_slab(version=-1))

    def _anybody_busy(self) -> bool:
        out = (WorkerState.QUARANTINED, WorkerState.STOPPED)
        return any(member.orders and member.state not in out for member in self._communicator.members)

    def _anybody_out(self) -> bool:
        return any(member.state is WorkerState.QUARANTINED for member in self._communicator.members)

    def _working(self, *, enough_if_arrived: bool) -> list[Member]:
        """Who gets orders. Nobody is an error, unless something is still to come, or has and may be handed out."""
        members = [member for member in self._communicator.members if member.state in WORKING]
        arrived = enough_if_arrived and self._gathering.arrived_transitions > 0
        if members or arrived or self._anybody_busy():
            return members
        raise NoWorkersError(self._why_nobody_works())

    def _share(self, owed: dict[int, int], working: list[Member], target: int | None) -> None:
        """Who still owes how many slabs. What a quarantined worker owes is shared out to the others."""
        if not owed:
            each = self._slabs_each(target, max(1, len(working)))
            for member in working:
                begun = self._gathering.arrived_from(member) + member.playing
                owed[member.worker] = max(0, each - begun)
            return
        gone = set(owed) - {member.worker for member in working}
        for worker in gone:
            debt = owed.pop(worker) + self._unfinished(worker)
            for index in range(debt if working else 0):
                heir = working[index % len(working)]
                owed[heir.worker] = owed.get(heir.worker, 0) + 1

    def _unfinished(self, worker: int) -> int:
        """Slabs that a worker was ordered to play and never will, since it is out for good."""
        member = next(m for m in self._communicator.members if m.worker == worker)
        if member.state is not WorkerState.QUARANTINED:
            return 0
        lost = member.playing
        member.orders.clear()
        return lost

    def _slabs_each(self, target: int | None, workers: int) -> int:
        if target is None or self._config.episodes_per_worker:
            return 1
        slab = self._communicator.members[0].memory.shape.transitions
        return max(1, -(-target // (workers * slab)))

    def _order_owed(self, owed: dict[int, int], version: int) -> bool:
        """Order what is owed, as far as there are slabs; True where somebody is still at work."""
        for member in self._communicator.members:
            self._owe_episodes(member, owed)
            while owed.get(member.worker, 0):
                if not member.free_slabs:
                    self._gathering.make_room(member)
                if not member.may_get_order:
                    break
                self._communicator.send(member, member.order_slab(version))
                owed[member.worker] -= 1
        return self._anybody_busy()

    def _owe_episodes(self, member: Member, owed: dict[int, int]) -> None:
        """Where games are counted instead of steps: one slab more while too few have been finished."""
        wanted = self._config.episodes_per_worker
        if not wanted or member.worker not in owed or owed[member.worker] or member.orders:
            return
        if self._gathering.episodes_from(member) < wanted:
            owed[member.worker] = 1

    def _progress(self) -> int:
        """Steps, and successors too: a hung worker that has just been replaced has its time ahead of it."""
        members = self._communicator.members
        return sum(int(member.memory.control[0]) + member.tally.restarts for member in members)

    def _stuck(self, patience: float) -> str:
        states = ", ".join(f"{m.worker} {m.state.value}" for m in self._communicator.members)
        return (
            f"no worker made a step for {patience:g} s (workers: {states}). Raise parallel.timeout if a step may take "
            f"that long; what has been collected comes with the next call"
        )

    def _why_nobody_works(self) -> str:
        members = self._communicator.members
        if any(member.state is WorkerState.PAUSED for member in members):
            return "all workers are paused; call resume_workers first"
        errors = "\n".join(f"worker {m.worker}: {m.last_error}" for m in members if m.last_error)
        return f"no worker is left that could collect anything.\n{errors}".strip()


class _Progress:
    """Raises when a number has not moved for too long."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._seen = -1
        self._since = time.monotonic()

    def look(self, progress: int, message: object) -> None:
        if progress != self._seen:
            self._seen, self._since = progress, time.monotonic()
        elif time.monotonic() - self._since > self._patience:
            assert callable(message)
            raise CollectTimeoutError(message(self._patience))
