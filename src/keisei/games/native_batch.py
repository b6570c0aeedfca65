"""A game whose batch is in the native core: what all such games do in the same way.

A subclass makes the batch of the core and the spec. It expands packed rows, and says what is wrong with an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

import numpy as np

from keisei.errors import GameError, SavedStateError
from keisei.games.contract import (
    Array,
    BoolArray,
    ByteArray,
    FinalRows,
    FloatArray,
    GameSpec,
    IntArray,
    Rows,
    Step,
    action_array,
    out_array,
)
from keisei.games.pictures import LastPositions
from keisei.games.saved import digest_of, unwrap, wrap

__all__ = ["CoreBatch", "NativeBatch"]

_BYTES, _BOOLS = np.dtype(np.uint8), np.dtype(np.bool_)
"""Made once, since in a batch of 64 the Python work of each call is noticeable."""


class CoreBatch(Protocol):
    """A batch of games in the native core. It writes into the arrays that it gets."""

    def rows(self, seat: IntArray, episode: IntArray, ply: IntArray, /) -> None: ...
    def observe(self, out: ByteArray, /) -> None: ...
    def legal(self, out: BoolArray, /) -> None: ...
    def pack(self, out: ByteArray, /) -> None: ...
    def random_actions(self, out: IntArray, /) -> None: ...
    def step(
        self,
        actions: IntArray,
        rewards: FloatArray,
        terminated: BoolArray,
        truncated: BoolArray,
        ending: ByteArray,
        scores: FloatArray,
        plies: IntArray,
        final_game: IntArray,
        final_seat: IntArray,
        final_packed: ByteArray,
        /,
    ) -> int:
        """Plays one step. Returns the number of games that ended, or -1 - row for the first row whose action is not
        legal."""
        ...

    def save(self) -> bytes: ...
    def load(self, blob: bytes, /) -> bool: ...


class NativeBatch:
    """A batch of games of the core, as the contract of games wants it. One seat acts at a time."""

    def __init__(self, batch: int, games: CoreBatch, spec: GameSpec, options: Mapping[str, Any]) -> None:
        self.batch, self.spec = batch, spec
        self._core = games
        self._games = np.arange(batch, dtype=np.int32)
        self._observed, self._masked = (batch, *spec.observation.shape), (batch, spec.num_actions)
        # Memory in which the core writes the last positions of finished games.
        self._final = FinalRows(
            np.empty(batch, np.int32),
            np.empty(batch, np.int32),
            np.empty((batch, spec.packed_bytes), np.uint8),
        )
        self._none_final = _first(self._final, 0)
        self._digest = digest_of(spec, options)
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
        legal = out_array(legal, (rows, self.spec.num_actions), _BOOLS, "unpack")
        self._expand(packed, observations, legal)
        return observations, legal

    def random_actions(self) -> IntArray:
        actions = np.empty(self.batch, np.int32)
        self._core.random_actions(actions)
        return actions

    def step(self, actions: Array) -> Step:
        batch, seats = self.batch, self.spec.seats
        chosen = actions
        if type(chosen) is not np.ndarray or chosen.dtype != np.int32 or chosen.shape != (batch,):
            chosen = action_array(actions, batch, self.spec.num_actions)
        rewards, scores = np.empty((batch, seats), np.float32), np.empty((batch, seats), np.float32)
        terminated, truncated = np.empty(batch, np.bool_), np.empty(batch, np.bool_)
        ending, plies = np.empty(batch, np.uint8), np.empty(batch, np.int32)
        finished = self._core.step(
            np.ascontiguousarray(chosen), rewards, terminated, truncated, ending, scores, plies,
            self._final.game, self._final.seat, self._final.packed,
        )  # fmt: skip
        if finished < 0:
            action_array(chosen, batch, self.spec.num_actions)  # raises if an action is out of range
            self._refuse(-1 - finished, int(chosen[-1 - finished]))
        final = _first(self._final, finished) if finished else self._none_final
        if finished:
            self._last.note(final)
        return Step(rewards, terminated, truncated, ending, scores, plies, final)

    def save(self) -> bytes:
        return wrap(self._digest, self._core.save())

    def load(self, blob: bytes) -> None:
        if not self._core.load(unwrap(blob, self._digest, self.spec.name)):
            raise SavedStateError(
                f"saved state does not fit a batch of {self.batch} {self.spec.name.capitalize()} games; was it made "
                f"by a batch of another size?"
            )

    def text(self, game: int = 0) -> str:
        """Draws the board of a game."""
        return self._draw(self.pack()[game].tobytes())

    def keep_last_positions(self) -> None:
        self._last.keep()

    def last_text(self, game: int = 0) -> str:
        return self._draw(self._last.of(game))

    def _expand(self, packed: ByteArray, observations: Array, legal: BoolArray) -> None:
        """Fills the observations and masks of packed rows. Raises ``GameError`` for rows that were damaged."""
        raise NotImplementedError

    def _draw(self, packed: bytes) -> str:
        raise NotImplementedError

    def _refuse(self, row: int, action: int) -> NoReturn:
        """Raises ``IllegalActionError``, which says what is wrong with the action."""
        raise NotImplementedError


def _first(final: FinalRows, count: int) -> FinalRows:
    """Copies the first rows. The next step does not change the copy."""
    return FinalRows(final.game[:count].copy(), final.seat[:count].copy(), final.packed[:count].copy())
