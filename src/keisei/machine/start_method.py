"""How new processes are started."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Literal


def chosen_start_method(
    wanted: Literal["auto", "forkserver", "spawn"] = "auto",
) -> Literal["forkserver", "spawn"]:
    """``auto`` takes the fork server where that is safe: it has imported torch once, and a new process is there in
    some 30 ms instead of two seconds. A plain fork is never offered: it copies locks that other threads hold."""
    if wanted != "auto":
        return wanted
    # macOS has forkserver too, but its system libraries do not bear a fork.
    safe = "forkserver" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
    return "forkserver" if safe else "spawn"
