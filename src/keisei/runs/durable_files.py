"""Files that are complete or do not exist, whenever the process or the machine stops.

New content is written beside the old, flushed to the disk, and renamed. A rename is atomic, so a reader sees the
old or the new content, never a part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keisei.errors import KeiseiError, RunError


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turns errors of the file system, such as a full disk, into ``RunError``."""
    try:
        yield
    except KeiseiError:  # some of them are OSErrors too
        raise
    except OSError as error:
        raise RunError(
            f"cannot write to {path}: {error.strerror or error}. What was saved before is whole; make room on the "
            f"disk, or see who may write there"
        ) from error


def write_new(path: Path, content: bytes) -> None:
    """Writes a file that must not exist yet, and waits until it is on the disk."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Waits until the names in a directory are on the disk. Otherwise a power cut may lose a rename."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Replaces the content of a file in one step. The next call overwrites what a crash leaves behind."""
    partial = path.with_name(f".partial-{path.name}")
    try:
        partial.unlink(missing_ok=True)
        write_new(partial, content)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def overwrite_file(path: Path, content: bytes) -> None:
    """Writes over a file that exists. This needs no new room on a full disk, but a power cut may leave a part."""
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def replace_link(link: Path, target: str) -> None:
    """Changes a symbolic link in one step; it is never missing in between."""
    partial = link.with_name(f".partial-{link.name}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    os.replace(partial, link)
    sync_directory(link.parent)


class AppendFile:
    """A file to which only whole pieces are appended. If the disk is full, a partial piece is removed.

    Pieces are not flushed to the disk one by one. They survive the process, but perhaps not a power cut.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)

    def append(self, content: bytes) -> None:
        rest = memoryview(content)
        size = os.fstat(self._descriptor).st_size
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise

    def last_byte(self) -> bytes:
        """Reads the last byte of the file; empty if the file is empty."""
        size = os.fstat(self._descriptor).st_size
        return os.pread(self._descriptor, 1, size - 1) if size else b""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
