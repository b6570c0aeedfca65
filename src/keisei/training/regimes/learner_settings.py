"""The settings of each regime: the section ``learner`` of a configuration."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Tag

from keisei.config import Rule, chosen_by
from keisei.experience.replay_config import ReplaySettings
from keisei.games.contract import GameSpec
from keisei.learners.dqn_config import DQNConfig
from keisei.learners.independent_config import IndependentConfig, outputs_of
from keisei.learners.ppo_config import PPOConfig
from keisei.parallel.config import ParallelConfig
from keisei.policies.model_config import ModelConfig
from keisei.runs.foreign_documents import EARLIER_REGIMES

__all__ = ["DQNSettings", "IndependentSettings", "LearnerSettings", "PPOSettings"]


class PPOSettings(PPOConfig):
    """One network plays all seats, and learns by PPO from what was just played."""

    regime: Annotated[Literal["ppo"], Rule.NEVER] = "ppo"
    """The kind of training. Each regime has its own settings."""

    algorithm: ClassVar = "ppo"
    other_values: ClassVar = {"regime": EARLIER_REGIMES}
    meets_league: ClassVar = True

    def outputs(self, model: ModelConfig) -> str:
        """Finds what the network's outputs mean in this regime. Raises ``ValueError`` if it cannot be that."""
        if model.outputs not in ("auto", "policy") or model.quantiles > 1:
            raise ValueError(
                f"model.outputs = {model.outputs}, model.quantiles = {model.quantiles}: regime ppo learns a "
                f"policy; leave them out, or take learner.regime=dqn"
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

    def check_game(self, model: ModelConfig, spec: GameSpec) -> None:
        """Does nothing, since any game fits."""

    def useful_threads(self) -> int:
        """Computes the most threads that could share the work."""
        return 1 if self.parts == "auto" else self.parts


class DQNSettings(DQNConfig):
    """One network plays all seats, and learns by DQN from a replay of all that was played."""

    regime: Annotated[Literal["dqn"], Rule.NEVER] = "dqn"
    """The kind of training. Each regime has its own settings."""
    replay: ReplaySettings = ReplaySettings()

    algorithm: ClassVar = "dqn"
    other_values: ClassVar = {"regime": EARLIER_REGIMES}
    meets_league: ClassVar = True

    def outputs(self, model: ModelConfig) -> str:
        """Finds what the network's outputs mean in this regime. Raises ``ValueError`` if it cannot be that."""
        if model.outputs == "policy":
            raise ValueError(
                "model.outputs = policy: regime dqn learns the values of actions; take dueling or q"
            )
        return "dueling" if model.outputs == "auto" else model.outputs

    def check(self, parallel: ParallelConfig, rollout: int) -> None:
        """Raises ``ValueError`` if these settings do not fit those of play."""
        for name in ("temperature", "epsilon"):
            if getattr(parallel, name) != ParallelConfig.model_fields[name].default:
                raise ValueError(
                    f"parallel.{name} = {getattr(parallel, name)}: regime dqn explores by learner.epsilon, which "
                    f"falls over the run, and is greedy otherwise; leave it out"
                )
        capacity = self.replay.capacity
        if capacity is not None and capacity < 2 * rollout:
            raise ValueError(
                f"learner.replay.capacity = {capacity}: a replay keeps at least two slabs of each table, 2 x {rollout} "
                f"decisions (parallel.tables x games x horizon); make it larger"
            )

    def check_game(self, model: ModelConfig, spec: GameSpec) -> None:
        """Does nothing, since any game fits."""

    def useful_threads(self) -> int:
        """Computes the most threads that could share the work."""
        return 1 if self.parts == "auto" else self.parts


class IndependentSettings(IndependentConfig):
    """The independent regime: agent i plays seat i and learns for itself. Nothing is shared."""

    regime: Annotated[Literal["independent"], Rule.NEVER] = "independent"
    """The kind of training. Each regime has its own settings."""

    meets_league: ClassVar = False

    def outputs(self, model: ModelConfig) -> str:
        """Finds what the networks' outputs mean, for agents that learn as most do."""
        return outputs_of(self.algorithm, model)

    def check(self, parallel: ParallelConfig, rollout: int) -> None:
        """Raises ``ValueError`` if these settings do not fit those of play."""
        for name in ("temperature", "epsilon", "table_overrides", "inference"):
            usual = ParallelConfig.model_fields[name].get_default(call_default_factory=True)
            if getattr(parallel, name) != usual:
                raise ValueError(
                    f"parallel.{name} = {getattr(parallel, name)}: in regime independent each agent plays as its own "
                    f"algorithm says, in the workers; leave it out"
                )
        if parallel.seating.opponents:
            raise ValueError(
                "parallel.seating.opponents: in regime independent agents have all seats; leave it out"
            )
        capacity = self.replay.capacity
        if capacity is not None and capacity < 2 * rollout:
            raise ValueError(
                f"learner.replay.capacity = {capacity}: the memory of an agent keeps at least two slabs of each table, "
                f"2 x {rollout} decisions (parallel.tables x games x horizon); make it larger"
            )
        if self.training == "processes" and self.replay.prioritised:
            raise ValueError(
                "learner.training = processes draws all samples before it begins, and priorities change after each; "
                "take stacked or threads, or learner.replay.prioritised=false"
            )

    def check_game(self, model: ModelConfig, spec: GameSpec) -> None:
        """Raises ``ConfigError`` if the agents do not fit the game."""
        self.check_agents(model, spec)

    def useful_threads(self) -> int:
        """Computes the most threads that could share the work; the number of agents is not known here."""
        return 1 if self.training == "sequential" else MANY


MANY = 1 << 10

LearnerSettings: TypeAlias = Annotated[
    Annotated[PPOSettings, Tag("ppo")]
    | Annotated[DQNSettings, Tag("dqn")]
    | Annotated[IndependentSettings, Tag("independent")],
    chosen_by("regime", default="ppo", earlier=EARLIER_REGIMES),
]
