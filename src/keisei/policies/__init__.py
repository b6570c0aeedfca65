"""Who plays: networks, action sampling, players by name, and who sits where.

Names are imported when they are used, so settings such as ``Seating`` do not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei.policies.contract import Decision, Policy, Situation
    from keisei.policies.model_config import ModelConfig
    from keisei.policies.networks import MLP, ActorCritic, ResidualNet, build_network
    from keisei.policies.neural import NeuralPolicy
    from keisei.policies.players.greedy_player import GreedyPlayer
    from keisei.policies.players.heuristic_player import HeuristicPlayer
    from keisei.policies.players.random_policy import RandomPolicy
    from keisei.policies.players.search_player import SearchPlayer
    from keisei.policies.registry import build_policy, named_player, seated_policies
    from keisei.policies.sampling import greedy, masked_log_softmax, sample
    from keisei.policies.seating import Lineup, OpponentConfig, PolicyConfig, Seating, play

__all__ = [
    "MLP",
    "ActorCritic",
    "Decision",
    "GreedyPlayer",
    "HeuristicPlayer",
    "Lineup",
    "ModelConfig",
    "NeuralPolicy",
    "OpponentConfig",
    "Policy",
    "PolicyConfig",
    "RandomPolicy",
    "ResidualNet",
    "SearchPlayer",
    "Seating",
    "Situation",
    "build_network",
    "build_policy",
    "greedy",
    "masked_log_softmax",
    "named_player",
    "play",
    "sample",
    "seated_policies",
]

_HOMES = {
    "contract": ("Decision", "Policy", "Situation"),
    "players.greedy_player": ("GreedyPlayer",),
    "players.heuristic_player": ("HeuristicPlayer",),
    "model_config": ("ModelConfig",),
    "networks": ("MLP", "ActorCritic", "ResidualNet", "build_network"),
    "neural": ("NeuralPolicy",),
    "players.random_policy": ("RandomPolicy",),
    "registry": ("build_policy", "named_player", "seated_policies"),
    "sampling": ("greedy", "masked_log_softmax", "sample"),
    "players.search_player": ("SearchPlayer",),
    "seating": ("Lineup", "OpponentConfig", "PolicyConfig", "Seating", "play"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
