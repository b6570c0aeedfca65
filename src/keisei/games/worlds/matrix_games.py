"""Iterated matrix games: two seats choose at the same time, round after round. See docs/games/matrix_games.md."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import Field

from keisei.config import Settings, parse_settings
from keisei.errors import SavedStateError
from keisei.games.array_batch import ArrayBatch
from keisei.games.contract import (
    Array,
    BoolArray,
    ByteArray,
    FloatArray,
    GameSpec,
    IntArray,
    ObservationSpec,
)
from keisei.games.worlds.world import Places

__all__ = ["BachStravinsky", "HawkDove", "MatrixGame", "MatrixGameOptions", "PrisonersDilemma"]

Payoffs: TypeAlias = tuple[tuple[tuple[float, float], tuple[float, float]], ...]
"""Payoffs of seat 0 and seat 1, by the action of seat 0 and then of seat 1."""
_FIRST_ROUND = 4
"""What a seat remembers before the first round. After a round it is 2 · own action + the other's."""


class MatrixGameOptions(Settings):
    """The options of an iterated matrix game."""

    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """The round at which a game is cut off."""


class MatrixGame(ArrayBatch):
    """A game of two seats with two actions each. A seat sees what both did in the round before."""

    name: ClassVar[str]
    actions: ClassVar[tuple[str, str]]
    payoffs: ClassVar[Payoffs]
    OPTION_NAMES = tuple(MatrixGameOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(MatrixGameOptions, options, f"the options of {self.name}")
        spec = GameSpec(
            name=self.name,
            seats=2,
            num_actions=2,
            observation=ObservationSpec((_FIRST_ROUND + 2,), np.dtype(np.uint8)),
            packed_bytes=2,
            simultaneous=True,
            max_plies=o.max_turns,
            endings=("unfinished", "finished", "max_turns"),
            scored_by_rewards=True,
        )
        super().__init__(spec, o.model_dump(), batch=batch, seed=seed, first_game=first_game)
        self._table = np.array(self.payoffs, np.float32)
        self._memory = self.keep("memory", np.empty((batch, 2), np.uint8))
        self.start()

    def acting(self) -> BoolArray | None:
        return None

    def play(self, actions: IntArray) -> tuple[FloatArray, BoolArray]:
        self._memory[...] = 2 * actions + actions[:, ::-1]
        return self._table[actions[:, 0], actions[:, 1]], np.zeros(self.batch, np.bool_)

    def restart(self, games: Places) -> None:
        self._memory[games] = _FIRST_ROUND

    def pack_rows(self, games: Array, seats: Array) -> ByteArray:
        return np.stack([self._memory[games, seats], seats.astype(np.uint8)], axis=1)

    def expand(self, packed: ByteArray, out: Array) -> None:
        out[:, :-1] = packed[:, :1] == np.arange(_FIRST_ROUND + 1)
        out[:, -1] = packed[:, 1]

    def are_possible(self, packed: ByteArray) -> BoolArray:
        possible: BoolArray = np.all(packed <= (_FIRST_ROUND, 1), axis=1)
        return possible

    def text(self, game: int = 0) -> str:
        memory = int(self._memory[game, 0])
        if memory == _FIRST_ROUND:
            return f"{self.name}: the first round"
        return f"{self.name}: seat 1 chose {self.actions[memory // 2]}, seat 2 {self.actions[memory % 2]}"

    def move_name(self, action: int, game: int = 0) -> str:
        return self.actions[action]

    def check_state(self) -> None:
        super().check_state()
        if (self._memory > _FIRST_ROUND).any():
            raise SavedStateError(f"saved state of {self.name} has a choice that does not exist")


class PrisonersDilemma(MatrixGame):
    """Defecting is always better for oneself, and both are worse off if both defect."""

    name = "prisoners-dilemma"
    actions = ("cooperate", "defect")
    payoffs = (((3, 3), (0, 5)), ((5, 0), (1, 1)))


class HawkDove(MatrixGame):
    """A fight over 2 costs the loser 4. Hawks fight, doves yield, and two doves share."""

    name = "hawk-dove"
    actions = ("hawk", "dove")
    payoffs = (((-1, -1), (2, 0)), ((0, 2), (1, 1)))


class BachStravinsky(MatrixGame):
    """Both want to go to the same concert. Seat 0 prefers Bach, and seat 1 Stravinsky."""

    name = "bach-stravinsky"
    actions = ("bach", "stravinsky")
    payoffs = (((3, 2), (0, 0)), ((0, 0), (2, 3)))
