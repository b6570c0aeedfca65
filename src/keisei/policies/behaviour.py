"""A behaviour: what a learner publishes, and workers play with."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

__all__ = ["Behaviour"]


@dataclass(frozen=True, eq=False)
class Behaviour:
    """Weights, temperature and epsilon. Each publication has a version, and orders name it."""

    network: nn.Module
    """The network. Its weights are copied when it is published."""
    temperature: float = 1.0
    """Temperature of the distribution that actions are drawn from."""
    epsilon: float = 0.0
    """Share of decisions that are random."""
