"""Fewer log messages for the time of a command."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet_workers"]


@contextmanager
def quiet_workers() -> Iterator[None]:
    """Logs only errors, such as a worker that is given up. It is for commands that kill workers on purpose."""
    logger = logging.getLogger("keisei.parallel")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
