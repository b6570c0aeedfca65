"""The settings of DQN, and the schedules of those that change over a run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keisei.config import Rule, Settings
from keisei.learners.schedules import RateSchedule, scheduled_rate, within_run
from keisei.ranges import SMALLEST, Count, LearningRate, Limit, MinibatchSize, Parts, PositiveShare

__all__ = ["DQNConfig"]


class DQNConfig(Settings):
    """Settings of the learner. ``model.outputs`` says whether the network is dueling, and ``model.quantiles`` whether
    it learns quantiles."""

    on_change: ClassVar[Rule] = Rule.ANNOUNCED

    learning_rate: LearningRate = 3e-4
    """Step size of the optimiser at the start of the run."""
    schedule: RateSchedule = "constant"
    """How the learning rate changes over the run: it stays, or falls in a line or along a cosine."""
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The learning rate at the end of the run, as a share of ``learning_rate``."""
    minibatch_size: MinibatchSize = 256
    """Decisions of one gradient step, drawn from the replay."""
    parts: Parts | Literal["auto"] = "auto"
    """Parts of a minibatch. Their gradients are added in order, so the bits of the weights depend on this number.
    Threads share the parts. ``auto`` takes what suits the network; a GPU always uses 1."""
    double: bool = True
    """Let the network choose the best next action and the target network value it (van Hasselt and others, 2016).
    False lets the target network do both, which overestimates."""
    target_interval: Count = 500
    """Gradient steps after which the target network follows the network."""
    tau: PositiveShare = 1.0
    """How far it follows: 1 copies the network. A small share at an interval of 1 follows slowly (Polyak
    averaging)."""
    huber: Limit = 1.0
    """The Huber loss is quadratic for errors up to this size and linear beyond."""
    max_grad_norm: Limit = 10.0
    """Larger gradients are scaled down to this norm."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The share of random decisions at the start of the run. It falls after each batch."""
    final_epsilon: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The share of random decisions when it has fallen."""
    epsilon_decay: Literal["linear", "exponential"] = "linear"
    """How it falls: in a line, or by the same factor in equal times."""
    epsilon_share: PositiveShare = 0.5
    """The share of the run in which it falls; then it stays."""
    epsilon_spread: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Give each game its own epsilon (Ape-X): game i of N plays with epsilon^(1 + spread · i/(N-1)). 0 is the same
    epsilon for all games; the paper takes 7, with a constant epsilon of 0.4."""

    @model_validator(mode="after")
    def _decays_to_something(self) -> DQNConfig:
        if self.epsilon_decay == "exponential" and min(self.epsilon, self.final_epsilon) < SMALLEST:
            raise ValueError(
                "epsilon_decay = exponential: no factor leads from or to an epsilon of 0; make epsilon and "
                "final_epsilon larger, such as 0.01, or take linear"
            )
        return self

    def learning_rate_at(self, progress: float) -> float:
        """Computes the learning rate after ``progress`` (0 … 1) of the run."""
        return scheduled_rate(self.learning_rate, self.schedule, self.final_rate, progress)

    def epsilon_at(self, progress: float) -> float:
        """Computes epsilon after ``progress`` (0 … 1) of the run."""
        fallen = min(1.0, within_run(progress) / self.epsilon_share)
        first, last = self.epsilon, self.final_epsilon
        if self.epsilon_decay == "exponential":
            return float(first * (last / first) ** fallen)
        return first + (last - first) * fallen
