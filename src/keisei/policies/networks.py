"""Networks with two heads: what to play, and what a position is worth.

``build_network`` makes one from settings and a game. A network of your own is named as ``module:Class``. It is an
``ActorCritic`` whose constructor takes the settings and the game's spec.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Generator, Tensor, nn

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games.contract import GameSpec, ObservationSpec
from keisei.policies.layers import conv, excitation, initialise, linear, norm
from keisei.policies.model_config import (
    BUILT_IN,
    ModelConfig,
    acts_on_planes,
    check_board,
    check_model,
    unknown_network,
)

__all__ = ["MLP", "ActorCritic", "ModelConfig", "ResidualNet", "build_network"]


class ActorCritic(nn.Module):
    """Observations [n, *shape] in the game's own type in; logits [n, actions] and values [n] out.

    With ``actions`` [n, k], it gives only their logits, [n, k], since few actions are legal. A negative number
    stands for no action, and its logit has no meaning.

    A subclass computes both from float32 in ``heads``. This class scales the observations before, by the factors of
    the game's spec.
    """

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
    if config.network in BUILT_IN:
        network = _network_class(BUILT_IN[config.network])(config, spec)  # type: ignore[call-arg, arg-type]
        if seed is not None:
            network.initialise(torch.Generator().manual_seed(seed))
        return network
    return _build_custom(config, spec, seed or 0)


_SEEDING = threading.Lock()


def _build_custom(config: ModelConfig, spec: GameSpec, seed: int) -> ActorCritic:
    """Builds a network of the user. Its constructor may use torch's global generator, which is seeded for it and
    restored. The lock separates networks that several threads build."""
    network_class = _network_class(config.network)
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = network_class(config, spec)  # type: ignore[call-arg, arg-type]  # as the contract says
        network.initialise(torch.Generator().manual_seed(seed))
    _check_outputs(network, config.network, spec)
    return network


def _network_class(path: str) -> type[ActorCritic]:
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise unknown_network(path)
    try:
        found = getattr(import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"network = {path!r}: no module {error.name!r}; install it or put its folder on PYTHONPATH"
        ) from error
    if not (isinstance(found, type) and issubclass(found, ActorCritic)):
        raise ConfigError(
            f"network = {path!r}: must name a class that extends keisei.policies.ActorCritic, found {found!r}"
        )
    return found


def _check_outputs(network: ActorCritic, path: str, spec: GameSpec) -> None:
    with torch.inference_mode():
        logits, values = network(torch.zeros(2, *spec.observation.shape))
    if logits.shape != (2, spec.num_actions) or values.shape != (2,):
        raise ConfigError(
            f"network = {path!r}: for 2 rows it must give logits of shape (2, {spec.num_actions}) and "
            f"values of shape (2,); it gives {tuple(logits.shape)} and {tuple(values.shape)}"
        )
