"""Keeps freed memory for the next use.

A network's forward and backward pass take and free the same megabytes again and again. glibc gives such large blocks
back to the system and then gets them anew, page by page: in training, a fifth of all time went there.
"""

from __future__ import annotations

import ctypes
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of mallopt(3)."""
KEPT_BYTES = 1 << 30
"""As much may lie free before any of it goes back to the system."""
LARGEST_KEPT = 32 << 20
"""Of one block; glibc takes no higher limit."""


def keep_freed_memory() -> bool:
    """From now on, for the whole process. Does nothing, and says so, where the C library has no such setting."""
    try:
        library = ctypes.CDLL(None)
    except OSError:  # a program that is linked statically
        return False
    return _set_thresholds(library)


def _set_thresholds(library: Any) -> bool:
    """musl and macOS have no mallopt. Asking for its name alone tells: musl's headers claim to be glibc's."""
    mallopt = getattr(library, "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
