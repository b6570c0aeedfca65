"""The names of runs: up to three parts, which lead into folders and never out of the folder of all runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from keisei.errors import RunError

__all__ = ["MOST_PARTS", "check_run_name", "folders_below", "is_run_name"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_PARTS = 3
"""Parts of a run's name: two folders and the run itself."""


def check_run_name(name: str) -> None:
    """Refuses what is no name of a run. ``lr/seed0`` is one; nothing leads out of the folder of runs."""
    if not is_run_name(name):
        shown = repr(name) if len(name) <= 100 else f"{name[:60]!r}… ({len(name)} letters)"
        raise RunError(
            f"{shown} cannot name a run: it has 1 to {MOST_PARTS} parts with '/' between them, each of 1 to 100 "
            f"letters, digits, '.', '_' and '-', beginning with a letter or digit; --root gives another folder of runs"
        )


def is_run_name(name: str) -> bool:
    """Checks if a text such as ``lr/seed0`` can name a run."""
    parts = name.split("/")
    return len(parts) <= MOST_PARTS and all(map(_NAME.fullmatch, parts))


def folders_below(root: Path, chosen: Callable[[Path], bool], parts: int = MOST_PARTS) -> Iterator[Path]:
    """Yields the runs below a directory, by name. A run holds no other runs, and links to folders are not followed."""
    for path in _entries(root):
        if chosen(path):
            yield path
        elif parts > 1 and _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield from folders_below(path, chosen, parts - 1)


def _entries(folder: Path) -> list[Path]:
    """Lists a folder, sorted; nothing if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
