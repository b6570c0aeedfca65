"""Policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keisei.config import parse_settings
from keisei.errors import ConfigError, KeiseiError
from keisei.games.contract import Game, GameSpec
from keisei.games.options import did_you_mean
from keisei.native import core
from keisei.policies.contract import Policy
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.players import PLAYERS
from keisei.policies.players.greedy_player import GreedyPlayer
from keisei.policies.players.heuristic_player import HeuristicPlayer, need_heuristic
from keisei.policies.players.lookahead import need_look_ahead, need_search, need_turns
from keisei.policies.players.random_policy import RandomPolicy
from keisei.policies.players.search_player import SearchPlayer
from keisei.policies.seating import CHANCE, PolicyConfig, Seating

__all__ = [
    "PLAYERS",
    "build_policy",
    "check_player",
    "named_player",
    "need_offers",
    "players_of",
    "seated_policies",
]


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
    """Makes one of ``PLAYERS`` for games of this spec; None if the name is not one of them. It does not check that the
    game offers what the player needs; ``check_player`` does."""
    kind, _, depth = name.partition(":")
    if name == "random":
        return RandomPolicy()
    if name == "greedy":
        need_turns(spec, name)
        return GreedyPlayer()
    if name == "heuristic":
        return HeuristicPlayer()
    if kind != "search":
        return None
    if not (depth.isascii() and depth.isdigit() and 1 <= int(depth) <= core.MAX_SEARCH_DEPTH):
        raise ConfigError(
            f"search:DEPTH looks a whole number of plies ahead, 1 … {core.MAX_SEARCH_DEPTH}, such as 'search:2'; "
            f"got {name!r}"
        )
    need_turns(spec, name)
    return SearchPlayer(int(depth))


def check_player(name: str, game: Game) -> Policy | None:
    """Makes one of ``PLAYERS`` as ``named_player`` does, and checks that the game offers what it needs. Pass a new
    game: the check plays it."""
    player = named_player(name, game.spec)
    if player is not None:
        need_offers(player, game)
    if isinstance(player, GreedyPlayer | SearchPlayer):
        need_look_ahead(game, name)
    return player


def need_offers(player: Policy, game: Game) -> None:
    """Refuses a game whose batch does not offer what this player needs."""
    if isinstance(player, HeuristicPlayer):
        need_heuristic(game)
    if isinstance(player, SearchPlayer):
        need_search(game, player.name)


def players_of(game: Game) -> list[str]:
    """Lists the players in ``PLAYERS`` that can play this game. Pass a new game: the test plays it."""
    found = []
    for player in PLAYERS:
        try:
            check_player(player.replace("DEPTH", "1"), game)
        except KeiseiError:
            continue
        found.append(player)
    return found


def _as_it_is(player: Policy, config: PolicyConfig) -> Policy:
    """Refuses settings that have no effect on a player without a network."""
    if (config.temperature, config.epsilon) != (1.0, 0.0):
        plays = "draws each action alike" if isinstance(player, RandomPolicy) else "takes what it thinks best"
        raise ConfigError(
            f"{config.policy!r} always {plays}: leave out temperature and epsilon, which belong to policies with a "
            f"network"
        )
    return player


def seated_policies(
    learner: Policy, seating: Seating, spec: GameSpec, network: ActorCritic | None
) -> dict[int, Policy]:
    """Lists the policies of a seating by their numbers in its assignments: the learner, its opponents and chance."""
    opponents = (build_policy(opponent, spec, network) for opponent in seating.opponents)
    return dict(enumerate([learner, *opponents])) | {CHANCE: RandomPolicy(log_probs=False)}
