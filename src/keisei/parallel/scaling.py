"""Adjusts the number of workers: adds one if the learner waits too long, removes one if workers wait too long."""

from __future__ import annotations

import time

from keisei.parallel.config import ParallelConfig
from keisei.parallel.workers import WorkerTotals

WINDOW = 10
"""A decision is based on this many collections."""
STARVED = 0.5
"""If the learner waits for more than this share of its time, a worker is added."""
IDLE = 0.5
"""If workers wait for more than this share of their time, one is removed."""


class LoadWatch:
    """Measures how long learner and workers wait. It decides only after a whole window, so that the number does not
    swing up and down."""

    def __init__(self, config: ParallelConfig) -> None:
        self._config = config
        self._restart(WorkerTotals())

    def _restart(self, now: WorkerTotals) -> None:
        self._since = time.monotonic()
        self._learner_waited = 0.0
        self._collections = 0
        self._seconds_before = now.seconds
        self._waited_before = now.waited_seconds

    def learner_waited(self, seconds: float) -> None:
        self._learner_waited += seconds
        self._collections += 1

    def advice(self, workers: int, crew: WorkerTotals) -> int:
        """Gives +1, -1 or 0 workers at the end of a window. ``crew`` holds the totals of all workers."""
        if self._config.scaling != "auto" or self._collections < WINDOW:
            return 0
        elapsed = max(1e-9, time.monotonic() - self._since)
        starved = self._learner_waited / elapsed
        worked, waited = crew.seconds - self._seconds_before, crew.waited_seconds - self._waited_before
        idle = waited / max(1e-9, worked + waited)
        self._restart(crew)
        if starved > STARVED and workers < self._config.most_workers:
            return 1
        if starved < STARVED and idle > IDLE and workers > self._config.min_workers:
            return -1
        return 0


def summed(totals: list[WorkerTotals]) -> WorkerTotals:
    return WorkerTotals(
        seconds=sum(each.seconds for each in totals),
        waited_seconds=sum(each.waited_seconds for each in totals),
    )
