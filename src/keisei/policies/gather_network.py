"""A network for processors: it skips inputs of 0 and actions whose logits are not needed.

Of Shogi's 4374 inputs some 150 are not 0, and of its 2187 actions some 50 are legal. So the first layer adds up the
weight rows of the inputs that are not 0 (as NNUE does). The last layer of the policy uses only the weight rows of
these actions. Both, and their gradients, are sparse matrix products in the native core.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import once_differentiable

from keisei.errors import PolicyError
from keisei.games.contract import BoolArray, FloatArray, GameSpec, IntArray, ObservationSpec
from keisei.native import core
from keisei.policies.layers import initialise, linear
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, chosen_logits
from keisei.policies.sampling import legal_counts

__all__ = ["GatherNet", "every_action", "legal_actions"]


class GatherNet(ActorCritic):
    """The layers of an MLP. A plane that has one value on all squares (``ObservationSpec.flat``) is one input."""

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        width = config.hidden_dim
        self.first = _GatheredLinear(spec.observation, width)
        layers: list[nn.Module] = [nn.ReLU(inplace=True)]
        for _ in range(config.num_layers - 1):
            layers += [linear(width, width), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers)
        self.policy = linear(width, spec.num_actions)
        self.value = linear(width, 1)

    def forward(self, observations: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        features = self.body(self.first(observations))
        values = self.value(features).squeeze(-1)
        if actions is None:
            return self.policy(features), values
        if not _is_native(features):
            return chosen_logits(self.policy(features), actions), values
        logits: Tensor = _Score.apply(features, self.policy.weight, self.policy.bias, actions)  # type: ignore[no-untyped-call]
        return logits, values

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)
        self.first.initialise(generator)


def legal_actions(legal: BoolArray) -> IntArray:
    """[n, k]: the legal actions of each row in order. k is the most that a row has; shorter rows end with -1."""
    actions: IntArray = np.empty((len(legal), int(legal_counts(legal).max(initial=0))), np.int32)
    core.list_actions(np.ascontiguousarray(legal), actions)
    return actions


def every_action(legal: BoolArray) -> IntArray:
    """[n, num_actions]: every action that is legal, and -1 for the others. A list as long as the most legal actions
    of any row would let rows change each other's rounding."""
    return np.where(legal, np.arange(legal.shape[1], dtype=np.int32), np.int32(-1))


class _GatheredLinear(nn.Module):
    """A linear layer over observations, with a row of weights for each input."""

    places: Tensor
    factors: Tensor

    def __init__(self, observation: ObservationSpec, width: int) -> None:
        super().__init__()
        self._shape = observation.shape
        places, factors = _inputs(observation)
        # They come from the game, so they are not weights.
        self.register_buffer("places", torch.from_numpy(places), persistent=False)
        self.register_buffer("factors", torch.from_numpy(factors), persistent=False)
        self.weight = nn.Parameter(torch.empty(len(places), width))
        self.bias = nn.Parameter(torch.empty(width))

    def initialise(self, generator: Generator) -> None:
        with torch.no_grad():
            self.weight.normal_(0.0, sqrt(2 / len(self.weight)), generator=generator)
            self.bias.zero_()

    def forward(self, observations: Tensor) -> Tensor:
        if observations.shape[1:] != self._shape:
            raise PolicyError(
                f"the network was made for observations of shape {self._shape}, got {tuple(observations.shape[1:])}"
            )
        if not _is_native(self.weight):
            inputs = observations.flatten(1)[:, self.places].to(self.weight.dtype) * self.factors
            return inputs @ self.weight + self.bias
        rows = core.SparseRows.gather(_numbers(observations), self.places.numpy(), self.factors.numpy())
        sums: Tensor = _SparseProduct.apply(rows, self.weight)  # type: ignore[no-untyped-call]
        return sums + self.bias


def _inputs(observation: ObservationSpec) -> tuple[IntArray, FloatArray]:
    """Finds the place of each input in the flat observation, and its scale factor."""
    planes = observation.shape[0]
    squares = observation.size // planes
    places = np.arange(observation.size, dtype=np.int32).reshape(planes, squares)
    factors = np.ones((planes, squares), np.float32)
    if observation.scale:
        factors *= np.array(observation.scale, np.float32)[:, None]
    read = np.ones((planes, squares), np.bool_)
    read[list(observation.flat), 1:] = False
    return places[read], factors[read]


def _is_native(tensor: Tensor) -> bool:
    """Checks if the native core computes this. Graphics cards, other precisions and exports use dense products."""
    exporting = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and not exporting


def _numbers(observations: Tensor) -> Any:
    """Makes an array of bytes or floats, without a copy if possible."""
    if observations.dtype == torch.bool:
        observations = observations.view(torch.uint8)
    elif observations.dtype != torch.uint8:
        observations = observations.to(torch.float32)
    return _array(observations)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


class _SparseProduct(torch.autograd.Function):
    """Sparse rows [n, inputs] times weights [inputs, width]. The rows get no gradient."""

    @staticmethod
    def forward(ctx: Any, rows: core.SparseRows, weight: Tensor) -> Tensor:
        ctx.rows = rows
        return _product(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, _product(ctx.rows.transposed(), gradient)


class _Score(torch.autograd.Function):
    """Logits [n, k] of the actions [n, k], from features [n, width]."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, actions: Tensor) -> Tensor:
        actions = actions.to(torch.int32)
        ctx.save_for_backward(features, weight, actions)
        logits = features.new_empty(actions.shape)
        numbers = (_array(features), _array(weight), _array(bias))
        core.score(*numbers, _array(actions), logits.numpy(), torch.get_num_threads())
        return logits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        features, weight, actions = ctx.saved_tensors
        rows = core.SparseRows(_array(actions), _array(gradient), len(weight))
        columns = rows.transposed()
        of_bias = _product(columns, features.new_ones(len(features), 1)).squeeze(1)
        return _product(rows, weight), _product(columns, features), of_bias, None


def _product(rows: core.SparseRows, dense: Tensor) -> Tensor:
    out = dense.new_empty(rows.shape[0], dense.shape[1])
    rows.times(_array(dense), out.numpy(), torch.get_num_threads())
    return out
