"""How much memory is left for this process, and how much a process uses."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .cgroups import ROOT, groups_v1, groups_v2, read_number, read_words, whole_number

NO_LIMIT = 1 << 62
"""Version 1 has no value for "no limit": it shows the largest number of whole pages, which is above this."""


class _Group(NamedTuple):
    """The memory of one control group, in bytes."""

    limit: int
    used: int
    cache: int
    """The part of ``used`` that caches files which were not used lately. The kernel frees it when memory is short."""

    @property
    def left(self) -> int:
        return max(0, self.limit - max(0, self.used - self.cache))


def free_memory(root: Path = ROOT) -> int | None:
    """Reads how many bytes are available without swapping; None if the system does not tell.

    Tests set ``root`` to a file system of their own.
    """
    left = [*_available(root), *(group.left for group in _groups(root))]
    return min(left, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Finds the lowest memory limit of this process's control groups; None if there is none."""
    return min((group.limit for group in _groups(root)), default=None)


def resident_bytes(process_id: int | None, root: Path = ROOT) -> int:
    """Reads the resident memory of a process; 0 on systems other than Linux."""
    words = read_words(root / f"proc/{process_id}/statm")
    pages = whole_number(words[1]) if len(words) > 1 else None
    return (pages or 0) * mmap.PAGESIZE


def _available(root: Path) -> Iterator[int]:
    kibibytes = _table(root / "proc/meminfo").get("MemAvailable:")
    if kibibytes is not None:
        yield kibibytes * 1024


def _groups(root: Path) -> Iterator[_Group]:
    for folder in groups_v2(root):
        yield from _group(folder, "memory.max", "memory.current", "inactive_file")
    for folder in groups_v1("memory", root):
        yield from _group(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _group(folder: Path, limit_file: str, used_file: str, cache_line: str) -> Iterator[_Group]:
    limit = read_number(folder / limit_file)
    if limit is None or not 0 <= limit < NO_LIMIT:
        return
    used = read_number(folder / used_file) or 0
    yield _Group(limit, used, _table(folder / "memory.stat").get(cache_line, 0))


def _table(path: Path) -> dict[str, int]:
    """Reads a file with a name and a number on each line."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return {}
    numbers = {words[0]: whole_number(words[1]) for words in lines if len(words) > 1}
    return {name: number for name, number in numbers.items() if number is not None}
