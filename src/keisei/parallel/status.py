"""How the manager and its workers are, as of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from keisei.machine.memory import resident_bytes
from keisei.parallel.communication import queue_info
from keisei.parallel.crew import WORKING, Member
from keisei.parallel.gathering import Drops


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    worker: int
    state: str
    process_id: int | None
    transitions: int
    episodes: int
    slabs: int
    steps_per_second: float
    """While it plays."""
    game_share: float
    """Of the time that it plays, the part that the games take."""
    policy_share: float
    waiting_share: float
    """Of all its time, the part that it waited for orders."""
    restarts: int
    memory_bytes: int
    """Resident memory of its process; 0 where it has none of its own."""
    last_error: str


@dataclass(frozen=True, slots=True, eq=False)
class ManagerStatus(Mapping[str, Any]):
    """Readable as attributes and, for those who like, as a mapping: ``status["active_workers"]``.

    It compares as mappings do, so it equals the dict that is made of it.
    """

    running: bool
    active_workers: int
    """Workers that collect, or will as soon as they are back."""
    workers: tuple[WorkerStatus, ...]
    queue_info: dict[str, int]
    version: int
    """The newest weights."""
    policy_lag: float
    """Of the experience handed out last."""
    transitions: int
    """Handed out since the start."""
    transitions_per_second: float
    restarts: int
    drops: Drops
    last_error: str

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


def build_status(
    members: Sequence[Member],
    *,
    running: bool,
    version: int,
    policy_lag: float,
    transitions: int,
    seconds: float,
    drops: Drops,
) -> ManagerStatus:
    workers = tuple(_worker_status(member) for member in members)
    errors = [worker.last_error for worker in workers if worker.last_error]
    return ManagerStatus(
        running=running,
        active_workers=sum(member.state in WORKING for member in members) if running else 0,
        workers=workers,
        queue_info=queue_info(members),
        version=version,
        policy_lag=policy_lag,
        transitions=transitions,
        transitions_per_second=transitions / seconds if seconds > 0 else 0.0,
        restarts=sum(worker.restarts for worker in workers),
        drops=Drops(drops.lagging, drops.corrupted),
        last_error=errors[-1] if errors else "",
    )


def _worker_status(member: Member) -> WorkerStatus:
    tally = member.tally
    process_id = member.handle.process_id if member.handle is not None else None
    return WorkerStatus(
        worker=member.worker,
        state=member.state.value,
        process_id=process_id,
        transitions=tally.transitions,
        episodes=tally.episodes,
        slabs=tally.slabs,
        steps_per_second=_share(tally.transitions, tally.seconds),
        game_share=_share(tally.game_seconds, tally.seconds),
        policy_share=_share(tally.policy_seconds, tally.seconds),
        waiting_share=_share(tally.waited_seconds, tally.seconds + tally.waited_seconds),
        restarts=tally.restarts,
        memory_bytes=resident_bytes(process_id),
        last_error=member.last_error,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
