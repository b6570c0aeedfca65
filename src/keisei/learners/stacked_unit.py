"""Agents that are trained in one computation.

Each agent brings its own rows, and a stacked network (``policies.stacked_network``) computes each row with the weights
of its agent. The loss is the sum of all agents' losses, so the gradient of an agent is that of its own loss. It is
scaled by its own norm, and Adam moves each weight by itself. So a stacked step is what the agents would do one after
the other, up to the rounding of sums. No bit of an agent depends on another: if one fails, its rows are filled with an
empty game, so that no shape changes, and its weights stay as they are.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from keisei.errors import in_one_line
from keisei.games.contract import ByteArray, Game, IntArray
from keisei.learners.agent_units import Alone, Outcome, failure_of
from keisei.learners.dqn import DQN
from keisei.learners.ppo import PPO
from keisei.learners.stacked_adam import StackedAdam
from keisei.policies.networks import ActorCritic
from keisei.policies.stacked_network import share_memory

__all__ = ["StackedUnit", "empty_rows", "stacked_gradients"]

logger = logging.getLogger(__name__)
OneLearner = TypeVar("OneLearner", DQN, PPO)


class StackedUnit(ABC, Generic[OneLearner]):
    """Trains agents with equal networks and settings at once.

    The learners of the agents stay whole: their weights and the moments of their optimisers lie in the memory of the
    stack, so each of them may go on alone.
    """

    def __init__(
        self, agents: Sequence[int], learners: Sequence[OneLearner], network: ActorCritic, game: Game
    ) -> None:
        """``network`` is a stacked network with a member for each learner. It takes over the weights of the
        learners."""
        self.agents = tuple(agents)
        self.learners: tuple[OneLearner, ...] = tuple(learners)
        self.network = network
        self._game = game
        weights = share_memory(network, [learner.network for learner in learners])
        self._is_told = False
        self._adam = StackedAdam(weights, [learner.optimizer for learner in learners])

    def learn(self, views: Mapping[int, Any], progress: float) -> dict[int, Outcome]:
        """Trains each agent on its own view."""
        self._adam.gather()
        made: dict[int, list[Any]] = {agent: [] for agent in self.agents}
        failures: dict[int, str] = {}
        try:
            numbers = self._learn_at_once(views, progress, made, failures)
        except Exception as error:  # it is unknown which agent failed: each of them goes on alone
            self._tell(error)
            self._adam.scatter()
            outcomes: dict[int, Outcome] = dict(failures)
            for agent in [agent for agent in self.agents if agent not in failures]:
                outcomes |= Alone(agent, self._learner(agent)).learn(views, progress, made[agent])
            return outcomes
        self._adam.scatter()
        return {agent: failures.get(agent) or numbers[agent] for agent in self.agents}

    def rebind(self) -> None:
        """Takes over the optimisers again after their states were restored."""
        self._adam.bind()

    @abstractmethod
    def _learn_at_once(
        self,
        views: Mapping[int, Any],
        progress: float,
        made: Mapping[int, list[Any]],
        failures: dict[int, str],
    ) -> Mapping[int, Mapping[str, float]]:
        """Trains all agents, notes the steps that each has made and the agents that fail, and returns the numbers of
        each."""

    def _tell(self, error: Exception) -> None:
        """Logs the first failure as a warning, since agents that learn one by one take longer."""
        level = logging.INFO if self._is_told else logging.WARNING
        self._is_told = True
        logger.log(
            level,
            "agents %s cannot learn at once, so each learns alone, which takes longer: %s",
            ", ".join(map(str, self.agents)),
            in_one_line(error),
            exc_info=error if level == logging.INFO else None,
        )

    def _learner(self, agent: int) -> OneLearner:
        return self.learners[self.agents.index(agent)]

    def _is_finite(self, agent: int, loss: float, rows: Any, failures: dict[int, str]) -> bool:
        """Checks if the loss of an agent is finite. If not, notes why, as the agent's learner says."""
        try:
            self._learner(agent).demand_finite(loss, rows)
        except Exception as error:
            failures[agent] = failure_of(agent, error)
        return agent not in failures


def empty_rows(game: Game, count: int) -> tuple[ByteArray, IntArray]:
    """Makes rows that pad a batch: copies of a game's first position with one legal action. They change no weights."""
    packed: ByteArray = game.pack()[:1].repeat(count, axis=0)
    return packed, np.full(count, np.flatnonzero(game.legal()[0])[0], np.int32)


def stacked_gradients(loss: Tensor, weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """Computes the gradients of the agents' losses: 0 for weights that take no part, as the value of a network that
    plays by its logits."""
    return torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
