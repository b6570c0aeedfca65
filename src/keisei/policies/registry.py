"""Policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games.contract import GameSpec
from keisei.games.options import did_you_mean
from keisei.policies.contract import Policy
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.random_policy import RandomPolicy
from keisei.policies.seating import PolicyConfig, Seating

__all__ = ["build_policy", "seated_policies"]

_NAMES = ("learner", "random")


def build_policy(
    config: str | PolicyConfig | Mapping[str, Any], spec: GameSpec, network: ActorCritic | None = None
) -> Policy:
    """A policy by its name or by its settings. ``network`` is what the learner plays with."""
    if isinstance(config, str):
        config = PolicyConfig(policy=config)
    elif not isinstance(config, PolicyConfig):
        config = parse_settings(PolicyConfig, config, "the settings of a policy")
    if config.policy == "random":
        return RandomPolicy()
    if config.policy != "learner":
        near = did_you_mean(config.policy, _NAMES)
        raise ConfigError(f"no policy is named {config.policy!r}{near}. Known policies: {', '.join(_NAMES)}")
    if network is None:
        raise ConfigError("the policy 'learner' plays with a network; hand one to build_policy")
    return NeuralPolicy(network, spec, config.temperature, config.epsilon)


def seated_policies(
    learner: Policy, seating: Seating, spec: GameSpec, network: ActorCritic | None
) -> list[Policy]:
    """The policies of a seating in the order that its assignments number them, the learner first."""
    return [learner, *(build_policy(opponent, spec, network) for opponent in seating.opponents)]
