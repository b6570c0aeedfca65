"""Looks up other processes of this machine, and ends whole sessions of them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_TERM_SECONDS = 0.5
"""How long processes may take to end when they are asked."""
_KILL_SECONDS = 5.0


def is_stopped(process_id: int | None) -> bool:
    """Checks if a signal has stopped a process. Only Linux shows this, as the state T."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in ("T", "t")


def is_there(process_id: int) -> bool:
    """Checks if a process exists."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True


def end_session(session: int) -> None:
    """Ends all processes of a session by SIGTERM, and soon after by SIGKILL. A session has the number of its first
    process."""
    _signal_all(session, signal.SIGTERM)
    asked = time.monotonic()
    while session_members(session) and time.monotonic() < asked + _KILL_SECONDS:
        time.sleep(0.01)
        if time.monotonic() > asked + _TERM_SECONDS:
            _signal_all(session, signal.SIGKILL)
    _signal_all(session, signal.SIGKILL)  # for systems that do not list the members


def session_members(session: int) -> list[int]:
    """Lists the processes of a session that have not ended, also those in groups of their own, as a shell makes them
    for its jobs. Only Linux tells."""
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _is_member(stat, session)]


def _is_member(stat: Path, session: int) -> bool:
    try:
        state, _, _, of, *_ = stat.read_text().rpartition(")")[2].split()
    except (OSError, ValueError):  # it has ended meanwhile
        return False
    return int(of) == session and state not in ("Z", "X")


def _signal_all(session: int, number: signal.Signals) -> None:
    """Signals the first group of a session, and all members that are known."""
    for send, target in [(os.killpg, session), *((os.kill, member) for member in session_members(session))]:
        with suppress(ProcessLookupError, PermissionError):
            send(target, number)
