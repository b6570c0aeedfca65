"""The control channel of a run: other programs ask, and the trainer acts between two updates.

A request is a small file in ``control/`` of the run's directory. Only those who may write there can control the run.
The trainer removes the file, acts, and writes its answer into ``live.json`` (see ``runs.live``).
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory, RunState, check_folder
from keisei.runs.durable_files import file_errors
from keisei.runs.foreign_documents import json_of, typed
from keisei.runs.foreign_files import read_foreign

__all__ = ["Action", "Request", "Requests", "ask"]

logger = logging.getLogger(__name__)

_ASIDE = "set-aside"
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
        check_folder(run.control)
        run.control.mkdir(mode=0o700, exist_ok=True)
        if len(_waiting(run.control)) >= MOST_WAITING:
            raise RunError(f"{MOST_WAITING} requests wait for {run.name} already; its trainer answers none")
        partial = run.control / f".{request.id}"
        with open(partial, "x", encoding="utf-8") as file:
            file.write(json.dumps(asdict(request)))
        partial.rename(run.control / f"{request.id}{_SUFFIX}")
    return request


class Requests:
    """The requests for a trainer. Those from before it started are dropped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.refused = 0
        """Entries that were no requests. Each is moved into ``set-aside`` beside the requests."""
        self._stuck: set[str] = set()
        """Those that could not be moved."""
        self.take()

    def take(self) -> list[Request]:
        """Takes all waiting requests, oldest first. Other files are moved aside, so they never hold a trainer up."""
        found = []
        waiting = [name for name in _waiting(self._directory) if name not in self._stuck]
        for name in waiting[:MOST_WAITING]:
            try:
                found.append(_read(self._directory, name))
                os.unlink(self._directory / name)
            except (OSError, ValueError) as error:
                self._set_aside(name, error)
        return found

    def _set_aside(self, name: str, error: Exception) -> None:
        """Moves an entry of any kind out of the way, so that it is not read again."""
        self.refused += 1
        logger.warning(
            "%r in %s is no request and is set aside, as %d are now: %s",
            name[:100], self._directory, self.refused, error,
        )  # fmt: skip
        aside = self._directory / _ASIDE
        try:
            check_folder(aside)
            aside.mkdir(mode=0o700, exist_ok=True)
            os.rename(self._directory / name, aside / f"{time.time_ns():020d}-{self.refused}")
        except OSError:
            self._stuck.add(name)


def _waiting(directory: Path) -> list[str]:
    """Lists the names of the waiting requests, oldest first."""
    try:
        return sorted(name for name in os.listdir(directory) if name.endswith(_SUFFIX))
    except OSError:  # nobody has asked for anything yet
        return []


def _read(directory: Path, name: str) -> Request:
    request = typed(Request, json_of(read_foreign(directory, name, _LARGEST)))
    if request.worker is not None and request.worker < 0:
        raise ValueError(f"there is no worker {request.worker}")
    return request
