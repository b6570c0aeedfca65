"""Members of the league, as one worker plays them, and how the saved games of a table name them."""

from __future__ import annotations

import struct
from collections.abc import Collection

import numpy as np

from keisei.errors import SavedStateError
from keisei.games.contract import GameSpec
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.weights.shelf import Shelf
from keisei.policies.contract import Policy
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.registry import build_policy
from keisei.policies.seating import LEARNER, Assignment

MAGIC = b"KEISEISM"
_HEAD = struct.Struct("<8sI")


class Members:
    """The policy of each member. Networks are built once for each place of the shelf."""

    def __init__(self, plan: LeaguePlan, shelf: Shelf, spec: GameSpec) -> None:
        self._shelf, self._spec = shelf, spec
        self._players = {number: build_policy(config, spec) for number, config in plan.players.items()}
        self._networks: dict[int, ActorCritic] = {}

    def policy_of(self, member: int) -> Policy:
        if member in self._players:
            return self._players[member]
        place = self._shelf.place_of(member)
        if place not in self._networks:
            self._networks[place] = self._shelf.network_at(place, self._spec)
        return NeuralPolicy(self._networks[place], self._spec, *self._shelf.settings_at(place))


def with_members(state: bytes, members: Assignment) -> bytes:
    """Packs the saved games of a table, with the member that each game meets."""
    return _HEAD.pack(MAGIC, len(members)) + members.astype("<i2").tobytes() + state


def split_members(state: bytes) -> tuple[Assignment | None, bytes]:
    """Splits a saved state into the members and the saved games. The members are None if it was saved without a
    league."""
    if not state.startswith(MAGIC):
        return None, state
    end = head_bytes(_HEAD.unpack_from(state)[1]) if len(state) >= _HEAD.size else _HEAD.size
    if len(state) < end:
        raise SavedStateError(f"the saved games of a table end early: {len(state)} bytes of at least {end}")
    return np.frombuffer(state[_HEAD.size : end], "<i2").astype(np.int16), state[end:]


def with_members_of(state: bytes, known: Collection[int]) -> bytes:
    """Replaces unknown members in a saved state: in their games, the learner plays on against itself."""
    members, games = split_members(state)
    if members is None:
        return state
    return with_members(games, np.where(np.isin(members, list(known)), members, np.int16(LEARNER)))


def head_bytes(games: int) -> int:
    """Computes how many bytes come before the saved games of a table with this many games."""
    return _HEAD.size + 2 * games
