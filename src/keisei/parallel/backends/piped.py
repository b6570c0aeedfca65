"""The manager's end of a worker's pipe, for threads and processes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from keisei.parallel.arena import Arena
from keisei.parallel.backends.contract import WorkerHandle


class PipedHandle:
    """Sends and receives whole messages, and shares control words with the worker. The death of a worker raises no
    error here, since the manager notices it anyway."""

    is_queued = False

    def __init__(self, connection: Connection, arena: Arena, worker: int) -> None:
        self._connection = connection
        self._open = True
        self._control = arena.control(worker)
        self._control[1] = 0

    def send(self, message: bytes) -> None:
        if not self._open:
            return
        # A dead worker takes no messages, but those that it sent can still be read. Its last record tells which
        # state its successor loads.
        with suppress(OSError, ValueError):
            self._connection.send_bytes(message)

    def receive(self) -> bytes | None:
        if not self._open:
            return None
        try:
            return self._connection.recv_bytes() if self._connection.poll() else None
        except (EOFError, OSError):
            self._close()
            return None

    def _close(self) -> None:
        self._open = False
        self._connection.close()

    @property
    def steps(self) -> int:
        return int(self._control[0])

    def ask_to_stop(self) -> None:
        self._control[1] = 1

    @property
    def waitables(self) -> list[Any]:
        return [self._connection] if self._open else []


def wait_for(handles: Sequence[WorkerHandle], timeout: float) -> None:
    """Waits for messages and deaths of workers that have ``waitables``."""
    waitables = [waitable for handle in handles for waitable in getattr(handle, "waitables", ())]
    if waitables:
        wait(waitables, timeout)
