"""The contract of learners: a learner learns from a view, reports numbers, and publishes a behaviour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # reports travel to displays, which wait for no torch
    from keisei.policies.behaviour import Behaviour
    from keisei.runs.state import State

View_contra = TypeVar("View_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Report:
    """The numbers of one update of a learner."""

    owners: Mapping[int, Mapping[str, float]]
    """For each owner, its numbers under the names of ``runs.metric_names.TAGS``."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """For each owner that could not learn, the reason."""

    @property
    def numbers(self) -> Mapping[str, float]:
        """One number for each name: the mean over all owners."""
        names = dict.fromkeys(name for numbers in self.owners.values() for name in numbers)
        return {name: self._mean(name) for name in names}

    def _mean(self, name: str) -> float:
        """Computes the mean over the owners that have this number."""
        found = [numbers.get(name, math.nan) for numbers in self.owners.values()]
        known = [number for number in found if not math.isnan(number)]
        return sum(known) / len(known) if known else math.nan


NOTHING_LEARNED = Report({})
"""The report of an update without any decision to learn from."""


class Learner(Protocol[View_contra]):
    """Improves weights. Each regime has its own kind."""

    def learn(self, view: View_contra, progress: float) -> Report:
        """Learns from a view. ``progress``, 0 … 1, is the share of the run that is done, for schedules."""
        ...

    def behaviour(self, progress: float) -> Behaviour:
        """Gets the behaviour that workers play with from now on."""
        ...

    def state(self) -> State:
        """Gets the state for a checkpoint."""
        ...

    def restore(self, state: State) -> None:
        """Restores a state."""
        ...
