"""Units of work: the agents that are trained in one computation. An agent that cannot learn harms nobody else."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from keisei.errors import in_one_line
from keisei.learners.dqn import DQN
from keisei.learners.ppo import PPO

__all__ = ["AgentLearner", "Alone", "Outcome", "Unit", "failure_of"]

logger = logging.getLogger(__name__)

AgentLearner: TypeAlias = DQN | PPO
Outcome: TypeAlias = Mapping[str, float] | str
"""The numbers of an agent's training, or why it could not learn."""


class Unit(Protocol):
    """Some agents, and how they are trained."""

    @property
    def agents(self) -> tuple[int, ...]: ...

    def learn(self, views: Mapping[int, Any], progress: float) -> dict[int, Outcome]:
        """Trains each agent on its own view. An agent that fails is left out; it tries again next time."""
        ...


@dataclass(frozen=True)
class Alone:
    """One agent, trained by itself."""

    agent: int
    learner: AgentLearner

    @property
    def agents(self) -> tuple[int, ...]:
        return (self.agent,)

    def rests(self, views: Mapping[int, Any]) -> bool:
        """Checks if a rollout is empty, since the agent has not acted."""
        return isinstance(self.learner, PPO) and not len(views[self.agent])

    def learn(
        self, views: Mapping[int, Any], progress: float, made: Sequence[Any] = ()
    ) -> dict[int, Outcome]:
        """Trains the agent. The steps in ``made`` count as done and are not repeated."""
        if self.rests(views):
            return {self.agent: {}}
        try:
            return {self.agent: self.learner.learn(views[self.agent], progress, made).owners[0]}
        except Exception as error:
            self.learner.network.eval()
            return {self.agent: failure_of(self.agent, error)}


def failure_of(agent: int, error: Exception) -> str:
    """Describes the failure in one line, and logs its traceback."""
    logger.info("agent %d could not learn and tries again with its next training", agent, exc_info=error)
    return in_one_line(error)
