"""Ludo as a batch of games, on top of the native core."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from keisei.config import Settings, parse_settings
from keisei.errors import GameError, IllegalActionError, SavedStateError
from keisei.games.contract import (
    ActionInputs,
    Array,
    BoolArray,
    ByteArray,
    FinalRows,
    GameSpec,
    IntArray,
    ObservationSpec,
    Rows,
    Step,
    action_array,
    out_array,
)
from keisei.games.ludo import meaning
from keisei.games.ludo.board import ACTIONS, LudoBoard, split_action
from keisei.games.ludo.face import LudoFace
from keisei.games.options import MAX_GAME
from keisei.games.pictures import LastPositions
from keisei.games.saved import digest_of, unwrap, wrap
from keisei.native import core

__all__ = ["LudoGame", "LudoOptions"]

_BYTES, _BOOLS = np.dtype(np.uint8), np.dtype(np.bool_)
"""Made once, since in small batches the Python work of each call is noticeable."""
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


class LudoGame:
    """Ludo for two, three or four, many games at once. See docs/games/ludo.md for rules and observations."""

    OPTION_NAMES = tuple(LudoOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = parse_settings(LudoOptions, options, "the options of ludo")
        self.batch = batch
        o = self.options
        self._core = core.LudoBatch(
            batch, seed, first_game, o.players, o.blocks, o.capture_rolls, o.max_plies or 0, o.progress,
            o.leaving, o.safety, o.home, o.captures, o.discount, o.zero_sum, o.keep_standing,
        )  # fmt: skip
        self.spec = self._make_spec()
        self._games = np.arange(batch, dtype=np.int32)
        # Memory in which the core writes the last positions of finished games.
        self._final = FinalRows(
            np.empty(batch, np.int32),
            np.empty(batch, np.int32),
            np.empty((batch, self.spec.packed_bytes), np.uint8),
        )
        self._none_final = _first(self._final, 0)
        self._digest = digest_of(self.spec, o.model_dump())
        self._last = LastPositions()

    def _make_spec(self) -> GameSpec:
        scale = self._core.observation_scale
        return GameSpec(
            name="ludo",
            seats=self.options.players,
            num_actions=ACTIONS,
            observation=ObservationSpec((len(scale),), _BYTES, scale=scale),
            packed_bytes=self._core.packed_bytes,
            zero_sum=self.options.zero_sum or not self.options.is_shaped,
            max_plies=self.options.max_plies,
            endings=core.LUDO_ENDINGS,
            chance=True,
            heuristic=True,
            action_inputs=_action_inputs(len(scale)),
            face=LudoFace(self.options.players, blocks=self.options.blocks),
        )

    def rows(self) -> Rows:
        batch = self.batch
        seat, episode, ply = np.empty(batch, np.int32), np.empty(batch, np.int32), np.empty(batch, np.int32)
        self._core.rows(seat, episode, ply)
        return Rows(self._games.copy(), seat, episode, ply)

    def observe(self, out: Array | None = None) -> Array:
        out = out_array(out, (self.batch, *self.spec.observation.shape), _BYTES, "observe")
        self._core.observe(out)
        return out

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        out = out_array(out, (self.batch, ACTIONS), _BOOLS, "legal")
        self._core.legal(out)
        return out

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        out = out_array(out, (self.batch, self.spec.packed_bytes), _BYTES, "pack")
        self._core.pack(out)
        return out

    def unpack(
        self, packed: ByteArray, observations: Array | None = None, legal: BoolArray | None = None
    ) -> tuple[Array, BoolArray]:
        packed = np.ascontiguousarray(packed)
        size = self.spec.packed_bytes
        if packed.ndim != 2 or packed.shape[1] != size or packed.dtype != np.uint8:
            raise GameError(
                f"unpack takes uint8 of shape (rows, {size}), got {packed.dtype} of shape {packed.shape}"
            )
        rows = len(packed)
        observations = out_array(observations, (rows, *self.spec.observation.shape), _BYTES, "unpack")
        legal = out_array(legal, (rows, ACTIONS), _BOOLS, "unpack")
        bad = self._core.expand(packed, observations, legal)
        if bad >= 0:
            raise GameError(f"row {bad} of the packed rows is no possible Ludo position; it was damaged")
        return observations, legal

    def random_actions(self) -> IntArray:
        actions = np.empty(self.batch, np.int32)
        self._core.random_actions(actions)
        return actions

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """See ``keisei.games.heuristic``."""
        games = self._games if selected is None else np.ascontiguousarray(selected, np.int32)
        actions = np.empty(len(games), np.int32)
        self._core.heuristic_actions(games, np.ascontiguousarray(keys), actions)
        return actions

    def step(self, actions: Array) -> Step:
        batch, seats = self.batch, self.spec.seats
        chosen = actions
        if type(chosen) is not np.ndarray or chosen.dtype != np.int32 or chosen.shape != (batch,):
            chosen = action_array(actions, batch, ACTIONS)
        rewards, scores = np.empty((batch, seats), np.float32), np.empty((batch, seats), np.float32)
        terminated, truncated = np.empty(batch, np.bool_), np.empty(batch, np.bool_)
        ending, plies = np.empty(batch, np.uint8), np.empty(batch, np.int32)
        finished = self._core.step(
            np.ascontiguousarray(chosen), rewards, terminated, truncated, ending, scores, plies,
            self._final.game, self._final.seat, self._final.packed,
        )  # fmt: skip
        if finished < 0:
            action_array(chosen, batch, ACTIONS)  # says so where an action is out of range
            self._refuse(-1 - finished, int(chosen[-1 - finished]))
        final = _first(self._final, finished) if finished else self._none_final
        if finished:
            self._last.note(final)
        return Step(rewards, terminated, truncated, ending, scores, plies, final)

    def save(self) -> bytes:
        return wrap(self._digest, self._core.save())

    def load(self, blob: bytes) -> None:
        if not self._core.load(unwrap(blob, self._digest, "ludo")):
            raise SavedStateError(
                f"saved state does not fit a batch of {self.batch} Ludo games; was it made by a batch of another "
                f"size?"
            )

    def board(self, game: int = 0) -> LudoBoard:
        """Gives the position of a game as a board. Its future dice are not those of the game."""
        return self._board_of(self.pack()[game].tobytes())

    def text(self, game: int = 0) -> str:
        return str(self.board(game))

    def move_name(self, action: int, game: int = 0) -> str:
        """Gives the token and the die, as in ``2-6``."""
        value, token = split_action(action)
        return f"{token}-{value}"

    def observation_meaning(self) -> list[str]:
        return meaning.observation_meaning(self.options.players)

    def action_meaning(self) -> list[str]:
        pairs = map(split_action, range(ACTIONS))
        return [f"move token {token} by a die of {value}" for value, token in pairs]

    def keep_last_positions(self) -> None:
        self._last.keep()

    def last_text(self, game: int = 0) -> str:
        return str(self._board_of(self._last.of(game)))

    def _board_of(self, packed: bytes) -> LudoBoard:
        o = self.options
        return LudoBoard.from_packed(packed, blocks=o.blocks, capture_rolls=o.capture_rolls)

    def _refuse(self, row: int, action: int) -> None:
        reason = self.board(row).why_illegal(action)
        raise IllegalActionError(
            f"action {action} in row {row} is not legal: {reason}; take one that legal() marks"
        )


def _first(final: FinalRows, count: int) -> FinalRows:
    """Copies the first rows. The next step does not change the copy."""
    return FinalRows(final.game[:count].copy(), final.seat[:count].copy(), final.packed[:count].copy())


def _action_inputs(size: int) -> ActionInputs:
    """Gives what an observation shows of each action: its token (place, position, dangers), and at the end of the
    observation four numbers for each action."""
    tokens = [[*range(58 * token, 58 * token + 58), 232 + token, 236 + token] for token in range(4)]
    of_action = size - 4 * ACTIONS
    return ActionInputs(
        places=tuple(
            (*tokens[action % 4], *range(of_action + action, size, ACTIONS)) for action in range(ACTIONS)
        ),
        kinds=tuple(action // 4 for action in range(ACTIONS)),
        things=tuple(map(tuple, tokens)),
    )
