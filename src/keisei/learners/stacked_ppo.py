"""The updates of equal PPO agents, as one computation. Every agent shuffles its own rollout into minibatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from keisei.experience.rollout import Minibatch, RolloutView
from keisei.games.contract import Array, BoolArray, Game, IntArray
from keisei.learners.agent_units import failure_of
from keisei.learners.ppo import PPO, Losses
from keisei.learners.stacked_unit import StackedUnit, empty_rows, stacked_gradients
from keisei.machine.torch_threads import single_threaded
from keisei.policies.gather_network import every_action
from keisei.policies.networks import ActorCritic

__all__ = ["StackedPPO"]


class StackedPPO(StackedUnit[PPO]):
    """Trains PPO agents with equal networks and settings at once."""

    def __init__(
        self, agents: Sequence[int], learners: Sequence[PPO], network: ActorCritic, game: Game
    ) -> None:
        self._config = learners[0].config
        self._joint = _JointPPO(network, game, self._config)  # steps are those of ``StackedAdam``
        super().__init__(agents, learners, network, game)

    def _learn_at_once(
        self,
        views: Mapping[int, RolloutView],
        progress: float,
        made: Mapping[int, list[Losses]],
        failures: dict[int, str],
    ) -> Mapping[int, Mapping[str, float]]:
        """Learns for some epochs of minibatches. An agent whose policy moves too far ends earlier than others."""
        going_on = [agent for agent in self.agents if len(views[agent])]
        for epoch in range(self._config.epochs):
            before = {agent: len(made[agent]) for agent in going_on}
            shuffled = {agent: self._learner(agent).minibatches(views[agent], epoch) for agent in going_on}
            while batches := self._next(shuffled, failures):
                self._step(batches, progress, made, failures)
            going_on = [
                agent
                for agent in going_on
                if agent not in failures
                and not self._learner(agent).has_moved_too_far(made[agent][before[agent] :])
            ]
        return {agent: self._end(agent, made[agent], views[agent], progress) for agent in self.agents}

    def _end(
        self, agent: int, steps: Sequence[Losses], view: RolloutView, progress: float
    ) -> Mapping[str, float]:
        if not steps:
            return {}
        self._learner(agent).updates += 1
        return self._learner(agent).report(steps, view.merged(), progress).owners[0]

    def _next(
        self, shuffled: Mapping[int, Iterator[Minibatch]], failures: dict[int, str]
    ) -> dict[int, Minibatch]:
        """Gets the next minibatch of each agent that has one."""
        batches = {}
        for agent, minibatches in shuffled.items():
            try:
                if agent not in failures and (batch := next(minibatches, None)) is not None:
                    batches[agent] = batch
            except Exception as error:
                failures[agent] = failure_of(agent, error)
        return batches

    def _step(
        self,
        batches: Mapping[int, Minibatch],
        progress: float,
        made: Mapping[int, list[Losses]],
        failures: dict[int, str],
    ) -> None:
        """Makes one gradient step of all agents that have a minibatch."""
        config, weight = self._config, self._config.entropy_weight_at(progress)
        with single_threaded():
            losses, gradients = self._joint.gradients([batches.get(agent) for agent in self.agents], weight)
            totals = losses.total(config, weight)
            moving = []
            for place, agent in enumerate(self.agents):
                total = float(totals[place])
                if agent in batches and self._is_finite(agent, total, batches[agent], failures):
                    moving.append(place)
            self._adam.step(gradients, moving, config.learning_rate_at(progress), config.max_grad_norm)
            for place in moving:
                made[self.agents[place]].append(losses.of(place))


class _JointPPO(PPO):
    """PPO on a stacked network. A minibatch has the rows of all agents, one agent after the other."""

    def gradients(
        self, batches: Sequence[Minibatch | None], entropy_weight: float
    ) -> tuple[Losses, Sequence[Tensor]]:
        """Computes the losses of all agents, [agents] each, and their gradients, [agents, …] each. Minibatches are
        filled up to one size with rows that do not count."""
        size = self.config.minibatch_size
        whole = _joined([_filled(batch, self._nothing) for batch in batches])
        counts = [0 if batch is None else len(batch) for batch in batches]
        shares = np.zeros((len(batches), size), np.float32)
        for share, count in zip(shares, counts, strict=True):
            share[:count] = 1 / max(1, count)
        counted = torch.from_numpy(shares).to(self._device)
        weights = torch.from_numpy(shares * whole.weights.reshape(shares.shape)).to(self._device)
        rows = self.row_losses(whole)
        losses = replace(
            rows.reduced(lambda losses: (losses.view(counted.shape) * counted).sum(1)),
            value=(rows.value.view(weights.shape) * weights).sum(1),
        )
        total = losses.total(self.config, entropy_weight).sum()
        gradients = stacked_gradients(total, self._parameters)
        return losses.detached(), gradients

    @cached_property
    def _nothing(self) -> Minibatch:
        size = self.config.minibatch_size
        packed, actions = empty_rows(self._game, size)
        zeros = np.zeros(size, np.float32)
        return Minibatch(packed, actions, zeros, zeros, zeros, zeros)

    def _listed(self, legal: BoolArray) -> IntArray:
        return every_action(legal)


def _filled(batch: Minibatch | None, nothing: Minibatch) -> Minibatch:
    if batch is None:
        return nothing
    if len(batch) == len(nothing):
        return batch
    columns: list[Array] = [
        np.concatenate([getattr(batch, name), getattr(nothing, name)[len(batch) :]])
        for name in Minibatch.__slots__
    ]
    return Minibatch(*columns)


def _joined(batches: Sequence[Minibatch]) -> Minibatch:
    columns: list[Array] = [
        np.concatenate([getattr(batch, name) for batch in batches]) for name in Minibatch.__slots__
    ]
    return Minibatch(*columns)
