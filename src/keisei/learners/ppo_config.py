"""The settings of PPO, and how those that change over a run do so."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from keisei.config import Settings

__all__ = ["PPOConfig"]


class PPOConfig(Settings):
    """Settings of the learner."""

    learning_rate: Annotated[float, Field(gt=0)] = 3e-4
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls from its first value to ``final_rate`` of it over the run."""
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    epochs: Annotated[int, Field(ge=1)] = 3
    """Passes over the data of each update."""
    minibatch_size: Annotated[int, Field(ge=1)] = 512
    parts: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """Into how many parts a minibatch is split; their gradients are added in order, so the bits of the weights depend
    on it. At most so many threads learn at once. ``auto`` takes what suits the network, and 1 on a GPU."""
    clip: Annotated[float, Field(gt=0)] = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: Annotated[float, Field(gt=0)] | None = None
    """Clip the change of values likewise; None does not."""
    value_weight: Annotated[float, Field(ge=0)] = 0.5
    entropy_weight: Annotated[float, Field(ge=0)] = 0.01
    final_entropy_weight: Annotated[float, Field(ge=0)] | None = None
    """Where the entropy weight goes to, in a straight line; None keeps it."""
    trace: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Lambda of GAE and of V-trace."""
    correction: Literal["none", "vtrace"] = "vtrace"
    """How asynchronous experience is corrected for the age of the weights that acted; synchronous experience needs
    none."""
    rho_clip: Annotated[float, Field(gt=0)] = 1.0
    """V-trace's bound on the probability ratio by which a surprise counts (rho); a low one keeps values near those
    of the policy that acted."""
    trace_clip: Annotated[float, Field(gt=0)] = 1.0
    """V-trace's bound on the ratio by which later surprises reach back (c); a low one lowers the variance."""
    normalise_advantages: bool = True
    target_kl: Annotated[float, Field(gt=0)] | None = None
    """End an update after an epoch over which the policy was, in the mean, further than 1.5 times this from the one
    that acted."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 0.5

    def learning_rate_at(self, progress: float) -> float:
        """After ``progress`` (0 … 1) of the run."""
        done = _within_run(progress)
        if self.schedule == "constant":
            return self.learning_rate
        left = 1 - done if self.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * left)

    def entropy_weight_at(self, progress: float) -> float:
        """After ``progress`` (0 … 1) of the run."""
        first, last = self.entropy_weight, self.final_entropy_weight
        return first if last is None else first + (last - first) * _within_run(progress)


def _within_run(progress: float) -> float:
    """The last update may go a little beyond the end."""
    return min(1.0, max(0.0, progress))
