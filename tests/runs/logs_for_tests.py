"""Reads what a run has logged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the lines of a log. Those that a kill has cut short are left out."""
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
