"""Every test of parallel collection leaves nothing behind: no process, no shared memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from games_for_tests import keisei_mappings, worker_processes


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = keisei_mappings()
    named = set(Path("/dev/shm").glob("*keisei*"))
    yield
    deadline = time.monotonic() + 10
    while (worker_processes() or _is_more_mapped_than(before)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert worker_processes() == []
    assert not _is_more_mapped_than(before)
    assert set(Path("/dev/shm").glob("*keisei*")) <= named


def _is_more_mapped_than(before: int) -> bool:
    """Collects garbage only if it may hold memory: among all that a long session has imported, that takes seconds."""
    if keisei_mappings() > before:
        gc.collect()
    return keisei_mappings() > before
