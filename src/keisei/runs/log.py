"""``log.jsonl``: one JSON object per line, for ``jq`` and other programs.

A line is written whole or not at all. A line that a full disk or a kill has cut short is removed or ended, so that
every other line stays readable.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from keisei.runs.durable_files import AppendFile
from keisei.runs.json_values import Json, finite


class RunLog:
    """Appends to a log. Each line has ``time`` and ``event``."""

    def __init__(self, path: Path) -> None:
        self._file = AppendFile(path)
        if self._file.last_byte() not in (b"", b"\n"):
            self._file.append(b"\n")  # the last process was killed in the middle of a line

    def write(self, event: str, fields: Mapping[str, Json]) -> None:
        self.write_lines([line_of(event, fields)])

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """Writes all lines or none of them; raises ``OSError`` if the disk is full."""
        self._file.append(b"".join(lines))

    def close(self) -> None:
        self._file.close()


class RunLogHandler(logging.Handler):
    """Writes Python's log records to a run's log."""

    def __init__(self, log: RunLog, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._log = log
        self.dropped = 0
        """The number of records that could not be written."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = {
                "level": record.levelname.lower(),
                "source": record.name,
                "message": record.getMessage(),
            }
            if record.exc_info:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)
            elif told := getattr(record, "traceback", ""):  # of an error in another process
                fields["traceback"] = told
            self._log.write("log", fields)
        except OSError:
            self.dropped += 1


class KeptWarnings(logging.Handler):
    """Keeps Python's warnings until somebody shows them. They may come from any thread."""

    def __init__(self, but: Collection[str] = ()) -> None:
        """``but`` are loggers whose warnings are shown in another way."""
        super().__init__(logging.WARNING)
        self._but = frozenset(but)
        self._kept: deque[str] = deque()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name not in self._but:
            self._kept.append(record.getMessage())

    def take(self) -> Iterator[str]:
        """Yields what was added since the last call."""
        while self._kept:
            yield self._kept.popleft()


@contextmanager
def logging_to(*handlers: logging.Handler) -> Iterator[None]:
    """Sends Keisei's log messages to these handlers too."""
    logger = logging.getLogger("keisei")
    level = logger.level
    for handler in handlers:
        logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
        logger.setLevel(level)


def line_of(event: str, fields: Mapping[str, Json]) -> bytes:
    """Makes a line of the log. NaN and infinity become null, since JSON does not have them."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    document = {"time": now, "event": event, **{name: finite(value) for name, value in fields.items()}}
    return (json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n").encode()
