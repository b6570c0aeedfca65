"""The status of the manager, its workers and its tables at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from keisei.machine.memory import resident_bytes
from keisei.parallel.deliveries import Deliveries, Drops, Stock
from keisei.parallel.tables import Table
from keisei.parallel.workers import WORKING, Worker


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    worker: int
    state: str
    process_id: int | None
    tables: tuple[int, ...]
    """Tables that it holds."""
    transitions: int
    episodes: int
    slabs: int
    seconds: float
    """Seconds in which it played, since the start."""
    steps_per_second: float
    """Speed while it plays."""
    game_share: float
    """Share of its playing time that the games take."""
    policy_share: float
    waiting_share: float
    """Share of all its time in which it waited for orders."""
    restarts: int
    memory_bytes: int
    """Resident memory of its process; 0 if it has no process of its own."""
    last_error: str


@dataclass(frozen=True, eq=False)
class ManagerStatus(Mapping[str, Any]):
    """Status of a manager. It is read as attributes or as a mapping: ``status.active_workers`` or
    ``status["active_workers"]``."""

    running: bool
    active_workers: int
    """Workers that collect, or will collect after a restart."""
    workers: tuple[WorkerStatus, ...]
    tables: int
    queue_info: dict[str, int]
    version: int
    """The newest version of the weights."""
    policy_lag: float
    """Policy lag of the last experience that was handed out."""
    transitions: int
    """Transitions handed out since the start."""
    transitions_per_second: float
    restarts: int
    drops: Drops
    last_error: str

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES = tuple(field.name for field in fields(ManagerStatus))


def queue_info(tables: Sequence[Table], stock: Stock, deliveries: Deliveries) -> dict[str, int]:
    """Counts slabs over all tables: being played, free, at the learner, and kept under a lease."""
    playing = sum(len(table.orders) for table in tables)
    free, leased = stock.free_slabs, deliveries.leased
    filled = stock.slabs - playing - free - leased
    return {"slabs": stock.slabs, "playing": playing, "free": free, "filled": filled, "leased": leased}


def worker_statuses(workers: Sequence[Worker], tables: Sequence[Table]) -> tuple[WorkerStatus, ...]:
    return tuple(
        _worker_status(worker, tuple(table.number for table in tables if table.worker == worker.number))
        for worker in workers
    )


def active(workers: Sequence[Worker]) -> int:
    return sum(worker.state in WORKING for worker in workers)


def _worker_status(worker: Worker, tables: tuple[int, ...]) -> WorkerStatus:
    totals = worker.totals
    process_id = worker.handle.process_id if worker.handle is not None else None
    return WorkerStatus(
        worker=worker.number,
        state=worker.state.value,
        process_id=process_id,
        tables=tables,
        transitions=totals.transitions,
        episodes=totals.episodes,
        slabs=totals.slabs,
        seconds=totals.seconds,
        steps_per_second=_share(totals.transitions, totals.seconds),
        game_share=_share(totals.game_seconds, totals.seconds),
        policy_share=_share(totals.policy_seconds, totals.seconds),
        waiting_share=_share(totals.waited_seconds, totals.seconds + totals.waited_seconds),
        restarts=totals.restarts,
        memory_bytes=resident_bytes(process_id),
        last_error=worker.last_error,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
