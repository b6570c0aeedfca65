"""``live.json``: what a run does at this moment, for those who watch it.

The trainer replaces the file between two updates, at most twice a second. It is a view, not a record: the history is
in ``run.db``, and nothing is read back from here when a run is resumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from keisei.runs.directory import RunDirectory
from keisei.runs.foreign_documents import json_of, typed
from keisei.runs.foreign_files import read_foreign
from keisei.runs.json_values import finite

__all__ = ["Answer", "Glimpse", "LiveStatus", "LiveWorker", "read_live", "write_live"]

_LARGEST = 8 << 20
"""Bytes. A larger file was not written by a trainer."""


@dataclass(frozen=True)
class LiveWorker:
    """One worker."""

    worker: int
    state: str
    process_id: int | None
    tables: tuple[int, ...]
    """The tables that it plays."""
    transitions: int
    steps_per_second: float
    game_share: float
    policy_share: float
    waiting_share: float
    restarts: int
    memory_bytes: int
    last_error: str


@dataclass(frozen=True)
class Answer:
    """What came of a request."""

    id: str
    action: str
    done: bool
    text: str
    time: float


@dataclass(frozen=True)
class Glimpse:
    """The last plies of one self-play game, one entry for each decision."""

    table: int
    packed: tuple[str, ...]
    """The packed rows, in hexadecimal."""
    seats: tuple[int, ...]
    plies: tuple[int, ...]
    actions: tuple[int, ...]
    values: tuple[float | None, ...]
    """None where the network gave no number."""


@dataclass(frozen=True)
class LiveStatus:
    """A run between two updates. Numbers that the trainer did not have are NaN."""

    time: float
    update: int = 0
    transitions: int = 0
    games: int = 0
    seconds: float = 0.0
    progress: float = 0.0
    """Share of the whole run that is done, 0 … 1."""
    speed: float = 0.0
    """Transitions per second of the last update."""
    paused: bool = False
    policy_lag: float = 0.0
    utilisation: float = 0.0
    queue: Mapping[str, int] = field(default_factory=dict)
    """Slabs: all, being played, free, filled, and kept under a lease."""
    restarts: int = 0
    dropped: int = 0
    """Transitions that were too old to learn from."""
    memory_bytes: int = 0
    """Resident memory of the trainer's process."""
    last_error: str = ""
    workers: tuple[LiveWorker, ...] = ()
    answers: tuple[Answer, ...] = ()
    """To the last requests, oldest first."""
    board: Glimpse | None = None


def write_live(run: RunDirectory, status: LiveStatus) -> None:
    """Replaces the file in one step. It is not flushed to the disk: after a power cut nobody needs it."""
    document = {name: finite(value) for name, value in asdict(status).items()}
    partial = run.live.with_name(f".partial-{run.live.name}")
    partial.unlink(missing_ok=True)
    with open(partial, "xb") as file:  # never through a link
        file.write(json.dumps(document, allow_nan=False).encode())
    os.replace(partial, run.live)


def read_live(run: RunDirectory) -> LiveStatus | None:
    """Reads the file; None if the run has none, or none that this version can read."""
    try:
        status = typed(LiveStatus, json_of(read_foreign(run.path, run.live.name, _LARGEST)))
        return status if status.board is None or _is_whole(status.board) else None
    except (OSError, ValueError):
        return None


def _is_whole(board: Glimpse) -> bool:
    """Checks if every column has an entry for each decision, and rows are bytes. Raises ``ValueError`` if not."""
    for row in board.packed:
        bytes.fromhex(row)
    columns = (board.packed, board.seats, board.plies, board.actions, board.values)
    return len(set(map(len, columns))) == 1
