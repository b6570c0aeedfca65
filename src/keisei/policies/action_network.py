"""A network that looks at each action by itself, with weights that actions of one kind share.

In Ludo, moving the second token by a three is like moving the first token by a three from the same place. A network
with an output for each action would learn this once for each token. Here, all tokens learn together. The game's spec
says which inputs describe an action (``GameSpec.action_inputs``). Actions that are not asked for cost nothing.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Generator, Tensor, nn

from keisei.games.contract import ActionInputs, GameSpec
from keisei.policies.layers import initialise, linear
from keisei.policies.model_config import ModelConfig, action_width, check_action_inputs
from keisei.policies.networks import ActorCritic

__all__ = ["ActionNet"]


class ActionNet(ActorCritic):
    """Scores each action from its own inputs and a summary of the position.

    The summary is an MLP over all inputs that do not describe actions. Of things that are alike it sees the sum, so
    their order does not matter.
    """

    places: Tensor
    kinds: Tensor
    things: Tensor
    others: Tensor

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        inputs = check_action_inputs("actions", spec)
        self._register(inputs, spec.observation.size)
        width, narrow = config.hidden_dim, action_width(config)
        self.first = nn.Parameter(torch.empty(max(inputs.kinds) + 1, self.places.shape[1], narrow))
        layers: list[nn.Module] = []
        for number in range(config.num_layers):
            inward = width if number else len(self.others) + self.things.shape[1]
            layers += [linear(inward, width), nn.ReLU(inplace=True)]
        self.summary = nn.Sequential(*layers)
        self.told = linear(width, narrow)
        self.second = linear(narrow, narrow)
        self._outputs = spec.num_actions // len(inputs.kinds)
        """How many outputs an action has: several in a Q network with quantiles."""
        self.policy = linear(narrow, self._outputs)
        self.value = linear(width, 1)

    def _register(self, inputs: ActionInputs, size: int) -> None:
        """Keeps what comes from the game. It is not a weight."""
        tensors = {
            "places": torch.tensor(inputs.places),
            "kinds": torch.tensor(inputs.kinds),
            "things": torch.tensor(inputs.things),
            "others": torch.tensor(inputs.others(size)),
        }
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, observations: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        inputs = observations.to(torch.float32)
        flat = (inputs if self.scale is None else inputs * self.scale).flatten(1)
        summary = self.summary(torch.cat([flat[:, self.others], flat[:, self.things].sum(1)], 1))
        listed = torch.arange(len(self.kinds), device=flat.device).expand(len(flat), -1)
        if actions is not None:  # in the order [output, action], so the first block names the actions
            listed = actions.reshape(len(flat), self._outputs, -1)[:, 0].long()
        row, column = (listed >= 0).nonzero(as_tuple=True)
        scores = self._scores(flat, summary, row, listed[row, column])
        placed = scores.new_zeros(*listed.shape, self._outputs).index_put((row, column), scores)
        return placed.transpose(1, 2).flatten(1), self.value(summary).squeeze(-1)

    def _scores(self, flat: Tensor, summary: Tensor, row: Tensor, action: Tensor) -> Tensor:
        """[m, outputs]: the scores of m actions, each in its row."""
        inputs, kinds = flat[row[:, None], self.places[action]], self.kinds[action]
        seen = self.told(summary)[row]
        for kind, weight in enumerate(self.first):
            of_kind = (kinds == kind).nonzero().squeeze(1)
            seen = seen.index_add(0, of_kind, inputs[of_kind] @ weight)
        features = seen.relu()
        scores: Tensor = self.policy(features + self.second(features).relu())
        return scores

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)
        with torch.no_grad():
            self.first.normal_(0.0, sqrt(2 / self.first.shape[1]), generator=generator)
