"""The settings of each regime: the section ``learner`` of a configuration."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Tag

from keisei.config import chosen_by
from keisei.experience.replay_config import ReplaySettings
from keisei.learners.dqn_config import DQNConfig
from keisei.learners.ppo_config import PPOConfig
from keisei.parallel.config import ParallelConfig
from keisei.policies.model_config import ModelConfig

__all__ = ["LearnerSettings", "PoolSettings", "SelfPlaySettings"]


class SelfPlaySettings(PPOConfig):
    """The self-play regime: the learner plays all seats and learns by PPO."""

    regime: Literal["self-play"] = "self-play"
    """The kind of training. Each regime has its own settings."""

    algorithm: ClassVar = "ppo"

    def outputs(self, model: ModelConfig) -> str:
        """Gives what the network's outputs mean in this regime. Raises ``ValueError`` if it cannot be that."""
        if model.outputs not in ("auto", "policy") or model.quantiles > 1:
            raise ValueError(
                f"model.outputs = {model.outputs}, model.quantiles = {model.quantiles}: regime self-play learns a "
                f"policy; leave them out, or take learner.regime=pool"
            )
        return "policy"

    def check(self, parallel: ParallelConfig, rollout: int) -> None:
        """Raises ``ValueError`` if these settings do not fit those of play."""
        if self.minibatch_size > rollout:
            tables = rollout // (parallel.games * parallel.horizon)
            raise ValueError(
                f"learner.minibatch_size = {self.minibatch_size} is more than the {rollout} decisions of an update "
                f"(parallel.tables x games x horizon = {tables} x {parallel.games} x {parallel.horizon}); make it "
                f"smaller"
            )


class PoolSettings(DQNConfig):
    """The pool regime: the learner plays against a pool of opponents and learns by DQN from a replay."""

    regime: Literal["pool"] = "pool"
    """The kind of training. Each regime has its own settings."""
    replay: ReplaySettings = ReplaySettings()

    algorithm: ClassVar = "dqn"

    def outputs(self, model: ModelConfig) -> str:
        """Gives what the network's outputs mean in this regime. Raises ``ValueError`` if it cannot be that."""
        if model.outputs == "policy":
            raise ValueError(
                "model.outputs = policy: regime pool learns the values of actions; take dueling or q"
            )
        return "dueling" if model.outputs == "auto" else model.outputs

    def check(self, parallel: ParallelConfig, rollout: int) -> None:
        """Raises ``ValueError`` if these settings do not fit those of play."""
        for name in ("temperature", "epsilon"):
            if getattr(parallel, name) != ParallelConfig.model_fields[name].default:
                raise ValueError(
                    f"parallel.{name} = {getattr(parallel, name)}: regime pool explores by learner.epsilon, which "
                    f"falls over the run, and is greedy otherwise; leave it out"
                )
        capacity = self.replay.capacity
        if capacity is not None and capacity < 2 * rollout:
            raise ValueError(
                f"learner.replay.capacity = {capacity}: a replay keeps at least two slabs of each table, 2 x {rollout} "
                f"decisions (parallel.tables x games x horizon); make it larger"
            )


LearnerSettings: TypeAlias = Annotated[
    Annotated[SelfPlaySettings, Tag("self-play")] | Annotated[PoolSettings, Tag("pool")],
    chosen_by("regime", default="self-play"),
]
