"""The settings of PPO, and the schedules of those that change over a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from keisei.config import Rule, Settings
from keisei.learners.schedules import RateSchedule, scheduled_rate, within_run
from keisei.ranges import LearningRate, Limit, MinibatchSize, Parts, PositiveShare, Weight

__all__ = ["PPOConfig"]


class PPOConfig(Settings):
    """Settings of the learner."""

    on_change: ClassVar[Rule] = Rule.ANNOUNCED

    gone: ClassVar[Mapping[str, Any]] = {"mirror": False}

    learning_rate: LearningRate = 3e-4
    """Step size of the optimiser at the start of the run."""
    schedule: RateSchedule = "linear"
    """How the learning rate changes over the run: it stays, or falls in a line or along a cosine."""
    final_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The learning rate at the end of the run, as a share of ``learning_rate``."""
    epochs: Annotated[int, Field(ge=1, le=1_000_000)] = 3
    """Passes over the data of each update."""
    advantage_share: PositiveShare = 1.0
    """Share of an update's decisions to learn from. The larger an advantage, of either sign, the more probably its
    decision is kept. The policy learns from all that are kept alike. Values are fitted with the inverse weights, so
    they stay those of all decisions. Below 1, the same time has room for more games."""
    minibatch_size: MinibatchSize = 512
    """Decisions of one gradient step."""
    parts: Parts | Literal["auto"] = "auto"
    """Parts of a minibatch. Their gradients are added in order, so the bits of the weights depend on this number.
    Threads share the parts. ``auto`` takes what suits the network; a GPU always uses 1."""
    clip: Limit = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: Limit | None = None
    """How far a value may move from its old estimate before its gradient is cut; null sets no limit."""
    value_weight: Weight = 0.5
    """Weight of the value loss in the total loss."""
    entropy_weight: Weight = 0.01
    """Weight of the entropy bonus at the start of the run. More entropy means more exploration."""
    final_entropy_weight: Weight | None = None
    """The entropy weight at the end of the run; it changes in a straight line. Null keeps it constant."""
    trace: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Lambda of GAE and of V-trace, per ply. Higher values look further ahead, with more variance."""
    correction: Literal["none", "vtrace"] = "vtrace"
    """How asynchronous experience is corrected for old weights. Synchronous experience needs no correction."""
    rho_clip: Limit = 1.0
    """V-trace's limit on the probability ratio of a temporal difference (rho). A low limit keeps values near those of
    the policy that acted."""
    trace_clip: Limit = 1.0
    """V-trace's limit on the ratio that passes later temporal differences back (c). A low limit lowers the
    variance."""
    normalise_advantages: bool = True
    """Scale the advantages of each minibatch to mean 0 and standard deviation 1."""
    target_kl: Limit | None = None
    """End an update early if the mean divergence (KL) of an epoch is more than 1.5 times this. Null sets no limit."""
    max_grad_norm: Limit = 0.5
    """Larger gradients are scaled down to this norm."""

    def learning_rate_at(self, progress: float) -> float:
        """Computes the learning rate after ``progress`` (0 … 1) of the run."""
        return scheduled_rate(self.learning_rate, self.schedule, self.final_rate, progress)

    def entropy_weight_at(self, progress: float) -> float:
        """Computes the entropy weight after ``progress`` (0 … 1) of the run."""
        first, last = self.entropy_weight, self.final_entropy_weight
        return first if last is None else first + (last - first) * within_run(progress)
