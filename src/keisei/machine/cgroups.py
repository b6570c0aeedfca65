"""Finds the files with the limits of this process's control groups (Linux; containers use them).

The limits of all parent groups apply too. So each function lists the process's own group and its visible parents. Only
the standard library is imported, since the Makefile uses this before anything is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path("/")


class _Mount(NamedTuple):
    """A line of /proc/self/mountinfo."""

    top: PurePosixPath
    """The group that is mounted at ``place``."""
    place: PurePosixPath
    version: int
    controllers: frozenset[str]
    """The controllers of the mount, in version 1. In version 2 all share one mount."""


def groups_v2(root: Path = ROOT) -> list[Path]:
    """Lists the folders of version 2, nearest first. Tests set ``root`` to a file system of their own."""
    mounts = [mount for mount in _mounts(root) if mount.version == 2]
    return _upwards(mounts, _own_path(root, ""), root)


def groups_v1(controller: str, root: Path = ROOT) -> list[Path]:
    """Lists the folders of one controller of version 1, such as ``cpu``, nearest first."""
    mounts = [mount for mount in _mounts(root) if mount.version == 1 and controller in mount.controllers]
    return _upwards(mounts, _own_path(root, controller), root)


def read_words(path: Path) -> list[str]:
    """Reads the words of a file; none if it is missing or cannot be read."""
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


def read_number(path: Path) -> int | None:
    """Reads the number in a file; None if it holds something else, such as ``max``."""
    return whole_number(" ".join(read_words(path)))


def whole_number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _upwards(mounts: list[_Mount], own: PurePosixPath, root: Path) -> list[Path]:
    """Lists the folders from a process's own group to the top of the mount.

    A container may see its group under another name, or not at all. Then the top of the mount is the nearest
    visible group.
    """
    for mount in mounts:
        if own.is_relative_to(mount.top) and ".." not in own.parts:
            below = own.relative_to(mount.top)
            return [_under(root, mount.place) / part for part in (below, *below.parents)]
    return [_under(root, mount.place) for mount in mounts[:1]]


def _own_path(root: Path, controller: str) -> PurePosixPath:
    """Reads the group of this process from /proc/self/cgroup. Version 2 names no controller."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controller in controllers.split(",") and path.startswith("/"):
            return PurePosixPath(path)
    return PurePosixPath("/")


def _mounts(root: Path) -> Iterator[_Mount]:
    versions = {"cgroup": 1, "cgroup2": 2}
    for line in _lines(root / "proc/self/mountinfo"):
        # id, parent, device, top, place, options and more, a dash, then: kind, source, options of the file system.
        where, _, what = (part.split() for part in line.partition(" - "))
        if len(where) >= 5 and len(what) == 3 and what[0] in versions:
            top, place = PurePosixPath(where[3]), PurePosixPath(where[4])
            yield _Mount(top, place, versions[what[0]], frozenset(what[2].split(",")))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _under(root: Path, absolute: PurePosixPath) -> Path:
    return root / absolute.relative_to("/")
