"""``log.jsonl``: one JSON table a line, for people with ``jq`` and for programs.

A line is written whole or not at all: what a full disk or a kill has cut short is taken back or closed off, so
that every other line stays readable.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
        """All lines or none of them; ``OSError`` where the disk is full."""
        self._file.append(b"".join(lines))

    def close(self) -> None:
        self._file.close()


class RunLogHandler(logging.Handler):
    """Sends Python's log records to a run's log, such as the name of a damaged checkpoint."""

    def __init__(self, log: RunLog, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._log = log
        self.dropped = 0
        """Records that a full disk has kept out of the file."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = {
                "level": record.levelname.lower(),
                "source": record.name,
                "message": record.getMessage(),
            }
            if record.exc_info:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)
            self._log.write("log", fields)
        except OSError:
            self.dropped += 1


def line_of(event: str, fields: Mapping[str, Json]) -> bytes:
    """A line of the log. NaN and infinity, for which JSON has no word, become null."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    document = {"time": now, "event": event, **{name: finite(value) for name, value in fields.items()}}
    return (json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n").encode()


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; a line that a kill has cut short is left out."""
    with open(path, "rb") as file:
        for line in file:
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if isinstance(document, dict):
                yield document
