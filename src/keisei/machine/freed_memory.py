"""Keeps freed memory for the next use.

A network's forward and backward pass allocate and free the same megabytes again and again. glibc returns such large
blocks to the system and then gets them again, page by page. In training, this took a fifth of all time.
"""

from __future__ import annotations

import ctypes
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Constants of mallopt(3)."""
KEPT_BYTES = 1 << 30
"""This much memory may be free before any of it is returned to the system."""
LARGEST_KEPT = 32 << 20
"""The largest block for which this works; glibc allows no higher limit."""


def keep_freed_memory() -> bool:
    """Keeps freed memory from now on, for the whole process. Returns False if the C library has no such setting."""
    try:
        library = ctypes.CDLL(None)
    except OSError:  # a program that is linked statically
        return False
    return _set_thresholds(library)


def _set_thresholds(library: Any) -> bool:
    """musl and macOS have no mallopt. Only the presence of the function is reliable: musl's headers claim to be
    glibc's."""
    mallopt = getattr(library, "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
