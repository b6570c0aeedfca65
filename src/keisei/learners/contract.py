"""What a learner promises: it learns from a view, tells what it did in numbers, and says how workers play."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # reports travel to displays, which wait for no torch
    from keisei.policies.behaviour import Behaviour
    from keisei.runs.checkpoint import State

View_contra = TypeVar("View_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Report:
    """What one turn of learning did."""

    owners: Mapping[int, Mapping[str, float]]
    """For each owner, its numbers under the names of ``runs.metric_names.TAGS``."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """For each owner that could not learn, why."""

    @property
    def numbers(self) -> Mapping[str, float]:
        """One number for each name: the mean over all owners."""
        names = dict.fromkeys(name for numbers in self.owners.values() for name in numbers)
        return {name: self._mean(name) for name in names}

    def _mean(self, name: str) -> float:
        """Of the owners that have such a number."""
        found = [numbers.get(name, math.nan) for numbers in self.owners.values()]
        known = [number for number in found if not math.isnan(number)]
        return sum(known) / len(known) if known else math.nan


NOTHING_LEARNED = Report({})
"""Of a turn whose experience holds no decision with a known outcome."""


class Learner(Protocol[View_contra]):
    """Makes weights better. Each regime has its own kind."""

    def learn(self, view: View_contra, progress: float) -> Report:
        """Learn from a view. ``progress`` in 0 … 1 tells the schedules how far the run is."""
        ...

    def behaviour(self, progress: float) -> Behaviour:
        """How workers are to play from now on."""
        ...

    def state(self) -> State:
        """All that a checkpoint must hold."""
        ...

    def restore(self, state: State) -> None:
        """Go on from a state."""
        ...
