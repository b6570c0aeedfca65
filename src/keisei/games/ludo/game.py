"""Ludo as a batch of games, on top of the native core."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from keisei.config import Settings, parse_settings
from keisei.errors import GameError, IllegalActionError
from keisei.games.contract import (
    ActionInputs,
    Array,
    BoolArray,
    ByteArray,
    GameSpec,
    IntArray,
    ObservationSpec,
)
from keisei.games.ludo import meaning
from keisei.games.ludo.board import ACTIONS, LudoBoard, split_action
from keisei.games.ludo.face import LudoFace
from keisei.games.native_batch import NativeBatch
from keisei.games.options import MAX_GAME
from keisei.native import core

__all__ = ["LudoGame", "LudoOptions"]

_Weight: TypeAlias = Annotated[float, Field(ge=0, le=100)]


class LudoOptions(Settings):
    """The options of a game of Ludo."""

    players: Annotated[int, Field(ge=2, le=4)] = 2
    """How many play. Two sit at opposite corners."""
    blocks: bool = False
    """Two tokens of a player on one square of the loop are a block: others can neither land there nor pass."""
    capture_rolls: bool = True
    """A capture brings an extra roll."""
    max_plies: Annotated[int, Field(ge=1, le=MAX_GAME)] | None = None
    """The ply at which a game is cut off. Null cuts no game off."""
    progress: _Weight = 0.0
    """Weight of the squares that a seat's tokens have come. With 1, all tokens at home are worth 1."""
    leaving: _Weight = 0.0
    """Weight of tokens that have left the yard. With 1, all four are worth 1."""
    safety: _Weight = 0.0
    """Weight of tokens out of the yard that nobody can capture. With 1, all four are worth 1."""
    home: _Weight = 0.0
    """Weight of tokens at home. With 1, all four are worth 1."""
    captures: _Weight = 0.0
    """Reward for each capture."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The learner's discount. The rewards for the standing need it, so that they do not change the best play."""
    zero_sum: bool = True
    """What a seat gains by these rewards, the others lose in equal parts."""
    keep_standing: bool = False
    """Keep the rewards for the standing when the rules end a game, instead of taking them back."""

    @property
    def is_shaped(self) -> bool:
        return any((self.progress, self.leaving, self.safety, self.home, self.captures))


class LudoGame(NativeBatch):
    """Ludo for two, three or four, many games at once. See docs/games/ludo.md for rules and observations."""

    OPTION_NAMES = tuple(LudoOptions.model_fields)
    _core: core.LudoBatch

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(LudoOptions, options, "the options of ludo")
        self._core = core.LudoBatch(
            batch, seed, first_game, o.players, o.blocks, o.capture_rolls, o.max_plies or 0, o.progress,
            o.leaving, o.safety, o.home, o.captures, o.discount, o.zero_sum, o.keep_standing,
        )  # fmt: skip
        super().__init__(batch, self._core, self._make_spec(), o.model_dump())

    def _make_spec(self) -> GameSpec:
        scale = self._core.observation_scale
        return GameSpec(
            name="ludo",
            seats=self.options.players,
            num_actions=ACTIONS,
            observation=ObservationSpec((len(scale),), np.dtype(np.uint8), scale=scale),
            packed_bytes=self._core.packed_bytes,
            zero_sum=self.options.zero_sum or not self.options.is_shaped,
            max_plies=self.options.max_plies,
            endings=core.LUDO_ENDINGS,
            chance=True,
            action_inputs=_action_inputs(len(scale)),
            face=LudoFace(self.options.players, blocks=self.options.blocks),
        )

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """See ``HasHeuristic``."""
        games = self._games if selected is None else np.ascontiguousarray(selected, np.int32)
        actions = np.empty(len(games), np.int32)
        self._core.heuristic_actions(games, np.ascontiguousarray(keys), actions)
        return actions

    def board(self, game: int = 0) -> LudoBoard:
        """Makes a board of a game's current position. Its future dice differ from those of the game."""
        return self._board_of(self.pack()[game].tobytes())

    def move_name(self, action: int, game: int = 0) -> str:
        """Names an action by its token and die, as in ``2-6``."""
        value, token = split_action(action)
        return f"{token}-{value}"

    def observation_meaning(self) -> list[str]:
        return meaning.observation_meaning(self.options.players)

    def action_meaning(self) -> list[str]:
        pairs = map(split_action, range(ACTIONS))
        return [f"move token {token} by a die of {value}" for value, token in pairs]

    def _board_of(self, packed: bytes) -> LudoBoard:
        o = self.options
        return LudoBoard.from_packed(packed, blocks=o.blocks, capture_rolls=o.capture_rolls)

    def _expand(self, packed: ByteArray, observations: Array, legal: BoolArray) -> None:
        bad = self._core.expand(packed, observations, legal)
        if bad >= 0:
            raise GameError(f"row {bad} of the packed rows is no possible Ludo position; it was damaged")

    def _draw(self, packed: bytes) -> str:
        return str(self._board_of(packed))

    def _refuse(self, row: int, action: int) -> NoReturn:
        reason = self.board(row).why_illegal(action)
        raise IllegalActionError(
            f"action {action} in row {row} is not legal: {reason}; take one that legal() marks"
        )


def _action_inputs(size: int) -> ActionInputs:
    """Describes which inputs of an observation belong to each action: its token (place, position, dangers, targets),
    and five numbers for each action at the end of the observation."""
    tokens = [
        [*range(58 * token, 58 * token + 58), 232 + token, 236 + token, 240 + token] for token in range(4)
    ]
    of_action = size - 5 * ACTIONS
    return ActionInputs(
        places=tuple(
            (*tokens[action % 4], *range(of_action + action, size, ACTIONS)) for action in range(ACTIONS)
        ),
        kinds=tuple(action // 4 for action in range(ACTIONS)),
        things=tuple(map(tuple, tokens)),
    )
