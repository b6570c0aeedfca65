"""The gradient steps of equal DQN agents, as one computation. Every agent draws its own sample from its own memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.games.contract import BoolArray, FloatArray, Game, IntArray
from keisei.learners.agent_units import failure_of
from keisei.learners.dqn import DQN, GradientStep
from keisei.learners.stacked_unit import StackedUnit, empty_rows, stacked_gradients
from keisei.machine.torch_threads import single_threaded
from keisei.policies.gather_network import every_action
from keisei.policies.q_network import QNetwork
from keisei.policies.sampling import as_tensor
from keisei.policies.stacked_network import share_memory

__all__ = ["StackedDQN"]


class StackedDQN(StackedUnit[DQN]):
    """Trains DQN agents with equal networks and settings at once."""

    def __init__(self, agents: Sequence[int], learners: Sequence[DQN], network: QNetwork, game: Game) -> None:
        self._config = learners[0].config
        self._joint = _JointDQN(network, game, self._config)  # steps are those of ``StackedAdam``
        super().__init__(agents, learners, network, game)
        share_memory(self._joint.target, [learner.target for learner in learners])

    def _learn_at_once(
        self,
        views: Mapping[int, ReplayView],
        progress: float,
        made: Mapping[int, list[GradientStep]],
        failures: dict[int, str],
    ) -> Mapping[int, Mapping[str, float]]:
        """Makes the gradient steps that are due to each agent."""
        due = {agent: views[agent].steps() for agent in self.agents}
        for number in range(max(due.values())):
            acting = [agent for agent in self.agents if number < due[agent] and agent not in failures]
            samples = self._draw(acting, views, progress, failures)
            if samples:
                self._step(samples, progress, made, failures)
                self._update_priorities(samples, views, made, failures)
        return {agent: self._learner(agent).report(made[agent], progress).owners[0] for agent in self.agents}

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
            try:
                samples[agent] = self._learner(agent).draw(views[agent], progress)
            except Exception as error:
                failures[agent] = failure_of(agent, error)
        return samples

    def _step(
        self,
        samples: Mapping[int, ReplaySample],
        progress: float,
        made: Mapping[int, list[GradientStep]],
        failures: dict[int, str],
    ) -> None:
        """Makes one gradient step of all agents that have a sample."""
        with single_threaded():
            found = self._joint.gradients([samples.get(agent) for agent in self.agents])
            moving = []
            for place, agent in enumerate(self.agents):
                loss = float(found.losses[place])
                if agent in samples and self._is_finite(agent, loss, samples[agent], failures):
                    moving.append(place)
            rate = self._config.learning_rate_at(progress)
            self._adam.step(found.gradients, moving, rate, self._config.max_grad_norm)
            for place in moving:
                step = GradientStep(
                    float(found.losses[place]), float(found.q_means[place]), found.errors[place]
                )
                made[self.agents[place]].append(step)
                self.learners[place].steps += 1
            interval = self._config.target_interval
            self._joint.follow([place for place in moving if self.learners[place].steps % interval == 0])

    def _update_priorities(
        self,
        samples: Mapping[int, ReplaySample],
        views: Mapping[int, ReplayView],
        made: Mapping[int, list[GradientStep]],
        failures: dict[int, str],
    ) -> None:
        for agent, sample in samples.items():
            if agent in failures:
                continue
            try:
                views[agent].update_priorities(sample, made[agent][-1].errors)
            except Exception as error:
                failures[agent] = failure_of(agent, error)


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
        """Computes the losses of all agents and their gradients. An agent without a sample gets empty rows."""
        whole = _joined([sample or self._nothing for sample in samples])
        predicted, targets = self.predicted(whole), self.targets(whole)
        weights = as_tensor(whole.weights).to(self._device)
        by_agent = (len(samples), -1)
        losses = (weights * self._losses(predicted, targets)).view(by_agent).mean(1)
        gradients = stacked_gradients(losses.sum(), self._parameters)
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
        if places:
            for old, new in zip(self.target.parameters(), self.network.parameters(), strict=True):
                for place in places:  # one by one: the bits of an agent do not depend on who follows with it
                    old[place].lerp_(new[place], self.config.tau)

    @cached_property
    def _nothing(self) -> ReplaySample:
        size = self.config.minibatch_size
        packed, actions = empty_rows(self._game, size)
        zeros = np.zeros(size, np.float32)
        return ReplaySample(packed, actions, zeros, packed, zeros, zeros, actions, actions)

    def _listed(self, legal: BoolArray) -> IntArray:
        return every_action(legal)


def _joined(samples: Sequence[ReplaySample]) -> ReplaySample:
    columns = (
        np.concatenate([getattr(sample, name) for sample in samples]) for name in ReplaySample.__slots__
    )
    return ReplaySample(*columns)
