"""The gradient steps of equal DQN agents, as one computation.

Every agent draws its own sample from its own memory. The samples lie side by side in one batch, and a stacked network
(``policies.stacked_network``) meets each row with the weights of its agent. The loss is the sum of all agents' losses,
so the gradient of an agent is that of its own loss. It is scaled by its own norm, and Adam moves each weight by itself.
So a stacked step is what the agents would do one after the other, up to the rounding of sums. No bit of an agent
depends on another: if one fails, its rows are filled with an empty game, and its weights stay as they are.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from keisei.errors import LearningError
from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.games.contract import ByteArray, FloatArray, Game
from keisei.learners.agent_units import Alone, Outcome, failure_of, one_by_one
from keisei.learners.dqn import DQN, DQNConfig, Step
from keisei.learners.stacked_adam import StackedAdam
from keisei.machine.torch_threads import single_threaded
from keisei.policies.finite import blame_observations
from keisei.policies.q_network import QNetwork
from keisei.policies.sampling import as_tensor
from keisei.policies.stacked_network import share_memory

__all__ = ["StackedDQN"]

logger = logging.getLogger(__name__)


class StackedDQN:
    """Trains agents with equal networks and settings at once.

    The learners of the agents stay whole: their weights and those of their optimisers lie in the memory of the stack.
    """

    def __init__(self, agents: Sequence[int], learners: Sequence[DQN], network: QNetwork, game: Game) -> None:
        """``network`` is a stacked network of so many members. It takes over the weights of the learners."""
        self.agents = tuple(agents)
        self.learners = tuple(learners)
        self.network = network
        self._config: DQNConfig = learners[0].config
        self._joint = _JointDQN(
            network, game, self._config
        )  # it steps by ``StackedAdam`` and not by its own Adam
        weights = share_memory(network, [learner.network for learner in learners])
        share_memory(self._joint.target, [learner.target for learner in learners])
        self._adam = StackedAdam(weights, [learner.optimizer for learner in learners])
        self._game = game

    def learn(self, views: Mapping[int, ReplayView], progress: float) -> dict[int, Outcome]:
        """Makes the gradient steps that are due to each agent."""
        self._adam.gather()
        failures: dict[int, str] = {}
        steps: dict[int, list[Step]] = {agent: [] for agent in self.agents}
        due = {agent: views[agent].steps() for agent in self.agents}
        try:
            for number in range(max(due.values())):
                acting = [agent for agent in self.agents if number < due[agent] and agent not in failures]
                samples = self._draw(acting, views, progress, failures)
                self._step(samples, progress, steps, failures)
                self._update_priorities(samples, views, steps, failures)
        except Exception as error:  # nobody knows whose fault it is: each of them tries alone
            logger.info(
                "training of agents %s at once failed; they learn one by one", self.agents, exc_info=error
            )
            return self._alone(views, progress, failures)
        finally:
            self._adam.scatter()
        return {
            agent: failures.get(agent) or self._learner(agent).report(steps[agent], progress).owners[0]
            for agent in self.agents
        }

    def rebind(self) -> None:
        """Takes over the optimisers again after their states were restored."""
        self._adam.bind()

    def _learner(self, agent: int) -> DQN:
        return self.learners[self.agents.index(agent)]

    def _alone(
        self, views: Mapping[int, ReplayView], progress: float, failures: Mapping[int, str]
    ) -> dict[int, Outcome]:
        self._adam.scatter()
        left = [Alone(agent, self._learner(agent)) for agent in self.agents if agent not in failures]
        found = one_by_one(left, views, progress)
        return {**failures, **found}

    def _draw(
        self,
        acting: Sequence[int],
        views: Mapping[int, ReplayView],
        progress: float,
        failures: dict[int, str],
    ) -> dict[int, ReplaySample]:
        """Lets each agent draw its own sample."""
        samples = {}
        for agent in acting:
            learner = self._learner(agent)
            try:
                samples[agent] = learner.draw(views[agent], progress)
            except Exception as error:
                failures[agent] = failure_of(agent, error)
        return samples

    def _step(
        self,
        samples: Mapping[int, ReplaySample],
        progress: float,
        steps: Mapping[int, list[Step]],
        failures: dict[int, str],
    ) -> None:
        """Makes one gradient step of all agents that have a sample."""
        if not samples:
            return
        with single_threaded():
            found = self._joint.gradients([samples.get(agent) for agent in self.agents])
            moving = []
            for place, agent in enumerate(self.agents):
                if agent not in samples:
                    continue
                loss = float(found.losses[place])
                if math.isfinite(loss):
                    moving.append(place)
                    steps[agent].append(Step(loss, float(found.q_means[place]), found.errors[place]))
                else:
                    failures[agent] = self._blamed(agent, loss, samples[agent])
            self._adam.step(
                found.gradients, moving, self._config.learning_rate_at(progress), self._config.max_grad_norm
            )
            for place in moving:
                self.learners[place].steps += 1
            self._follow(moving)

    def _blamed(self, agent: int, loss: float, sample: ReplaySample) -> str:
        """Blames the game first: its observations."""
        try:
            blame_observations(self._game.spec, self._game.unpack(sample.packed)[0])
        except Exception as error:
            return failure_of(agent, error)
        learner = self._learner(agent)
        return failure_of(agent, LearningError(_DIVERGED.format(loss=loss, step=learner.steps)))

    def _follow(self, moving: Sequence[int]) -> None:
        """Moves the target networks of agents that have made enough steps."""
        interval = self._config.target_interval
        due = [place for place in moving if self.learners[place].steps % interval == 0]
        if due:
            self._joint.follow(due)

    def _update_priorities(
        self,
        samples: Mapping[int, ReplaySample],
        views: Mapping[int, ReplayView],
        steps: Mapping[int, list[Step]],
        failures: dict[int, str],
    ) -> None:
        for agent, sample in samples.items():
            if agent in failures:
                continue
            try:
                views[agent].update_priorities(sample, steps[agent][-1].errors)
            except Exception as error:
                failures[agent] = failure_of(agent, error)


_DIVERGED = (
    "the loss is {loss} in gradient step {step}: training has diverged. Go back to a checkpoint and lower the "
    "agent's learning rate"
)


@dataclass(frozen=True, slots=True)
class _Found:
    """What one gradient step found, for each agent."""

    losses: FloatArray
    q_means: FloatArray
    errors: FloatArray
    """[agents, n]"""
    gradients: Sequence[Tensor]
    """[agents, …] each"""


class _JointDQN(DQN):
    """DQN on a stacked network. A sample has the rows of all agents, one agent after the other."""

    def gradients(self, samples: Sequence[ReplaySample | None]) -> _Found:
        """Computes the losses of all agents and their gradients. An agent without a sample gets rows of an empty
        game, so that the shape never changes."""
        whole = _joined([sample or self._filler for sample in samples])
        predicted, targets = self.predicted(whole), self.targets(whole)
        weights = as_tensor(whole.weights).to(self._device)
        by_agent = (len(samples), -1)
        losses = (weights * self._losses(predicted, targets)).view(by_agent).mean(1)
        gradients = torch.autograd.grad(losses.sum(), self._parameters)
        q = predicted.detach().mean(1)
        return _Found(
            losses.detach().cpu().numpy(),
            q.view(by_agent).mean(1).cpu().numpy(),
            (targets.mean(1) - q).abs().view(by_agent).cpu().numpy(),
            gradients,
        )

    @torch.no_grad()
    def follow(self, places: Sequence[int]) -> None:
        """Moves the target networks at these places towards their networks."""
        for old, new in zip(self.target.parameters(), self.network.parameters(), strict=True):
            for (
                place
            ) in places:  # one by one, so that the bits of an agent do not depend on who follows with it
                old[place].lerp_(new[place], self.config.tau)

    @cached_property
    def _filler(self) -> ReplaySample:
        """A sample of the first position of a game, which teaches nothing."""
        size = self.config.minibatch_size
        packed, legal = self._game.pack()[:1].repeat(size, axis=0), self._game.legal()[0]
        nothing = np.zeros(size, np.float32)
        actions = np.full(size, np.flatnonzero(legal)[0], np.int32)
        return ReplaySample(packed, actions, nothing, packed, nothing, nothing, actions, actions)

    def _unpacked(self, packed: ByteArray) -> tuple[Tensor, Tensor]:
        """Lists all actions, legal or not. A list as long as the most legal actions of any agent would let agents
        change each other's rounding."""
        observations, legal = self._game.unpack(packed)
        listed = np.where(legal, np.arange(legal.shape[1], dtype=np.int32), np.int32(-1))
        return as_tensor(observations).to(self._device), as_tensor(listed).to(self._device)


def _joined(samples: Sequence[ReplaySample]) -> ReplaySample:
    columns = (
        np.concatenate([getattr(sample, name) for sample in samples]) for name in ReplaySample.__slots__
    )
    return ReplaySample(*columns)
