"""How many workers: more where the learner starves, fewer where workers wait for it."""

from __future__ import annotations

import time

from keisei.parallel.config import ParallelConfig
from keisei.parallel.workers import WorkerTotals

WINDOW = 10
"""Collections that a decision looks back on."""
STARVED = 0.5
"""The learner waits for more than this share of its time: add a worker."""
IDLE = 0.5
"""Workers wait for more than this share of theirs: remove one."""


class LoadWatch:
    """Follows who waits for whom. It decides on whole windows, so that it does not swing to and fro."""

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
        """+1, -1 or 0 workers, at the end of a window; ``crew`` sums up what all workers have done."""
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
