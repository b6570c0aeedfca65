"""Networks of your own, named as ``module:Class``.

Each one is tried on a few positions before anything starts. An error names the rule that it breaks.
"""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from keisei.errors import ConfigError, KeiseiError, in_one_line
from keisei.games.contract import GameSpec
from keisei.games.importing import import_object
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic

_CONSTRUCTOR = "its constructor takes (config, spec) and begins with super().__init__(spec.observation)"
_EXAMPLE = "docs/policies.md and examples/own_network.py show how"
_ROWS = 3
"""Three positions, so that a single tensor is not taken for the pair (logits, values)."""
_SEEDING = threading.Lock()


def build_own_network(config: ModelConfig, spec: GameSpec, seed: int) -> ActorCritic:
    """Builds a network of the user. Its constructor may use torch's global generator, which is seeded for it and
    restored. The lock separates networks that several threads build."""
    found = import_object(config.network, missing=ConfigError, broken=ConfigError)
    if not (isinstance(found, type) and issubclass(found, ActorCritic)):
        raise _refusal(
            config, f"it must be a class that extends keisei.policies.ActorCritic, found {found!r}"
        )
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = _construct(found, config, spec)
        network.initialise(torch.Generator().manual_seed(seed))
    _check_weights(network, config)
    _check_norms(network, config)
    _check_outputs(network, config, spec)
    return network


def _refusal(config: ModelConfig, rule: str) -> ConfigError:
    return ConfigError(f"network = {config.network!r}: {rule}. {_EXAMPLE}")


def _construct(network_class: type[ActorCritic], config: ModelConfig, spec: GameSpec) -> ActorCritic:
    try:
        network = network_class(config, spec)  # type: ignore[call-arg, arg-type]  # as the contract says
    except KeiseiError:
        raise
    except Exception as error:
        raise _refusal(config, f"{_CONSTRUCTOR}; it failed with {in_one_line(error)}") from error
    if "scale" not in vars(network).get("_buffers", {}):
        raise _refusal(config, f"{_CONSTRUCTOR}; it has not called it")
    return network


def _check_weights(network: ActorCritic, config: ModelConfig) -> None:
    if not any(weight.requires_grad for weight in network.parameters()):
        raise _refusal(
            config,
            "it has no weights to learn; keep layers in attributes or in an nn.ModuleList, not in a plain list",
        )


def _check_norms(network: ActorCritic, config: ModelConfig) -> None:
    """Refuses layers that make a position's output depend on other positions: those beside it, or those before it."""
    for name, layer in network.named_modules():
        here = f"{type(layer).__name__} ({name})"
        if isinstance(layer, _BatchNorm):
            raise _refusal(
                config,
                f"the output for a position must depend on that position only, and {here} normalises it together with "
                f"the others of a batch; take nn.GroupNorm or nn.LayerNorm",
            )
        if isinstance(layer, _InstanceNorm) and layer.track_running_stats:
            raise _refusal(
                config,
                f"the output for a position must depend on that position only, and {here} keeps running statistics of "
                f"earlier ones; leave out track_running_stats, or take nn.GroupNorm or nn.LayerNorm",
            )


def _check_outputs(network: ActorCritic, config: ModelConfig, spec: GameSpec) -> None:
    """Tries a network on empty positions, for all actions and for a list of actions."""
    wanted = (
        f"heads(inputs) returns logits of shape ({_ROWS}, {spec.num_actions}) and values of shape ({_ROWS},)"
    )
    rule = f"for {_ROWS} rows of {spec.name}, {wanted}"
    observations = torch.from_numpy(np.zeros((_ROWS, *spec.observation.shape), spec.observation.dtype))
    actions = torch.zeros((_ROWS, 1), dtype=torch.int32)
    try:
        with torch.inference_mode():
            network.eval()  # dropout is off, as in games
            logits, values = network(observations)
            network(observations, actions)
            network.train()
    except KeiseiError:
        raise
    except Exception as error:
        raise _refusal(config, f"{rule}; it failed with {in_one_line(error)}") from error
    if not (isinstance(logits, Tensor) and isinstance(values, Tensor)):
        raise _refusal(config, f"{rule}; it returns {type(logits).__name__} and {type(values).__name__}")
    if logits.shape != (_ROWS, spec.num_actions) or values.shape != (_ROWS,):
        hint = "; values.squeeze(-1) drops the last axis" if values.shape == (_ROWS, 1) else ""
        raise _refusal(config, f"{rule}; it returns {tuple(logits.shape)} and {tuple(values.shape)}{hint}")
    if not bool(torch.isfinite(logits).all() and torch.isfinite(values).all()):
        raise _refusal(config, f"{rule}, all of them finite; it returns NaN or infinity for empty positions")
