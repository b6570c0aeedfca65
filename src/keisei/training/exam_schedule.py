"""When a run is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from keisei.training.events import Counters

__all__ = ["ExamSchedule"]

SHARES = (0.1, 0.25, 0.5, 0.75)
"""Shares of a short run after which it is evaluated, so that it has a curve too."""
ENOUGH = 2
"""A run with fewer evaluations than this, the last one included, is short."""
ROUNDING = 1e-6


@dataclass
class ExamSchedule:
    """Evaluations during a run: ``every`` so many transitions, and in a short run after some shares of it; 0 evaluates
    only at the end."""

    every: int
    evaluated_at: int = 0
    """Transitions at the last evaluation."""
    _seen: float = 0.0
    """The share of the run at the last call of ``is_due``. Evaluations take time, so it does not grow evenly with
    transitions."""

    def is_due(self, counters: Counters, progress: float) -> bool:
        """``progress`` is the share of the run that is done."""
        before, self._seen = self._seen, progress
        since = counters.transitions - self.evaluated_at
        if not self.every or since <= 0:
            return False
        return since >= self.every or self._has_passed_a_share(counters.transitions, before, progress)

    def _has_passed_a_share(self, transitions: int, before: float, progress: float) -> bool:
        if not 0 < progress < 1 or transitions / progress > ENOUGH * self.every - ROUNDING:
            return False
        # After a resume, the last progress is not known: assume that the run was always this fast.
        last = before or progress * self.evaluated_at / transitions
        return any(last + ROUNDING < share <= progress for share in SHARES)
