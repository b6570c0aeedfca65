"""Decisions of recorded games, from which a network can learn by imitation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keisei.errors import ConfigError, GameError
from keisei.games.contract import ByteArray, FloatArray, Game, IntArray
from keisei.games.records import RecordedGame
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
    """[n]: the discounted result for the seat that acted; NaN if it is not known."""

    def __len__(self) -> int:
        return len(self.actions)

    def chosen(self, rows: IntArray | slice) -> Demonstrations:
        return Demonstrations(self.packed[rows], self.actions[rows], self.returns[rows])


def demonstrate(
    source: GameSource, options: Mapping[str, Any], games: Iterable[RecordedGame], discount: float = 1.0
) -> Demonstrations:
    """Plays recorded games again, and gives their decisions. A game ends where its rules end it, whatever else the
    record has."""
    packed: list[ByteArray] = []
    actions: list[int] = []
    returns: list[float] = []
    for number, recorded in enumerate(games, start=1):
        game = make_game(source, batch=1, **{**options, **recorded.options})
        if game.spec.simultaneous:
            raise ConfigError(f"{game.spec.name} has no turns, and recorded games have one action at a time")
        seats = []
        for action in recorded.actions:
            packed.append(game.pack()[0])
            seats.append(int(game.rows().seat[0]))
            actions.append(action)
            if _step(game, action, number):
                break
        returns += _returns(seats, recorded.scores, discount)
    width = make_game(source, **options).spec.packed_bytes
    return Demonstrations(
        np.array(packed, np.uint8).reshape(-1, width),
        np.array(actions, np.int32),
        np.array(returns, np.float32),
    )


def _step(game: Game, action: int, number: int) -> bool:
    """Plays an action, and gives whether the game has ended."""
    try:
        return bool(game.step(np.array([action], np.int32)).done[0])
    except GameError as error:
        raise GameError(f"game {number} of the records cannot be replayed: {error}") from error


def _returns(seats: list[int], scores: tuple[float, ...], discount: float) -> list[float]:
    """Gives the result of a game for each decision, from the view of the seat that acted."""
    if not scores:
        return [np.nan] * len(seats)
    last = len(seats) - 1
    return [scores[seat] * discount ** (last - ply) for ply, seat in enumerate(seats)]
