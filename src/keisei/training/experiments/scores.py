"""What is compared in a sweep: one number of each run, and their mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keisei.errors import KeiseiError
from keisei.evaluation.statistics import Interval, mean_interval
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.metric_names import ELAPSED

__all__ = ["Objective", "Result", "result_of"]


@dataclass(frozen=True)
class Objective:
    """The number that is compared."""

    opponent: str
    """The score against this player, if no metric is named."""
    metric: str = ""
    lower_is_better: bool = False

    def of(self, run: RunDirectory, most_steps: float = math.inf) -> float | None:
        """Gets the last number of a run that has at most this many transitions; None if it has none."""
        try:
            with RunDatabase(run.database, read_only=True) as database:
                if self.metric:
                    found = [(point.step, point.value) for point in database.metric(self.metric)]
                else:
                    found = [(row.step, row.score) for row in database.evaluations(self.opponent)]
        except KeiseiError:
            return None
        known = [value for step, value in found if step <= most_steps and math.isfinite(value)]
        return known[-1] if known else None

    def better(self, value: float) -> float:
        """Converts a value to a number that is larger where the value is better."""
        return -value if self.lower_is_better else value

    def __str__(self) -> str:
        return self.metric or f"score against {self.opponent}"


@dataclass(frozen=True)
class Result:
    """What the runs of one trial reached."""

    values: tuple[float, ...]
    """One for each run that has a number."""
    runs: int
    seconds: float
    """Seconds of training of all its runs."""

    @property
    def mean(self) -> Interval | None:
        return mean_interval(self.values) if self.values else None

    def rank(self, objective: Objective) -> float:
        """Computes the key of a ranking, larger being better. A trial without a number is last."""
        return -math.inf if self.mean is None else objective.better(self.mean.value)


def result_of(runs: Sequence[RunDirectory], objective: Objective, most_steps: float = math.inf) -> Result:
    values = [objective.of(run, most_steps) for run in runs]
    return Result(
        tuple(value for value in values if value is not None), len(runs), sum(map(_seconds_of, runs))
    )


def _seconds_of(run: RunDirectory) -> float:
    try:
        with RunDatabase(run.database, read_only=True) as database:
            seconds = database.latest_metrics().get(ELAPSED, 0.0)
    except KeiseiError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0
