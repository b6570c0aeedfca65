"""Networks with two heads: what to play, and what a position is worth.

``build_network`` makes one from settings and a game. A network of your own is named as ``module:Class``; it is an
``ActorCritic``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor, nn

from keisei.config import parse_settings
from keisei.games.contract import GameSpec, ObservationSpec
from keisei.policies.layers import conv, excitation, initialise, last_layer, linear, norm
from keisei.policies.model_config import BUILT_IN, ModelConfig, acts_on_planes, check_board, check_model

__all__ = ["MLP", "ActorCritic", "ModelConfig", "ResidualNet", "build_network"]


class ActorCritic(nn.Module):
    """Observations [n, *shape] in the game's own type in; logits [n, actions] and values [n] out.

    With ``actions`` [n, k], it gives only their logits, [n, k], since few actions are legal. A negative number
    stands for no action, and its logit has no meaning.

    A subclass computes both from float32 in ``heads``. This class scales the observations before, by the factors of
    the game's spec. The constructor of a subclass takes the settings and the game's spec, and begins with the call of
    this one::

        def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
            super().__init__(spec.observation)
    """

    meaning: ClassVar[Literal["policy", "q"]] = "policy"
    """What the outputs are: the logits of a policy and the value of the position, or the values of actions and the
    highest of them."""
    scale: Tensor | None

    def __init__(self, observation: ObservationSpec) -> None:
        super().__init__()
        factors = torch.tensor(observation.scale, dtype=torch.float32)
        if len(factors) == 0 or bool((factors == 1).all()):
            scale = None
        else:
            scale = factors.reshape(-1, *(1 for _ in observation.shape[1:]))
        # It comes from the game, so it is not a weight, and neither checkpoints nor workers need it.
        self.register_buffer("scale", scale, persistent=False)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Float32 [n, *shape] in; logits [n, actions] and values [n] out."""
        raise NotImplementedError(f"{type(self).__name__} must define heads(inputs) -> (logits, values)")

    def initialise(self, generator: Generator) -> None:
        """Sets the initial weights. A network whose constructor does this need not override it."""

    def forward(self, observations: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        inputs = observations.to(torch.float32)
        logits, values = self.heads(inputs if self.scale is None else inputs * self.scale)
        return logits if actions is None else chosen_logits(logits, actions), values


def chosen_logits(logits: Tensor, actions: Tensor) -> Tensor:
    """[n, k]: the logits of the actions [n, k]. Those of negative actions have no meaning."""
    return logits.gather(1, actions.clamp(min=0).long())


class MLP(ActorCritic):
    """Fully connected layers over the flattened observation, for games of every shape."""

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        layers: list[nn.Module] = [nn.Flatten()]
        width = spec.observation.size
        for _ in range(config.num_layers):
            layers += [linear(width, config.hidden_dim), nn.ReLU(inplace=True)]
            width = config.hidden_dim
        self.body = nn.Sequential(*layers)
        self.policy = linear(width, spec.num_actions)
        self.value = linear(width, 1)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(inputs)
        return self.policy(features), self.value(features).squeeze(-1)

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)


class ResidualNet(ActorCritic):
    """A tower of residual blocks (He and others, 2016) over planes [n, planes, height, width].

    It uses group normalisation, not batch normalisation. So a position gets the same output with any other
    positions beside it, in learning and in playing. The ratios of PPO compare these outputs.
    """

    _VALUE_PLANES, _VALUE_WIDTH = 8, 128

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)
        check_board("residual", spec)
        planes, height, width = spec.observation.shape
        squares, channels = height * width, config.channels
        self.stem = nn.Sequential(conv(planes, channels, 3), norm(channels), nn.ReLU(inplace=True))
        self.tower = nn.Sequential(
            *(_ResidualBlock(channels, config.squeeze_excitation) for _ in range(config.blocks))
        )
        self.policy = policy_head(config, spec, channels)
        self.value = nn.Sequential(
            conv(channels, self._VALUE_PLANES, 1),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            linear(self._VALUE_PLANES * squares, self._VALUE_WIDTH),
            nn.ReLU(inplace=True),
            linear(self._VALUE_WIDTH, 1),
        )

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        # With this memory format a CPU takes a sixth less time (measured with 4 blocks of 64).
        features = self.tower(self.stem(inputs.contiguous(memory_format=torch.channels_last)))
        return self.policy(features), self.value(features).squeeze(-1)

    def initialise(self, generator: Generator) -> None:
        initialise(self, generator, self.policy, self.value)


def policy_head(config: ModelConfig, spec: GameSpec, channels: int) -> nn.Sequential:
    """Makes the layers from features [n, channels, height, width] to logits [n, actions]."""
    squares = spec.observation.size // spec.observation.shape[0]
    if acts_on_planes(config, spec):
        # Flattened, the planes have the order of the actions: [kind, file, rank].
        return nn.Sequential(conv(channels, spec.num_actions // squares, 1), nn.Flatten())
    return nn.Sequential(nn.Flatten(), linear(channels * squares, spec.num_actions))


class _ResidualBlock(nn.Module):
    def __init__(self, channels: int, squeeze_excitation: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(channels, channels, 3),
            norm(channels),
            nn.ReLU(inplace=True),
            conv(channels, channels, 3),
            norm(channels),
        )
        self.excitation = excitation(channels) if squeeze_excitation else None

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.body(inputs)
        if self.excitation is not None:
            weights = self.excitation(outputs.mean(dim=(2, 3)))
            outputs = outputs * weights[:, :, None, None]
        return torch.relu(outputs + inputs)


def build_network(config: ModelConfig | Mapping[str, Any], spec: GameSpec, seed: int | None) -> ActorCritic:
    """Builds the network of the settings for a game. The same seed gives the same weights, and the global random
    state of torch does not change. Without a seed the weights are not set: a worker reads its weights later, and
    starts in a tenth of the time."""
    if not isinstance(config, ModelConfig):
        config = parse_settings(ModelConfig, config, "model_config")
    config = config.resolved(spec)
    check_model(config, spec)
    if config.outputs == "policy":
        return _build(config, spec, seed)
    q_network = import_module("keisei.policies.q_network")
    body = _build(*widened(config, spec), seed)
    if config.network in BUILT_IN and seed is not None:
        _begin_near_zero(body)
    network: ActorCritic = q_network.QNetwork(body, config, spec)
    return network


def widened(config: ModelConfig, spec: GameSpec) -> tuple[ModelConfig, GameSpec]:
    """Makes the settings and spec of the network in a Q network. It has an output for each quantile of each action, in
    the order [quantile, action]."""
    head = "planes" if len(spec.observation.shape) == 3 and acts_on_planes(config, spec) else "linear"
    return (
        config.model_copy(update={"outputs": "policy", "policy_head": head}),
        replace(spec, num_actions=config.quantiles * spec.num_actions),
    )


@torch.no_grad()
def _begin_near_zero(body: ActorCritic) -> None:
    """Makes the values of a new Q network small, as its advantages are. It learns from its own values, and large
    random ones take long to unlearn."""
    assert isinstance(body.value, nn.Module)
    last_layer(body.value).weight.mul_(0.01)


def _build(config: ModelConfig, spec: GameSpec, seed: int | None) -> ActorCritic:
    if config.network in BUILT_IN:
        network = _network_class(BUILT_IN[config.network])(config, spec)  # type: ignore[call-arg, arg-type]
        if seed is not None:
            network.initialise(torch.Generator().manual_seed(seed))
        return network
    from keisei.policies.own_network import build_own_network

    return build_own_network(config, spec, seed or 0)


def _network_class(path: str) -> type[ActorCritic]:
    module_name, _, name = path.partition(":")
    found: type[ActorCritic] = getattr(import_module(module_name), name)
    return found
