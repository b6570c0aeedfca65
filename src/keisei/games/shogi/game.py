"""Shogi as a batch of games, on top of the native core."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from keisei.config import Settings, parse_settings
from keisei.errors import GameError, IllegalActionError, SavedStateError
from keisei.games.contract import (
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
from keisei.games.pictures import LastPositions
from keisei.games.saved import digest_of, unwrap, wrap
from keisei.games.shogi import lookahead, meaning
from keisei.games.shogi.board import Board
from keisei.games.shogi.face import ShogiFace
from keisei.games.shogi.match_records import ShogiRecords
from keisei.games.shogi.sfen import STARTING_SFEN, native_position, parse_sfen
from keisei.native import core

__all__ = ["ShogiGame", "ShogiOptions"]

_BYTES, _BOOLS = np.dtype(np.uint8), np.dtype(np.bool_)
"""Made once, since in a batch of 64 the Python work of each call is noticeable."""
_LARGEST = 1_000_000
"""The largest reward. Rewards are float32, and much larger ones lose digits or become infinite."""
_Reward: TypeAlias = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]
_Weight: TypeAlias = Annotated[float, Field(ge=0, le=_LARGEST)]


class ShogiOptions(Settings):
    """The options of a game of Shogi."""

    max_plies: Annotated[int, Field(ge=1, le=4096)] = 512
    """The most plies of a game."""
    limit: Literal["cut", "draw"] = "cut"
    """What happens to a game that reaches ``max_plies``: it is cut off (truncated, a learner bootstraps), or a
    draw."""
    start: str = STARTING_SFEN
    """The position that every game starts from, as SFEN."""
    declaration: bool = False
    """A side that can declare a win by the 27-point rule on its turn wins."""
    win: _Reward = 1.0
    """Reward of the winner."""
    loss: _Reward = -1.0
    """Reward of the loser."""
    draw: _Reward = 0.0
    """Reward of both sides for a draw by repetition."""
    ply_cost: _Weight = 0.0
    """Cost of every ply, for both sides."""
    material: _Weight = 0.0
    """Weight of the potential-based reward for material. With 1, a whole set of pieces is worth 1."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The learner's discount. The potential needs it, so that it does not change the best play."""
    keep_material: bool = False
    """Keep the reward for material when the rules end a game, instead of taking it back. Beginners learn from it
    faster, but material then has a small value of its own."""

    @field_validator("start")
    @classmethod
    def _can_be_played(cls, start: str) -> str:
        if native_position(parse_sfen(start), start).ending()[0]:
            raise ValueError("no game can start here: the side to move has no legal move")
        return start

    @model_validator(mode="after")
    def _is_not_over(self) -> ShogiOptions:
        if self.declaration and Board(self.start).can_declare_win():
            raise ValueError(
                f"no game with declaration can start from {self.start!r}: the side to move may declare a win "
                f"at once"
            )
        return self

    @property
    def zero_sum(self) -> bool:
        return self.win == -self.loss and self.draw == 0 and self.ply_cost == 0


class ShogiGame:
    """Japanese chess, all rules, many games at once. See docs/games/shogi.md for planes and actions."""

    OPTION_NAMES = tuple(ShogiOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = parse_settings(ShogiOptions, options, "the options of shogi")
        self.batch = batch
        self.spec = _spec(self.options)
        o = self.options
        self._core = core.Batch(
            batch, seed, first_game, Board(o.start).pack(), o.max_plies, o.declaration, o.limit == "draw",
            o.win, o.loss, o.draw, o.ply_cost, o.material, o.discount, o.keep_material,
        )  # fmt: skip
        self._games = np.arange(batch, dtype=np.int32)
        self._observed, self._masked = (batch, *self.spec.observation.shape), (batch, core.ACTIONS)
        # Memory in which the core writes the last positions of finished games.
        self._final = FinalRows(
            np.empty(batch, np.int32),
            np.empty(batch, np.int32),
            np.empty((batch, core.PACKED_BYTES), np.uint8),
        )
        self._none_final = _first(self._final, 0)
        self._digest = digest_of(self.spec, self.options.model_dump())
        self._last = LastPositions()

    def rows(self) -> Rows:
        batch = self.batch
        seat, episode, ply = np.empty(batch, np.int32), np.empty(batch, np.int32), np.empty(batch, np.int32)
        self._core.rows(seat, episode, ply)
        return Rows(self._games.copy(), seat, episode, ply)

    def observe(self, out: Array | None = None) -> Array:
        out = out_array(out, self._observed, _BYTES, "observe")
        self._core.observe(out)
        return out

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        out = out_array(out, self._masked, _BOOLS, "legal")
        self._core.legal(out)
        return out

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        out = out_array(out, (self.batch, core.PACKED_BYTES), _BYTES, "pack")
        self._core.pack(out)
        return out

    def unpack(
        self,
        packed: ByteArray,
        observations: Array | None = None,
        legal: BoolArray | None = None,
    ) -> tuple[Array, BoolArray]:
        packed = np.ascontiguousarray(packed)
        if packed.ndim != 2 or packed.shape[1] != core.PACKED_BYTES or packed.dtype != np.uint8:
            raise GameError(
                f"unpack takes uint8 of shape (rows, {core.PACKED_BYTES}), got {packed.dtype} of shape "
                f"{packed.shape}"
            )
        rows = len(packed)
        observations = out_array(observations, (rows, *self.spec.observation.shape), np.uint8, "unpack")
        legal = out_array(legal, (rows, core.ACTIONS), np.bool_, "unpack")
        bad = core.expand(packed, self.options.max_plies, observations, legal)
        if bad >= 0:
            raise GameError(f"row {bad} of the packed rows is not a possible Shogi position; it was damaged")
        return observations, legal

    def random_actions(self) -> IntArray:
        actions = np.empty(self.batch, np.int32)
        self._core.random_actions(actions)
        return actions

    def step(self, actions: Array) -> Step:
        batch = self.batch
        chosen = actions
        if type(chosen) is not np.ndarray or chosen.dtype != np.int32 or chosen.shape != (batch,):
            chosen = action_array(actions, batch, core.ACTIONS)
        rewards, scores = np.empty((batch, 2), np.float32), np.empty((batch, 2), np.float32)
        terminated, truncated = np.empty(batch, np.bool_), np.empty(batch, np.bool_)
        ending, plies = np.empty(batch, np.uint8), np.empty(batch, np.int32)
        finished = self._core.step(
            np.ascontiguousarray(chosen), rewards, terminated, truncated, ending, scores, plies,
            self._final.game, self._final.seat, self._final.packed,
        )  # fmt: skip
        if finished < 0:
            action_array(chosen, batch, core.ACTIONS)  # says so where an action is out of range
            self._refuse(-1 - finished, int(chosen[-1 - finished]))
        final = _first(self._final, finished) if finished else self._none_final
        if finished:
            self._last.note(final)
        return Step(rewards, terminated, truncated, ending, scores, plies, final)

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """See ``keisei.games.lookahead``. Repetition, the 27-point rule and the ply limit are ignored."""
        return lookahead.grab(self._packed_rows(selected), keys)

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        return lookahead.search(self._packed_rows(selected), depth, keys)

    def text(self, game: int = 0) -> str:
        """Draws the board of a game, as KIF does."""
        return str(Board.from_packed(self.pack()[game].tobytes()))

    def move_name(self, action: int, game: int = 0) -> str:
        """Gives a move as USI writes it."""
        return Board.from_packed(self.pack()[game].tobytes()).move_from_action(action).usi()

    def observation_meaning(self) -> list[str]:
        return meaning.plane_meaning()

    def action_meaning(self) -> list[str]:
        return meaning.action_meaning()

    def keep_last_positions(self) -> None:
        self._last.keep()

    def last_text(self, game: int = 0) -> str:
        return str(Board.from_packed(self._last.of(game)))

    def save(self) -> bytes:
        return wrap(self._digest, self._core.save())

    def load(self, blob: bytes) -> None:
        if not self._core.load(unwrap(blob, self._digest, "shogi")):
            raise SavedStateError(
                f"saved state does not fit a batch of {self.batch} Shogi games; was it made by a batch of "
                f"another size?"
            )

    def _packed_rows(self, selected: IntArray | None) -> ByteArray:
        packed = self.pack()
        return packed if selected is None else packed[selected]

    def _refuse(self, row: int, action: int) -> None:
        board = Board.from_packed(self.pack()[row].tobytes())
        raise IllegalActionError(
            f"action {action} in row {row} is not legal in {board.sfen()!r}; take one that legal() marks"
        )


def _first(final: FinalRows, count: int) -> FinalRows:
    """Copies the first rows. The next step does not change the copy."""
    return FinalRows(final.game[:count].copy(), final.seat[:count].copy(), final.packed[:count].copy())


def _spec(options: ShogiOptions) -> GameSpec:
    planes = ObservationSpec(
        (core.PLANES, 9, 9), np.dtype(np.uint8), scale=core.PLANE_SCALES, flat=core.FLAT_PLANES
    )
    return GameSpec(
        name="shogi",
        seats=2,
        num_actions=core.ACTIONS,
        observation=planes,
        packed_bytes=core.PACKED_BYTES,
        zero_sum=options.zero_sum,
        max_plies=options.max_plies,
        endings=core.ENDINGS,
        plane_actions=True,
        looks_ahead=True,
        record_format=ShogiRecords(),
        face=ShogiFace(),
    )
