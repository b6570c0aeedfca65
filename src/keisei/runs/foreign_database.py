"""Opens ``run.db`` as a file that somebody else may have made.

A database is more than data: views and triggers are programs, a FIFO in its place blocks whoever opens it, and one
query over a prepared table can last for ever. Keisei makes tables and indexes only, so everything else is refused.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import sys
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from types import TracebackType

from keisei.errors import RunDatabaseError
from keisei.runs.foreign_files import check_regular

__all__ = ["WAIT_SECONDS", "Watch", "check_schema", "connect", "way_out"]

logger = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
"""How many seconds a process waits for another's transaction. Those of the trainer take milliseconds."""
QUERY_SECONDS = 10.0
"""How many seconds a query of a reader may take. Those of Keisei take milliseconds, also after 50,000 updates."""
_STEPS = 2000
"""Steps of SQLite's machine between two looks at the clock."""
_LARGEST = 16 << 30
_LONGEST = 16 << 20
"""Bytes of the database, and of a value in it."""
_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""SQLite opens these files beside the database by itself."""
_OWN = re.compile(r"CREATE (TABLE|INDEX) (?!.*\b(AS|CHECK)\b)", re.DOTALL | re.IGNORECASE)
"""The schema has plain tables and indexes. ``AS`` makes a view or a computed column."""
_NEVER = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_RECURSIVE,
    }
)
"""Actions that no statement of Keisei takes. A statement that takes one comes from the schema of the file."""


class Watch:
    """Ends a query that lasts too long. Used in a ``with`` around each query."""

    def __init__(self, connection: sqlite3.Connection, seconds: float = QUERY_SECONDS) -> None:
        self._seconds, self._until = seconds, inf
        connection.set_progress_handler(self._is_over, _STEPS)

    def _is_over(self) -> int:
        return time.monotonic() > self._until

    def __enter__(self) -> None:
        self._until = time.monotonic() + self._seconds

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until = inf


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Opens a database, after a look at all files that SQLite opens with it."""
    for suffix in _SUFFIXES:
        check_regular(path.with_name(path.name + suffix), _LARGEST)
    if not read_only:
        return _to_write(_opened(path, "rwc"))
    try:
        return _looked_at(_opened(path, "ro"))
    except sqlite3.OperationalError as error:
        if not _is_read_only_medium(path, error):
            raise
    return _looked_at(_opened(path, "ro&immutable=1"))


def check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuses a database with more than plain tables and indexes. The column ``type`` of a schema may be forged, so the
    statement itself is read."""
    for name, statement in connection.execute("SELECT name, sql FROM sqlite_master"):
        if statement is not None and not _OWN.match(str(statement)):
            raise RunDatabaseError(
                f"{path} has {str(name)[:100]!r}, which is no plain table. Keisei makes no views, triggers and "
                f"computed columns, so somebody else has changed it: move it out of the run"
            )


def way_out(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    for beginnings, text in _WAYS_OUT.items():
        if name.startswith(beginnings):
            return text
    return "See who may write there, and whether the run is used by one trainer only"


_WAYS_OUT = {
    ("SQLITE_NOTADB", "SQLITE_CORRUPT"): (
        "It is damaged: move it aside, and the run continues with a new one; checkpoints are not touched"
    ),
    ("SQLITE_FULL", "SQLITE_IOERR"): (
        "The disk is full or failing; make room there. What was written before is whole"
    ),
    ("SQLITE_BUSY", "SQLITE_LOCKED"): (
        f"Another process has been writing for {WAIT_SECONDS:.0f} s; only the trainer may write"
    ),
    ("SQLITE_READONLY",): "It was opened to read; only the trainer writes there",
    ("SQLITE_CANTOPEN",): "There is no such file, or it may not be opened",
    ("SQLITE_INTERRUPT", "SQLITE_TOOBIG", "SQLITE_AUTH"): (
        "Keisei's own databases answer at once: it is too large, or somebody else has changed it"
    ),
}


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=WAIT_SECONDS, isolation_level=None
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_allowed)
    if sys.version_info >= (3, 12):  # in earlier versions, only the authorizer protects the schema
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _allowed(action: int, first: str | None, *_: str | None) -> int:
    is_refused = action in _NEVER or (action == sqlite3.SQLITE_PRAGMA and first == "writable_schema")
    return sqlite3.SQLITE_DENY if is_refused else sqlite3.SQLITE_OK


def _to_write(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # If the process is killed, the database stays whole. Only a power cut may lose the last updates.
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _looked_at(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Reads the first page, since SQLite opens the files beside the database only then."""
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _is_read_only_medium(path: Path, error: sqlite3.OperationalError) -> bool:
    """Checks if SQLite fails only because it cannot make its files beside the database. Then nobody writes to it, so it
    can be read as one that never changes."""
    if not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")) or not path.is_file():
        return False
    with suppress(OSError):
        if path.with_name(f"{path.name}-wal").stat().st_size:
            logger.warning("%s is read without its last updates: they are still in its -wal file", path)
    return True
