"""The settings of independent agents: what they have in common, and in what single agents differ. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from keisei.config import AnySettings, Rule, Settings, parse_settings
from keisei.errors import ConfigError
from keisei.experience.replay_config import Ratio, ReplaySettings
from keisei.games.contract import GameSpec
from keisei.learners.dqn_config import DQNConfig
from keisei.learners.ppo_config import PPOConfig
from keisei.policies.model_config import ModelConfig, check_model
from keisei.ranges import Count, CountOrNone, MinibatchSize, Seconds

__all__ = [
    "AgentDQN",
    "AgentPPO",
    "AgentSettings",
    "Algorithm",
    "IndependentConfig",
    "MemorySettings",
    "Training",
    "outputs_of",
]

Algorithm: TypeAlias = Literal["dqn", "ppo"]
Training: TypeAlias = Literal["stacked", "threads", "processes", "sequential"]


MOST_AGENTS = 128
"""Slabs keep seats in one byte."""
AgentNumber: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 16)]


class AgentDQN(DQNConfig):
    """DQN with the usual sizes for one agent of a world."""

    minibatch_size: MinibatchSize = 64
    """Decisions of one gradient step, drawn from the agent's memory."""
    target_interval: Count = 200
    """Gradient steps after which the target network follows the network."""


class AgentPPO(PPOConfig):
    """PPO with the usual sizes for one agent of a world."""

    minibatch_size: MinibatchSize = 128
    """Decisions of one gradient step."""


class MemorySettings(ReplaySettings):
    """A replay with the usual sizes for one agent of a world."""

    capacity: Count | None = 50_000
    """Decisions of the agent that it keeps. It is rounded up to whole slabs. Null: see megabytes."""
    learning_starts: CountOrNone = 1_000
    """Decisions that must be inserted before learning starts."""
    sample_to_insert_ratio: Ratio = 1.0
    """How often a decision is sampled on average, with ``learning_steps: ratio``."""
    save_replay: bool = True
    """Save the memory with checkpoints, so that a resumed run continues exactly. Only what is new is written."""


class AgentSettings(Settings):
    """In what one agent differs from the others. What is left out is as for all."""

    algorithm: Algorithm | None = None
    """How it learns; null as all others."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Settings of its network, as in the section ``model``."""
    dqn: dict[str, Any] = Field(default_factory=dict)
    """Settings of its DQN."""
    ppo: dict[str, Any] = Field(default_factory=dict)
    """Settings of its PPO."""

    @field_validator("model", mode="before")
    @classmethod
    def _has_a_network(cls, given: object) -> object:
        if given is None:
            raise ValueError(
                "an agent needs a network of its own; leave model out to give it that of the others, or name one"
            )
        return given


class IndependentConfig(Settings):
    """How independent agents learn. Each has its own network, memory and optimiser."""

    on_change: ClassVar[Rule] = Rule.ANNOUNCED

    algorithm: Annotated[Algorithm, Rule.NEVER] = "dqn"
    """How agents learn: dqn (``model.quantiles`` makes it distributional) or ppo."""
    training: Training = "stacked"
    """How agents are trained: ``stacked``, equal ones as one computation; on ``threads``; in ``processes``; or
    ``sequential``, one after the other. The last three give the same bits. A stacked computation rounds sums in another
    order."""
    acting: Literal["stacked", "one-by-one"] = "stacked"
    """How workers compute what agents do: equal ones as one computation, or one after the other."""
    stack_size: Annotated[int, Field(ge=2, le=4096)] = 16
    """The most agents in one computation. Threads share the stacks."""
    train_interval: Count = 1
    """Collections between two trainings."""
    training_timeout: Seconds = 300.0
    """A training that takes longer than this many seconds counts as hung. It is told, and its agent is left out."""
    dqn: AgentDQN = AgentDQN()
    """Settings of DQN, for agents that learn by it."""
    ppo: AgentPPO = AgentPPO()
    """Settings of PPO, for agents that learn by it."""
    replay: MemorySettings = MemorySettings()
    """The memory of each agent that learns by DQN."""
    agents: Annotated[dict[AgentNumber, AgentSettings], Rule.NEVER] = Field(default_factory=dict)
    """In what single agents differ, by number. Agent i plays seat i."""
    fixed_agents: tuple[AgentNumber, ...] = ()
    """Agents that do not learn, by number: they play on with the weights that they have. So the others learn an answer
    to them."""
    parts: Literal[1] = 1
    """A minibatch of an agent is never split: threads share agents."""

    @field_validator("agents", mode="before")
    @classmethod
    def _are_all_there(cls, given: object) -> object:
        missing = (
            [str(number) for number, agent in given.items() if agent is None]
            if isinstance(given, Mapping)
            else []
        )
        if missing:
            raise ValueError(
                f"agent {', '.join(missing)} is null: every seat needs an agent with a network; leave it out"
            )
        return given

    def algorithm_of(self, agent: int) -> Algorithm:
        return self._own(agent).algorithm or self.algorithm

    def dqn_of(self, agent: int) -> AgentDQN:
        return _changed(self.dqn, self._own(agent).dqn, f"learner.agents.{agent}.dqn")

    def ppo_of(self, agent: int) -> AgentPPO:
        return _changed(self.ppo, self._own(agent).ppo, f"learner.agents.{agent}.ppo")

    def model_of(self, agent: int, model: ModelConfig, spec: GameSpec) -> ModelConfig:
        """Gets the network of an agent. ``model`` is that of all. Raises ``ConfigError`` if it does not fit."""
        algorithm, own, where = (
            self.algorithm_of(agent),
            self._own(agent).model,
            f"learner.agents.{agent}.model",
        )
        if algorithm != self.algorithm:  # what its outputs mean follows from its own algorithm
            model = model.model_copy(update={"outputs": "auto", "quantiles": 1})
        found = _changed(model, own, where)
        try:
            found = found.model_copy(update={"outputs": outputs_of(algorithm, found)}).resolved(spec)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
        check_model(found, spec)
        return found

    def check_agents(self, model: ModelConfig, spec: GameSpec) -> None:
        """Checks every agent before anything starts."""
        if spec.seats > MOST_AGENTS:
            raise ConfigError(
                f"{spec.name} has {spec.seats} agents, and at most {MOST_AGENTS} can learn in one world; take fewer"
            )
        for name, numbers in (("agents", self.agents), ("fixed_agents", self.fixed_agents)):
            strangers = [agent for agent in numbers if agent >= spec.seats]
            if strangers:
                raise ConfigError(
                    f"learner.{name} names agent {strangers[0]}, and {spec.name} has seats for agents "
                    f"0 … {spec.seats - 1}"
                )
        if len(set(self.fixed_agents)) == spec.seats:
            raise ConfigError(
                f"learner.fixed_agents names all {spec.seats} agents, so none would learn; leave at least one out"
            )
        for agent in range(spec.seats):
            self.model_of(agent, model, spec)
            self.dqn_of(agent)
            self.ppo_of(agent)

    def _own(self, agent: int) -> AgentSettings:
        return self.agents.get(agent, AgentSettings())


def outputs_of(algorithm: Algorithm, model: ModelConfig) -> str:
    """Finds what the outputs of a network mean for an algorithm. Raises ``ValueError`` if it cannot learn them."""
    if algorithm == "ppo":
        if model.outputs not in ("auto", "policy") or model.quantiles > 1:
            raise ValueError(
                f"outputs = {model.outputs}, quantiles = {model.quantiles}: ppo learns a policy; leave them out, or "
                f"take algorithm dqn"
            )
        return "policy"
    if model.outputs == "policy":
        raise ValueError("outputs = policy: dqn learns the values of actions; take dueling or q")
    return "dueling" if model.outputs == "auto" else model.outputs


def _changed(settings: AnySettings, changes: Mapping[str, Any], where: str) -> AnySettings:
    if not changes:
        return settings
    return parse_settings(type(settings), {**settings.model_dump(), **changes}, where)
