"""The fixed members of a league: players by name, and other runs, whose weights are taken once."""

from __future__ import annotations

from pathlib import Path

from keisei.games.contract import GameSpec
from keisei.policies.registry import build_policy, named_player
from keisei.policies.seating import PolicyConfig
from keisei.training.league.settings import LeagueSettings, MemberSettings
from keisei.training.players import load_network

__all__ = ["as_policy", "check_members", "is_player"]


def check_members(settings: LeagueSettings, spec: GameSpec, root: Path) -> None:
    """Raises an error if a member is unknown or cannot play this game. A new run calls it before it writes anything."""
    for member in settings.members if settings.enabled else ():
        if is_player(member, spec):
            build_policy(as_policy(member), spec)
        else:
            load_network(member.policy, spec, root)


def is_player(member: PolicyConfig, spec: GameSpec) -> bool:
    """Tells whether a member is a player by name, which needs no weights."""
    return named_player(member.policy, spec) is not None


def as_policy(member: MemberSettings) -> PolicyConfig:
    return PolicyConfig(policy=member.policy, temperature=member.temperature, epsilon=member.epsilon)
