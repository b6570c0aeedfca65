"""How the learner's rows are played: what a learner publishes, and workers take up."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

__all__ = ["Behaviour"]


@dataclass(frozen=True, eq=False)
class Behaviour:
    """Weights, and how freely they are played. Each publication has a version, and orders name it."""

    network: nn.Module
    """Its weights as they are when this is published."""
    temperature: float = 1.0
    """Of the distribution that actions are drawn from."""
    epsilon: float = 0.0
    """Share of decisions that are random."""
