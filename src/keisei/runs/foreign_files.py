"""Reads files that somebody else may have written: a run is a folder that people pass on.

Only regular files are opened, at most so many bytes are read, and no link is followed from the folder on. So neither a
FIFO nor a device nor a sparse file can hold a reader up, and a link cannot show a file outside of the folder.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keisei.errors import ForeignFileError

__all__ = ["check_regular", "open_foreign", "read_foreign"]

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def read_foreign(folder: Path, name: str, most: int) -> bytes:
    """Reads ``folder/name``, a file of at most ``most`` bytes. ``FileNotFoundError`` if it is not there, and
    ``ForeignFileError`` if it is no plain file, too large, or behind a link."""
    with open_foreign(folder, name, most) as descriptor, open(descriptor, "rb", closefd=False) as file:
        # One read of the whole takes no memory for a second copy: pieces of checkpoints are large.
        content = file.read(min(most, os.fstat(descriptor).st_size) + 1)
    if len(content) > most:  # it grew meanwhile
        raise _too_large(folder / name, len(content), most)
    return content


@contextmanager
def open_foreign(folder: Path, name: str, most: int) -> Iterator[int]:
    """Opens such a file and returns its descriptor. ``folder`` itself may be a link, since the caller has named it."""
    path = folder / name
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or "\0" in name:
        raise ForeignFileError(f"{path} is not inside {folder}; only files of the folder itself are read")
    opened: list[int] = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in parts[:-1]:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        opened.append(os.open(parts[-1], _FILE, dir_fd=opened[-1]))
        _check(path, os.fstat(opened[-1]), most)
        yield opened[-1]
    except OSError as error:
        if isinstance(error, ForeignFileError) or error.errno not in (
            errno.ELOOP,
            errno.ENOTDIR,
            errno.ENXIO,
        ):
            raise
        raise ForeignFileError(
            f"{path} is a link, or leads through one or through a file; a run is read from its own folder alone: put "
            f"the file itself there"
        ) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def check_regular(path: Path, most: int) -> bool:
    """Checks a file that another library opens. Returns False if it is not there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    _check(path, found, most)
    return True


def _check(path: Path, found: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ForeignFileError(
            f"{path} is not a plain file, and only such are read; move it out of the run's folder"
        )
    if found.st_size > most:
        raise _too_large(path, found.st_size, most)


def _too_large(path: Path, size: int, most: int) -> ForeignFileError:
    return ForeignFileError(
        f"{path} has {size:,} bytes, and such a file has at most {most:,}; Keisei has not written it"
    )
