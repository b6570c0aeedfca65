"""Ctrl-C and SIGTERM: the run ends in good order within seconds, and a second signal ends it at once.

The first signal only asks: the update that is being made is finished and saved. Where that would take longer
than ``patience``, it is given up instead, and what is saved is the state before it. Giving up is an exception
raised out of a signal handler, which is safe because everything that it may leave half done is thrown away.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interruption", "UpdateAbandoned"]

PATIENCE = 5.0
AGAIN = 0.5
"""Seconds until work is given up once more: an exception that happens to hit a finaliser is lost there."""


class UpdateAbandoned(BaseException):
    """The work at hand is given up. Not an ``Exception``, so that nothing on its way takes it for a failure."""


class Interruption:
    """Whether somebody has asked the run to end. ``request`` does so from anywhere."""

    def __init__(self, patience: float = PATIENCE, on_request: Callable[[str], None] | None = None) -> None:
        self.requested = False
        self._patience = patience
        self._on_request = on_request
        self._abandonable = False
        self._eager = False
        self._patience_ends = math.inf

    def request(self, reason: str = "stop requested") -> None:
        self.requested = True
        if self._on_request is not None:
            self._on_request(reason)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Listen to the signals. Only the main thread may; elsewhere this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            signal.SIGINT: self._on_signal,
            signal.SIGTERM: self._on_signal,
            signal.SIGALRM: self._on_alarm,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def may_abandon(self, *, at_once: bool = False) -> Iterator[None]:
        """Inside, work may be given up with ``UpdateAbandoned``: after the patience is over, or at once."""
        self._abandonable, self._eager = True, at_once
        try:
            self._give_up_if_due()
            yield
        finally:
            self._abandonable = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self.requested:
            os._exit(128 + number)  # workers end with their parent
        self._patience_ends = time.monotonic() + self._patience
        signal.setitimer(signal.ITIMER_REAL, min(self._patience, AGAIN), AGAIN)
        self.request(name)
        self._give_up_if_due()

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        self._give_up_if_due()

    def _give_up_if_due(self) -> None:
        patient = not self._eager and time.monotonic() < self._patience_ends
        if self._abandonable and self.requested and not patient:
            raise UpdateAbandoned
