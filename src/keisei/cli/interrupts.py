"""Ctrl-C, at any moment of a command: it ends without a traceback, and with exit code 130.

Python raises an interrupt at any point of the code. In the middle of an import this leaves half a module behind, and a
library may turn the interrupt into another error or lose it. So Ctrl-C ends the process at once while a command is
loaded, which changes nothing on the disk. Once the command works, an interrupt is raised as usual, so that the command
can clean up. Errors that follow from the interrupt are not shown.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["EXIT_CODE", "interruptible", "leave_at_once", "was_interrupted"]

EXIT_CODE = 128 + signal.SIGINT
_AGAIN = 0.2
"""Seconds until an interrupt that a finaliser has swallowed is raised again."""
_came: list[int] = []


def leave_at_once() -> None:
    """Makes Ctrl-C end the process from now on. A command in the background that ignores Ctrl-C still does."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C raise ``KeyboardInterrupt`` inside the block. Afterwards it ends the process."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _raise_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, _leave)


def was_interrupted() -> bool:
    """Checks if Ctrl-C was pressed while the command worked."""
    return bool(_came)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(EXIT_CODE)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt


def _raise_again(lost: Any) -> None:
    """Raises an interrupt again that came in a finaliser, where Python drops it."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        timer = threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(lost)
