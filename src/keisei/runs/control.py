"""The control channel of a run: other programs ask, and the trainer acts between two updates.

A request is a small file in ``control/`` of the run's directory. Who may write there may control the run; nobody else
can. The trainer removes the file, acts, and writes its answer into ``live.json`` (see ``runs.live``).
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.durable_files import file_errors

__all__ = ["Action", "Request", "Requests", "ask"]

_SUFFIX = ".request.json"
_LARGEST = 4096
"""Bytes of a request. Larger files were not written by ``ask``."""
MOST_WAITING = 100
"""Requests that may wait for a trainer."""


class Action(StrEnum):
    """What a trainer can be asked for."""

    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"
    """Start new games at all tables."""
    ADD_WORKER = "add-worker"
    REMOVE_WORKER = "remove-worker"
    CHECKPOINT = "checkpoint"
    STOP = "stop"
    """Save and end. The run can be continued."""


@dataclass(frozen=True)
class Request:
    """One thing that was asked for."""

    id: str
    action: Action
    worker: int | None = None
    """The worker to remove; None removes the one with the highest number."""


def ask(run: RunDirectory, action: Action, worker: int | None = None) -> Request:
    """Asks the trainer of a run. Raises ``RunError`` if nobody trains it."""
    if run.status().state is not RunState.RUNNING:
        raise RunError(f"nobody trains {run.name} now, so it cannot {action.value}; keisei train {run.path}")
    request = Request(f"{time.time_ns():020d}-{secrets.token_hex(4)}", action, worker)
    with file_errors(run.control):
        run.control.mkdir(mode=0o700, exist_ok=True)
        if len(os.listdir(run.control)) >= MOST_WAITING:
            raise RunError(f"{MOST_WAITING} requests wait for {run.name} already; its trainer answers none")
        partial = run.control / f".{request.id}"
        partial.write_text(json.dumps(asdict(request)), encoding="utf-8")
        partial.rename(run.control / f"{request.id}{_SUFFIX}")
    return request


class Requests:
    """The requests for a trainer. Those from before it started are dropped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.take()

    def take(self) -> list[Request]:
        """Takes all requests that wait, oldest first."""
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.endswith(_SUFFIX))
        except OSError:  # nobody has asked for anything yet
            return []
        found = (_taken(self._directory / name) for name in names)
        return [request for request in found if request is not None]


def _taken(path: Path) -> Request | None:
    """Reads and removes a request; None if it is none."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(_LARGEST))
        path.unlink()
        worker = document["worker"]
        if not (worker is None or (isinstance(worker, int) and worker >= 0)):
            return None
        return Request(str(document["id"]), Action(document["action"]), worker)
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return None
