"""Where a process looks for modules before it has the path of its parent.

Python puts the current directory first on the path of ``python -c``, which is how processes start. A folder there that
is named like a module of Python, such as a run named ``multiprocessing``, would be imported instead of it. So processes
start with ``-P``. A mark tells them that Keisei has set this flag, not the user: code that the user trusts may still be
imported from the current directory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["looks_here", "safe_flags", "safe_path"]

_MARK = "keisei-safe-path"


def looks_here() -> bool:
    """Checks if the user's modules may be imported from the current directory. A user can forbid this with
    ``python -P``."""
    return not sys.flags.safe_path or _MARK in getattr(sys, "_xoptions", {})


def safe_flags() -> list[str]:
    """Gets the flags with which Python starts without the current directory on its path."""
    return ["-P", "-X", _MARK] if looks_here() else ["-P"]


@contextmanager
def safe_path() -> Iterator[None]:
    """Starts processes of multiprocessing with these flags."""
    from multiprocessing import util
    from subprocess import _args_from_interpreter_flags as usual  # type: ignore[attr-defined]

    util._args_from_interpreter_flags = lambda: [*usual(), *safe_flags()]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = usual  # type: ignore[attr-defined]
