"""The fixed members of a league: players by name, and other runs, whose weights are taken once."""

from __future__ import annotations

from pathlib import Path

from keisei.games.contract import GameSpec
from keisei.policies.model_config import ModelConfig
from keisei.policies.neural import NeuralPolicy
from keisei.policies.players.saved_player import find_player
from keisei.policies.registry import named_player
from keisei.policies.seating import PolicyConfig
from keisei.training.league.settings import LeagueSettings, MemberSettings

__all__ = ["as_policy", "check_members", "has_values", "is_player"]


def check_members(settings: LeagueSettings, spec: GameSpec, root: Path) -> None:
    """Raises an error if a member is a run that is unknown or cannot play this game. A new run calls it before it
    writes anything. Players by name are checked by ``check_opponents``, also when a run is resumed."""
    for member in settings.members if settings.enabled else ():
        if not is_player(member.policy, spec):
            find_player(member.policy, root).network(spec)


def is_player(name: str, spec: GameSpec) -> bool:
    """Checks if a member is a player by name, which needs no weights."""
    return named_player(name, spec) is not None


def as_policy(member: MemberSettings, policy: NeuralPolicy | None = None) -> PolicyConfig:
    """Makes the settings of a member's policy. ``policy`` is that of a run."""
    temperature = member.temperature
    if temperature is None:
        temperature = policy.temperature if policy is not None and policy.network.meaning == "q" else 1.0
    return PolicyConfig(policy=member.policy, temperature=temperature, epsilon=member.epsilon)


def has_values(model: ModelConfig | None) -> bool:
    """Checks if a network has action values instead of a policy."""
    return model is not None and model.outputs in ("q", "dueling")
