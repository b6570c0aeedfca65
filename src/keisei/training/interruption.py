"""Ctrl-C, SIGTERM and SIGHUP: the first signal ends the run normally within seconds.

A second Ctrl-C or SIGTERM ends it at once. SIGHUP never does: when a terminal is closed, the system sends it, and the
shell and the session may send it again or SIGTERM with it, while nobody wants to lose the run.

After the first signal, the current update is finished and saved. If that takes longer than ``patience``, the update
is abandoned, and the state before it is saved. To abandon it, a signal handler raises an exception. This is safe,
because all half-done work is thrown away.
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
"""Seconds until the exception is raised again, since an exception inside a finaliser is lost."""


class UpdateAbandoned(BaseException):
    """The current work is abandoned. It is not an ``Exception``, so no handler treats it as a failure."""


class Interruption:
    """Whether the run is asked to end. ``request`` asks for it from any thread."""

    def __init__(self, patience: float = PATIENCE, on_request: Callable[[str], None] | None = None) -> None:
        self.requested = False
        self._only_hung_up = False
        self._patience = patience
        self._on_request = on_request
        self._abandonable = False
        self._eager = False
        self._patience_ends = math.inf

    def tell(self, on_request: Callable[[str], None]) -> None:
        """Calls ``on_request`` with the reason of each request from now on."""
        self._on_request = on_request

    def request(self, reason: str = "stop requested") -> None:
        self.requested = True
        if self._on_request is not None:
            self._on_request(reason)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handles the signals inside the ``with``. Only the main thread can; in others this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            signal.SIGINT: self._on_signal,
            signal.SIGTERM: self._on_signal,
            signal.SIGALRM: self._on_alarm,
        }
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` ignores it
            handlers[signal.SIGHUP] = self._on_hangup
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def may_abandon(self, *, at_once: bool = False) -> Iterator[None]:
        """Lets the work inside be abandoned with ``UpdateAbandoned``: after the patience, or at once."""
        self._abandonable, self._eager = True, at_once
        try:
            self._give_up_if_due()
            yield
        finally:
            self._abandonable = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested and not self._only_hung_up:
            os._exit(128 + number)  # workers end with their parent
        self._only_hung_up = False
        self._begin_to_end(number)

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:
            self._only_hung_up = True
            self._begin_to_end(number)

    def _begin_to_end(self, number: int) -> None:
        self._patience_ends = time.monotonic() + self._patience
        signal.setitimer(signal.ITIMER_REAL, min(self._patience, AGAIN), AGAIN)
        self.request(signal.Signals(number).name)
        self._give_up_if_due()

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        self._give_up_if_due()

    def _give_up_if_due(self) -> None:
        patient = not self._eager and time.monotonic() < self._patience_ends
        if self._abandonable and self.requested and not patient:
            raise UpdateAbandoned
