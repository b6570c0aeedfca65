"""The settings of networks. They import no torch, so a wrong setting is refused at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from keisei.config import Settings
from keisei.errors import ConfigError
from keisei.games.contract import ActionInputs, GameSpec

__all__ = [
    "BUILT_IN",
    "ModelConfig",
    "action_width",
    "acts_on_planes",
    "check_action_inputs",
    "check_board",
    "check_model",
    "least_weights",
    "unknown_network",
]

BUILT_IN = {
    "mlp": "keisei.policies.networks:MLP",
    "gather": "keisei.policies.gather_network:GatherNet",
    "residual": "keisei.policies.networks:ResidualNet",
    "slim": "keisei.policies.slim_network:SlimNet",
    "actions": "keisei.policies.action_network:ActionNet",
}
"""The networks that come with Keisei, by name."""
FOR_BOARDS = ("residual", "slim")
"""The networks for observations of shape (planes, height, width)."""


class ModelConfig(Settings):
    """The learner's network."""

    network: str = "auto"
    """mlp, gather (an MLP that skips inputs of 0), residual, slim (a residual network for processors), actions (looks
    at each action by itself, in games that say which inputs describe it), or your own class as module:Class. ``auto``
    takes slim for boards. It takes mlp for other observations, or if hidden_dim or num_layers is set."""
    hidden_dim: Annotated[int, Field(ge=1, le=65536)] = 512
    """Width of each hidden layer of mlp, gather and actions. In actions, the layers that look at a single action are
    half as wide."""
    num_layers: Annotated[int, Field(ge=1, le=64)] = 2
    """Number of hidden layers of mlp and gather, and of the summary of the position in actions."""
    channels: Annotated[int, Field(ge=1, le=4096)] = 32
    """Channels of residual and slim."""
    blocks: Annotated[int, Field(ge=1, le=256)] = 2
    """Residual blocks of residual and slim, with two convolutions each."""
    squeeze_excitation: bool = False
    """Scale the channels of each residual block by a summary of the whole board (network residual)."""
    policy_head: Literal["auto", "planes", "linear"] = "auto"
    """How residual and slim compute their logits: as planes, for games in which action = kind · squares + square, or by
    a linear layer, which fits any game. ``auto`` takes planes if the game says that they fit."""
    input_dim: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    """Numbers in one observation, all axes together. The game knows it, so it may be left out."""
    action_dim: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    """Number of actions. The game knows it, so it may be left out."""
    outputs: Literal["auto", "policy", "q", "dueling"] = "auto"
    """What the two heads mean: a policy and a value (policy), or the value of each action: directly (q), or as the
    value of the position and the advantage of the action (dueling). ``auto`` takes what the learner needs."""
    quantiles: Annotated[int, Field(ge=1, le=1024)] = 1
    """With q and dueling: quantiles that describe the value of an action (Dabney and others, 2018). 1 is its mean."""

    def resolved(self, spec: GameSpec) -> ModelConfig:
        """Makes the same settings with names in place of ``auto``."""
        is_mlp = len(spec.observation.shape) != 3 or self.model_fields_set & {"hidden_dim", "num_layers"}
        network = ("mlp" if is_mlp else "slim") if self.network == "auto" else self.network
        outputs = "policy" if self.outputs == "auto" else self.outputs
        return self.model_copy(update={"network": network, "outputs": outputs})


def least_weights(config: ModelConfig) -> int:
    """Computes a lower bound on a built-in network's number of weights: those between its hidden layers."""
    if config.network == "residual":
        return 18 * config.channels**2 * config.blocks
    if config.network == "slim":
        return config.channels**2 * config.blocks
    return config.hidden_dim**2 * (config.num_layers - 1) if config.network in BUILT_IN else 0


def action_width(config: ModelConfig) -> int:
    """Computes the width of the layers that look at one action (network actions)."""
    return max(1, config.hidden_dim // 2)


def check_model(config: ModelConfig, spec: GameSpec) -> None:
    """Checks that the settings of a network fit a game. A class of your own is checked when it is built."""
    if config.network not in BUILT_IN and ":" not in config.network:
        raise unknown_network(config.network)
    if problems := list(_wrong_sizes(config, spec)):
        raise ConfigError("\n  ".join(["model_config does not fit the game:", *problems, "leave them out"]))
    if config.network in FOR_BOARDS:
        check_board(config.network, spec)
        acts_on_planes(config, spec)
    if config.network == "actions":
        check_action_inputs(config.network, spec)


def check_board(network: str, spec: GameSpec) -> None:
    if len(spec.observation.shape) != 3:
        raise ConfigError(
            f"network {network!r} needs observations of shape (planes, height, width); {spec.name} has "
            f"{spec.observation.shape}, so take network 'mlp'"
        )


def check_action_inputs(network: str, spec: GameSpec) -> ActionInputs:
    """Gets the inputs of the actions. Raises ``ConfigError`` if the game does not name them."""
    if spec.action_inputs is None:
        raise ConfigError(
            f"network {network!r} needs a game whose spec has action_inputs, the inputs that describe each action; "
            f"{spec.name} has none, so take network 'mlp'"
        )
    return spec.action_inputs


def acts_on_planes(config: ModelConfig, spec: GameSpec) -> bool:
    """Checks if the logits of a network for boards are planes."""
    squares = spec.observation.size // spec.observation.shape[0]
    if config.policy_head == "auto":
        return spec.num_actions == squares or spec.plane_actions
    if config.policy_head == "planes" and spec.num_actions % squares:
        raise ConfigError(
            f"policy_head 'planes' needs a whole number of actions for each of the {squares} squares; "
            f"{spec.name} has {spec.num_actions} actions, so take 'linear'"
        )
    return config.policy_head == "planes"


def unknown_network(name: str) -> ConfigError:
    return ConfigError(
        f"network = {name!r}: must be {', '.join(BUILT_IN)}, or a class of your own as 'module:Class'"
    )


def _wrong_sizes(config: ModelConfig, spec: GameSpec) -> Iterator[str]:
    if config.input_dim not in (None, spec.observation.size):
        shape = " x ".join(map(str, spec.observation.shape))
        yield (
            f"input_dim = {config.input_dim}: an observation of {spec.name} has {spec.observation.size} "
            f"numbers ({shape})"
        )
    if config.action_dim not in (None, spec.num_actions):
        yield f"action_dim = {config.action_dim}: {spec.name} has {spec.num_actions} actions"
