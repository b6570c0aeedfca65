"""Decisions of recorded games, from which a network can learn by imitation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keisei.errors import ConfigError, GameError
from keisei.games.contract import ByteArray, FloatArray, Game, IntArray, Step
from keisei.games.offers import RecordedGame
from keisei.games.registry import GameSource, make_game

__all__ = ["Demonstrations", "demonstrate"]


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """Decisions, with one entry in each array."""

    packed: ByteArray
    """[n, packed_bytes]"""
    actions: IntArray
    """[n]"""
    returns: FloatArray
    """[n]: the discounted rewards of the seat that acted, from this decision on; NaN if the result is not known."""

    def __len__(self) -> int:
        return len(self.actions)

    def chosen(self, rows: IntArray | slice) -> Demonstrations:
        return Demonstrations(self.packed[rows], self.actions[rows], self.returns[rows])


def demonstrate(
    source: GameSource, options: Mapping[str, Any], games: Iterable[RecordedGame], discount: float = 1.0
) -> Demonstrations:
    """Plays recorded games again, and gives their decisions. A game ends where its rules end it, whatever else the
    record has.

    The rewards are those of the game with these options, as a run with them gets them. Where the rules have not ended
    a game, as after a resignation, the record's result is paid with the last reward.
    """
    packed: list[ByteArray] = []
    actions: list[int] = []
    returns: list[float] = []
    for number, recorded in enumerate(games, start=1):
        game = make_game(source, batch=1, **{**options, **recorded.options})
        if game.spec.simultaneous:
            raise ConfigError(f"{game.spec.name} has no turns, and recorded games have one action at a time")
        seats: list[int] = []
        rewards: list[FloatArray] = []
        for action in recorded.actions:
            packed.append(game.pack()[0])
            seats.append(int(game.rows().seat[0]))
            actions.append(action)
            step = _step(game, action, number)
            rewards.append(step.rewards[0].copy())
            if step.done[0]:
                break
        if rewards and not step.terminated[0]:
            rewards[-1] += recorded.scores or np.nan
        returns += _returns(seats, rewards, discount)
    width = make_game(source, **options).spec.packed_bytes
    return Demonstrations(
        np.array(packed, np.uint8).reshape(-1, width),
        np.array(actions, np.int32),
        np.array(returns, np.float32),
    )


def _step(game: Game, action: int, number: int) -> Step:
    try:
        return game.step(np.array([action], np.int32))
    except GameError as error:
        raise GameError(f"game {number} of the records cannot be replayed: {error}") from error


def _returns(seats: Sequence[int], rewards: Sequence[FloatArray], discount: float) -> list[float]:
    """Computes the return of each decision, from the view of the seat that acted. ``rewards`` are those of all seats
    after each ply."""
    returns: list[float] = []
    total: FloatArray | float = 0.0
    for seat, reward in zip(reversed(seats), reversed(rewards), strict=True):
        total = reward + discount * total
        returns.append(float(total[seat]))
    return returns[::-1]
