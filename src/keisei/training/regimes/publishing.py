"""Decides when new weights go to the workers."""

from __future__ import annotations

from typing import Literal

from keisei.learners.contract import Report
from keisei.parallel.parallel_manager import ParallelManager
from keisei.policies.behaviour import Behaviour
from keisei.runs.metric_names import APPROX_KL

MOVED_ENOUGH = 0.01
"""Divergence from the published policy (approximate KL, summed over updates) at which new weights are sent."""
LONGEST_WAIT = 8
"""Updates after which weights are sent, even if the policy has hardly changed."""


class Publisher:
    """Publishes after every update, or, adaptively, when the policy has changed enough. Asynchronous workers then
    keep their weights while little changes."""

    def __init__(self, manager: ParallelManager, rule: Literal["every", "adaptive"]) -> None:
        self._manager = manager
        self._rule = rule
        self._moved = 0.0
        self._waited = 0

    def publish(self, behaviour: Behaviour, report: Report) -> bool:
        """Publishes the behaviour of an update if it is due. Returns whether it was published."""
        self._moved += max(0.0, report.numbers.get(APPROX_KL, MOVED_ENOUGH))
        self._waited += 1
        if self._rule == "adaptive" and self._moved < MOVED_ENOUGH and self._waited < LONGEST_WAIT:
            return False
        self._manager.publish(behaviour)
        self._moved, self._waited = 0.0, 0
        return True
