"""Policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games.contract import GameSpec
from keisei.games.options import did_you_mean
from keisei.native import core
from keisei.policies.contract import Policy
from keisei.policies.greedy_player import GreedyPlayer
from keisei.policies.lookahead import need_turns
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.random_policy import RandomPolicy
from keisei.policies.search_player import SearchPlayer
from keisei.policies.seating import PolicyConfig, Seating

__all__ = ["PLAYERS", "build_policy", "named_player", "seated_policies"]

PLAYERS = ("random", "greedy", "search:DEPTH")
"""The players that need no network."""


def build_policy(
    config: str | PolicyConfig | Mapping[str, Any], spec: GameSpec, network: ActorCritic | None = None
) -> Policy:
    """Makes a policy from its name or its settings. ``network`` is the learner's network."""
    if isinstance(config, str):
        config = PolicyConfig(policy=config)
    elif not isinstance(config, PolicyConfig):
        config = parse_settings(PolicyConfig, config, "the settings of a policy")
    player = named_player(config.policy, spec)
    if player is not None:
        return _as_it_is(player, config)
    if config.policy != "learner":
        names = ("learner", *PLAYERS)
        near = did_you_mean(config.policy, names)
        raise ConfigError(f"no policy is named {config.policy!r}{near}. Known policies: {', '.join(names)}")
    if network is None:
        raise ConfigError("the policy 'learner' plays with a network; pass one to build_policy")
    return NeuralPolicy(network, spec, config.temperature, config.epsilon)


def named_player(name: str, spec: GameSpec) -> Policy | None:
    """Makes one of ``PLAYERS`` for this game; None if the name is not one of them."""
    kind, _, depth = name.partition(":")
    if name == "random":
        return RandomPolicy()
    if name == "greedy":
        need_turns(spec, name)
        return GreedyPlayer()
    if kind != "search":
        return None
    if not (depth.isascii() and depth.isdigit() and 1 <= int(depth) <= core.MAX_SEARCH_DEPTH):
        raise ConfigError(
            f"search:DEPTH looks a whole number of plies ahead, 1 … {core.MAX_SEARCH_DEPTH}, such as 'search:2'; "
            f"got {name!r}"
        )
    need_turns(spec, name, zero_sum=not spec.looks_ahead)
    return SearchPlayer(int(depth))


def _as_it_is(player: Policy, config: PolicyConfig) -> Policy:
    """Refuses settings that have no effect on a player without a network."""
    if (config.temperature, config.epsilon) != (1.0, 0.0) and not isinstance(player, RandomPolicy):
        raise ConfigError(
            f"{config.policy!r} always takes what it thinks best: leave out temperature and epsilon, which belong "
            f"to policies with a network"
        )
    return player


def seated_policies(
    learner: Policy, seating: Seating, spec: GameSpec, network: ActorCritic | None
) -> list[Policy]:
    """Gives the policies of a seating in the order of its assignments: the learner first, chance last."""
    opponents = (build_policy(opponent, spec, network) for opponent in seating.opponents)
    return [learner, *opponents, RandomPolicy(log_probs=False)]
