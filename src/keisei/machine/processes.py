"""What the system says of other processes of this machine."""

from __future__ import annotations

import os
from pathlib import Path


def is_stopped(process_id: int | None) -> bool:
    """Tells whether a signal has stopped a process. Linux shows its state, which is then T."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in ("T", "t")


def is_there(process_id: int) -> bool:
    """Tells whether a process exists."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True
