"""How the manager, its workers and its tables are, as of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from keisei.machine.memory import resident_bytes
from keisei.parallel.deliveries import Deliveries, Drops
from keisei.parallel.stock import Stock
from keisei.parallel.tables import Table
from keisei.parallel.workers import WORKING, Worker


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    worker: int
    state: str
    process_id: int | None
    tables: tuple[int, ...]
    """That it has in hand."""
    transitions: int
    episodes: int
    slabs: int
    seconds: float
    """In which it played, since the start."""
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


@dataclass(frozen=True, eq=False)
class ManagerStatus(Mapping[str, Any]):
    """Readable as attributes and as a mapping: ``status.active_workers`` and ``status["active_workers"]``."""

    running: bool
    active_workers: int
    """Workers that collect, or will as soon as they are back."""
    workers: tuple[WorkerStatus, ...]
    tables: int
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
        if name not in _NAMES:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


_NAMES = tuple(field.name for field in fields(ManagerStatus))


def queue_info(tables: Sequence[Table], stock: Stock, deliveries: Deliveries) -> dict[str, int]:
    """Slabs that are being played, free, at the learner, and kept under a lease, over all tables."""
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
