"""When new weights go to the workers."""

from __future__ import annotations

from typing import Literal

from keisei.learners.contract import Report
from keisei.parallel.parallel_manager import ParallelManager
from keisei.policies.networks import ActorCritic

MOVED_ENOUGH = 0.01
"""Divergence (approximate KL, summed over updates) from the published policy that makes new weights worth sending."""
LONGEST_WAIT = 8
"""Updates after which weights are sent, however little the policy has moved."""


class Publisher:
    """Publishes after every update, or, adaptively, when the policy has moved far enough from the one at work:
    asynchronous workers then keep their weights while little changes."""

    def __init__(
        self, manager: ParallelManager, network: ActorCritic, rule: Literal["every", "adaptive"]
    ) -> None:
        self._manager = manager
        self._network = network
        self._rule = rule
        self._moved = 0.0
        self._waited = 0

    def publish(self, report: Report) -> bool:
        """Take note of an update; True where its weights were published."""
        self._moved += max(0.0, report.numbers["train/approx_kl"])
        self._waited += 1
        if self._rule == "adaptive" and self._moved < MOVED_ENOUGH and self._waited < LONGEST_WAIT:
            return False
        self._manager.sync_model_to_workers(self._network)
        self._moved, self._waited = 0.0, 0
        return True
