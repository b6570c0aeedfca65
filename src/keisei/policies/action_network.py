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
from keisei.policies.networks import ActorCritic, chosen_logits

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
        alike = flat.index_select(1, self.things.flatten()).reshape(-1, *self.things.shape).sum(1)
        summary = self.summary(torch.cat([flat.index_select(1, self.others), alike], 1))
        values = self.value(summary).squeeze(-1)
        if actions is None:
            return self._all_scores(flat, summary), values
        if torch.onnx.is_in_onnx_export():  # ONNX has no lists of different lengths
            return chosen_logits(self._all_scores(flat, summary), actions), values
        return self._listed_scores(flat, summary, actions), values

    def _all_scores(self, flat: Tensor, summary: Tensor) -> Tensor:
        """[n, outputs · actions]: the scores of all actions."""
        inputs = flat.index_select(1, self.places.flatten()).reshape(-1, *self.places.shape)
        products = torch.einsum("nai,aio->nao", inputs, self.first[self.kinds])
        return self._scores(self.told(summary)[:, None] + products).transpose(1, 2).flatten(1)

    def _listed_scores(self, flat: Tensor, summary: Tensor, actions: Tensor) -> Tensor:
        """[n, outputs · k]: the scores of these actions. Those of negative actions have no meaning."""
        # In the order [output, action], so the first block names the actions.
        listed = actions.reshape(len(flat), self._outputs, -1)[:, 0].long()
        row, column, action = self._by_kind(listed)
        # Numbers of places in the whole batch: `take` needs half the time of an index for each axis.
        places = torch.add(self.places.index_select(0, action), row[:, None], alpha=flat.shape[1])
        counts = self.kinds[action].bincount(minlength=len(self.first)).tolist()
        of_kinds = torch.split(flat.take(places), counts)
        products = [inputs @ weight for inputs, weight in zip(of_kinds, self.first, strict=True)]
        scores = self._scores(self.told(summary).index_select(0, row) + torch.cat(products))
        placed = scores.new_zeros(*listed.shape, self._outputs).index_put((row, column), scores)
        return placed.transpose(1, 2).flatten(1)

    def _by_kind(self, listed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[m] each: row, column and number of all listed actions, those of one kind together."""
        row, column = (listed >= 0).nonzero(as_tuple=True)
        action = listed[row, column]
        order = self.kinds[action].argsort(stable=True)
        return row[order], column[order], action[order]

    def _scores(self, seen: Tensor) -> Tensor:
        """[…, outputs]: the scores of actions from what each of them sees, […, narrow]."""
        features = seen.relu()
        scores: Tensor = self.policy(features + self.second(features).relu())
        return scores

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)
        with torch.no_grad():
            self.first.normal_(0.0, sqrt(2 / self.first.shape[1]), generator=generator)
