"""Renames runs, moves them to the trash, and empties the trash.

A run that is being trained is never moved. What is deleted lies in ``ROOT/.trash`` until that is emptied.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from keisei.errors import RunError
from keisei.runs.directory import (
    LOCK,
    RunDirectory,
    check_no_run_above,
    folders_between,
    free_path,
    remove_empty,
)
from keisei.runs.durable_files import file_errors, sync_directory
from keisei.runs.lock import RunLock
from keisei.runs.run_names import check_run_name

__all__ = ["TRASH", "delete_run", "empty_trash", "in_trash", "move_run", "untrained"]

TRASH = ".trash"
"""The folder of deleted runs. Runs cannot have this name, so its content is not listed."""


@contextmanager
def untrained(run: RunDirectory) -> Iterator[None]:
    """Locks a run, so that no trainer starts on it meanwhile. Raises ``RunLockedError`` if it is being trained
    already."""
    with RunLock(run.path / LOCK):
        yield


def move_run(run: RunDirectory, name: str) -> RunDirectory:
    """Renames a run below the same root. A name that is taken is refused."""
    check_run_name(name)
    root = run.root
    moved = RunDirectory(root / name, root)
    check_no_run_above(root, moved.path)
    if any(folder.is_symlink() for folder in folders_between(root, moved.path)):
        raise RunError(f"{moved.path} lies behind a link, where runs are not looked for; choose another name")
    if os.path.lexists(moved.path):
        raise RunError(f"{moved.path} exists already; choose another name, or rename that one first")
    _move(run, moved.path)
    return moved


def delete_run(run: RunDirectory) -> Path:
    """Moves a run into the trash, and returns its place there."""
    trash = run.root / TRASH
    with file_errors(trash):
        trash.mkdir(exist_ok=True)
        now = datetime.now().strftime("%Y%m%d-%H%M%S")
        wanted = f"{run.name.replace('/', '--')}-{now}"
        place = trash / wanted if not os.path.lexists(trash / wanted) else free_path(trash, wanted + ".{}")
    _move(run, place)
    return place


def in_trash(root: Path) -> list[Path]:
    """Lists what lies in the trash."""
    try:
        return sorted((root / TRASH).iterdir())
    except OSError:
        return []


def empty_trash(root: Path) -> int:
    """Deletes everything in the trash for good, and returns the number of runs. A link is removed, but not its
    target."""
    found = in_trash(root)
    with file_errors(root / TRASH):
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        with suppress(FileNotFoundError):
            (root / TRASH).rmdir()
    return len(found)


def _move(run: RunDirectory, place: Path) -> None:
    """Moves a run that nobody trains, and removes the folders that are empty then."""
    between = folders_between(run.root, run.path)
    made = folders_between(run.root, place)
    try:
        with untrained(run), file_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                run.path.rename(place)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise RunError(f"{place} exists already; choose another name") from None
                raise
            sync_directory(place.parent)
            sync_directory(run.path.parent)
    except BaseException:
        remove_empty(made)
        raise
    remove_empty(between)
