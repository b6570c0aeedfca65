"""Numbers that change over a run."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

__all__ = ["RateSchedule", "scheduled_rate", "within_run"]

RateSchedule: TypeAlias = Literal["constant", "linear", "cosine"]


def scheduled_rate(rate: float, schedule: RateSchedule, final_share: float, progress: float) -> float:
    """Computes the learning rate after ``progress`` (0 … 1) of the run. It falls to ``final_share`` of its start."""
    done = within_run(progress)
    if schedule == "constant":
        return rate
    left = 1 - done if schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return rate * (final_share + (1 - final_share) * left)


def within_run(progress: float) -> float:
    """Limits progress to 0 … 1, since the last update may go a little beyond the end."""
    return min(1.0, max(0.0, progress))
