"""Event files for TensorBoard, written in the calling thread.

``torch.utils.tensorboard.SummaryWriter`` writes in its own thread, which ends with a traceback when the disk is
full. Here an update is one event, written whole or not at all, and an error is raised to the caller.
"""

from __future__ import annotations

import io
import itertools
import os
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keisei.runs.durable_files import AppendFile

_FILES = itertools.count()


class EventFile:
    """A new event file. ``purge_step`` hides the data of earlier files from that step on, for a resumed run."""

    def __init__(self, directory: Path, purge_step: int | None = None) -> None:
        # TensorBoard reads files in the order of their names, so the time comes first.
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.{next(_FILES)}"
        directory.mkdir(exist_ok=True)
        self._file = AppendFile(directory / name)
        try:
            self._file.append(_records(_opening(purge_step)))
        except BaseException:
            self._file.close()
            (directory / name).unlink()
            raise

    def add_all(self, updates: Iterable[tuple[int, float, Mapping[str, float]]]) -> None:
        """Writes step, time and numbers of updates, all of them or none; raises ``OSError`` if the disk is full."""
        self._file.append(_records(_scalars(step, at, values) for step, at, values in updates))

    def close(self) -> None:
        self._file.close()


def _opening(purge_step: int | None) -> Iterable[Any]:
    # TensorBoard takes a quarter of a second to import, so only a run that trains imports it.
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog

    now = time.time()
    yield Event(wall_time=now, step=purge_step or 0, file_version="brain.Event:2")
    if purge_step is not None:
        yield Event(wall_time=now, step=purge_step, session_log=SessionLog(status=SessionLog.START))


def _scalars(step: int, at: float, values: Mapping[str, float]) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    entries = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
    return Event(wall_time=at, step=step, summary=Summary(value=entries))


def _records(events: Iterable[Any]) -> bytes:
    from tensorboard.summary.writer.record_writer import RecordWriter

    content = io.BytesIO()
    writer = RecordWriter(content)
    for event in events:
        writer.write(event.SerializeToString())
    return content.getvalue()
