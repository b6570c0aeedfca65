"""Writes the numbers of each update to ``run.db``, TensorBoard and the log.

If one of them cannot be written, for example because the disk is full, training continues. Its numbers are kept for
later, up to a limit. Numbers beyond the limit are dropped and counted, and both are reported. ``metric_names``
lists what is written.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, SupportsFloat

from keisei.errors import RunDatabaseError, RunError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.log import RunLog, line_of
from keisei.runs.metric_names import LOSS, is_reserved
from keisei.runs.tensorboard_events import EventFile

logger = logging.getLogger(__name__)

BACKLOG = 1000
"""The most updates that are kept for a sink that cannot be written."""

_TAG = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.:-]+)+")
"""Section and name. Only a name may have a colon, as in ``search:2``."""


@dataclass(frozen=True)
class UpdateMetrics:
    """The numbers of one update."""

    update: int
    step: int
    """Transitions so far."""
    time: float
    values: Mapping[str, float]


class Sink(Protocol):
    """A sink for metrics. ``write`` raises ``OSError`` or ``RunDatabaseError`` if it cannot write now."""

    def write(self, updates: Sequence[UpdateMetrics]) -> None: ...

    def close(self) -> None: ...


class DatabaseSink:
    """Rows in ``run.db``. The database belongs to the caller."""

    def __init__(self, database: RunDatabase) -> None:
        self._database = database

    def write(self, updates: Sequence[UpdateMetrics]) -> None:
        with self._database.batch():
            for update in updates:
                self._database.add_metrics(update.update, update.step, update.values, update.time)

    def close(self) -> None:
        """The caller closes the database."""


class LogSink:
    """Lines in ``log.jsonl``. The log belongs to the caller."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def write(self, updates: Sequence[UpdateMetrics]) -> None:
        self._log.write_lines(
            line_of("update", {"update": update.update, "step": update.step, "metrics": update.values})
            for update in updates
        )

    def close(self) -> None:
        """The caller closes the log."""


class TensorBoardSink:
    """Events for TensorBoard. The file is created with the first update, so an idle run leaves none."""

    def __init__(self, run: RunDirectory, purge_step: int | None = None) -> None:
        self._directory = run.tensorboard
        self._purge_step = purge_step
        self._file: EventFile | None = None

    def write(self, updates: Sequence[UpdateMetrics]) -> None:
        if self._file is None:
            self._file = EventFile(self._directory, self._purge_step)
        self._file.add_all((update.step, update.time, update.values) for update in updates)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass
class _Place:
    """A sink, and what it has not written yet."""

    name: str
    sink: Sink
    backlog: list[UpdateMetrics] = field(default_factory=list)
    problem: str = ""
    dropped: int = 0

    def offer(self, update: UpdateMetrics) -> None:
        self.backlog.append(update)
        if len(self.backlog) > BACKLOG:
            del self.backlog[0]
            self.dropped += 1
        self.write()

    def write(self) -> None:
        if not self.backlog:
            return
        try:
            self.sink.write(self.backlog)
        except (OSError, RunDatabaseError) as error:
            if not self.problem:
                logger.warning(
                    "metrics cannot be written to %s, and are kept for later: %s", self.name, error
                )
            self.problem = str(error)
        else:
            if self.problem:
                logger.info("%s can be written to again; %d updates were lost", self.name, self.dropped)
            self.problem = ""
            self.backlog.clear()


class MetricsWriter:
    """Writes each update's numbers to all sinks.

    ``resumed_step`` is the step of the checkpoint that the run continues from. TensorBoard hides what came after
    it. ``RunDatabase.rewind`` does the same in ``run.db``.
    """

    def __init__(
        self, run: RunDirectory, database: RunDatabase, log: RunLog, resumed_step: int | None = None
    ) -> None:
        purge_step = None if resumed_step is None else resumed_step + 1
        self._places = [
            _Place("run.db", DatabaseSink(database)),
            _Place("tensorboard", TensorBoardSink(run, purge_step)),
            _Place("log.jsonl", LogSink(log)),
        ]

    def write(self, update: int, step: int, values: Mapping[str, SupportsFloat]) -> UpdateMetrics:
        """Writes numbers of one update, and returns what was written. ``step`` counts transitions, and is the x-axis
        of every curve."""
        numbers = {_checked_tag(name): _number(name, value) for name, value in values.items()}
        record = UpdateMetrics(update, step, time.time(), numbers)
        for place in self._places:
            place.offer(record)
        return record

    @property
    def problems(self) -> dict[str, str]:
        """The sinks that cannot be written now, and why."""
        return {place.name: place.problem for place in self._places if place.problem}

    @property
    def dropped(self) -> dict[str, int]:
        """For each sink, the number of updates that it lost."""
        return {place.name: place.dropped for place in self._places}

    def close(self) -> None:
        """Tries once more to write what is left, and reports what could not be written."""
        for place in self._places:
            place.write()
            place.sink.close()
            lost = place.dropped + len(place.backlog)
            if lost:
                logger.warning("%d updates are missing from %s: %s", lost, place.name, place.problem)


def own_number(name: str, value: SupportsFloat) -> float:
    """Checks a number that is not one of Keisei's own, and its name."""
    _checked_tag(name)
    if is_reserved(name):
        raise RunError(
            f"{name!r} is the name of a number of Keisei itself; take another, such as mine/{name.rpartition('/')[2]}"
        )
    return _number(name, value)


def _checked_tag(name: str) -> str:
    if not isinstance(name, str) or not _TAG.fullmatch(name):
        raise RunError(
            f"{name!r} cannot name a metric: write it as section/name, such as {LOSS}, with letters, digits, '_', '-', "
            f"'.' and ':'"
        )
    return name


def _number(name: str, value: SupportsFloat) -> float:
    if hasattr(value, "detach"):
        value = value.detach()  # a tensor that has a gradient is a number too
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"metric {name} is {value!r}; a metric is one number") from error
