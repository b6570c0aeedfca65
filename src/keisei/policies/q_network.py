"""A network whose outputs are the values of actions: Q(s, a).

It uses the two heads of any ``ActorCritic``. In a dueling network (Wang and others, 2016) they are the value of the
position and the advantages of actions:

    Q(s, a) = V(s) + A(s, a) - mean of A(s, ·) over the legal actions

With quantiles (Dabney and others, 2018), each action has several outputs. Q is their mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from keisei.errors import ConfigError
from keisei.games.contract import GameSpec
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network

__all__ = ["QNetwork", "best_actions", "build_q_network"]


class QNetwork(ActorCritic):
    """Computes the values of actions [n, k] in place of logits. The value of a position is the highest of them.

    A dueling network needs the legal actions as ``actions``. Without them, it takes all actions for legal.
    """

    meaning: ClassVar[Literal["policy", "q"]] = "q"

    def __init__(self, body: ActorCritic, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(replace(spec.observation, scale=()))  # the body scales observations
        self.body = body
        self.quantiles = config.quantiles
        self._dueling = config.outputs == "dueling"
        self._num_actions = spec.num_actions

    def forward(
        self, observations: Tensor, actions: Tensor | None = None, all_quantiles: bool = False
    ) -> tuple[Tensor, Tensor]:
        """With ``all_quantiles``, the values of actions are not averaged: [n, quantiles, k]."""
        listed = None if actions is None else self._outputs_of(actions)
        outputs, values = self.body(observations, listed)
        spread = outputs.unflatten(1, (self.quantiles, -1))
        legal = torch.ones_like(spread[:, 0], dtype=torch.bool) if actions is None else actions >= 0
        if self._dueling:
            spread = spread + (values - _mean(spread, legal))[:, None, None]
        means = spread.mean(1)
        return spread if all_quantiles else means, _highest(means, legal)[0]

    def _outputs_of(self, actions: Tensor) -> Tensor:
        """[n, quantiles · k]: the outputs of the body that belong to the actions [n, k]."""
        if self.quantiles == 1:
            return actions
        first = self._num_actions * torch.arange(self.quantiles, dtype=actions.dtype, device=actions.device)
        places = actions[:, None] + first[:, None]
        return torch.where(actions[:, None] < 0, -1, places).flatten(1)


def best_actions(means: Tensor, actions: Tensor) -> Tensor:
    """[n, 1]: the place of the best action in each row of ``actions`` [n, k]. Negative actions never win."""
    return _highest(means, actions >= 0)[1][:, None]


def _highest(means: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
    highest = means.masked_fill(~legal, -torch.inf).max(1)
    return highest.values, highest.indices


def _mean(spread: Tensor, legal: Tensor) -> Tensor:
    """[n]: the mean over the legal actions and all quantiles. Outputs of other actions may be any number, NaN
    included."""
    total = spread.masked_fill(~legal[:, None], 0).sum((1, 2))
    return total / (spread.shape[1] * legal.sum(1))


def build_q_network(config: ModelConfig, spec: GameSpec, seed: int | None) -> QNetwork:
    """Builds a network that gives the values of actions, as DQN needs it."""
    network = build_network(config, spec, seed)
    if not isinstance(network, QNetwork):
        raise ConfigError(
            f"model.outputs = {config.outputs}: DQN learns the values of actions; take dueling or q"
        )
    return network
