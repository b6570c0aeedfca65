"""The manager's end of a worker's pipe. Threads and processes share it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from keisei.parallel.backends.contract import WorkerHandle


class Pipe:
    """Sends and receives whole messages. The death of a worker raises no error here, since the manager notices it
    anyway."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._open = True

    def send(self, message: bytes) -> None:
        if not self._open:
            return
        # A dead worker takes no messages, but those that it sent can still be read. Its last record tells which
        # state its successor loads.
        with suppress(OSError, ValueError):
            self.connection.send_bytes(message)

    def receive(self) -> bytes | None:
        if not self._open:
            return None
        try:
            return self.connection.recv_bytes() if self.connection.poll() else None
        except (EOFError, OSError):
            self.close()
            return None

    def close(self) -> None:
        self._open = False
        self.connection.close()

    @property
    def waitables(self) -> list[Any]:
        return [self.connection] if self._open else []


def wait_for(handles: Sequence[WorkerHandle], timeout: float) -> None:
    """Waits for messages and deaths of workers that have ``waitables``."""
    waitables = [waitable for handle in handles for waitable in getattr(handle, "waitables", ())]
    if waitables:
        wait(waitables, timeout)
