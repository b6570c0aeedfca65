"""A game that takes almost no time, to measure everything around games.

Float planes of 46 x 81, 2187 actions, 100 steps an episode: 17.1 KB a row, as in the published comparison of
collectors. It is written as a batch, since the game itself must take no time.
"""

from __future__ import annotations

import numpy as np

from keisei.errors import IllegalActionError, SavedStateError
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
from keisei.games.randomness import Stream, keyed_words
from keisei.games.saved import digest_of, unwrap, wrap

PLANES = (46, 9, 9)
ACTIONS = 2187


class DummyGame:
    """One seat. Every second action is legal. The planes show the ply. A game ends after ``length`` steps."""

    def __init__(self, *, batch: int, seed: int, first_game: int, length: int = 100) -> None:
        self.batch = batch
        observation = ObservationSpec(PLANES, np.dtype(np.float32))
        packed_bytes = observation.nbytes + ACTIONS
        self.spec = GameSpec("dummy", 1, ACTIONS, observation, packed_bytes, max_plies=None)
        self._seed, self._length = seed, length
        self._games = np.arange(batch, dtype=np.int32)
        self._keys = self._games + first_game
        self._ply = np.zeros(batch, np.int32)
        self._episode = np.zeros(batch, np.int32)
        self._packed = np.zeros((batch, packed_bytes), np.uint8)
        self._planes = self._packed[:, : observation.nbytes].view(np.float32)
        self._planes[:] = np.linspace(0, 1, observation.size, dtype=np.float32)
        self._mask = self._packed[:, observation.nbytes :].view(np.bool_)
        self._mask[:, ::2] = True
        self._digest = digest_of(self.spec, {"length": length})

    def rows(self) -> Rows:
        return Rows(
            self._games.copy(), np.zeros(self.batch, np.int32), self._episode.copy(), self._ply.copy()
        )

    def observe(self, out: Array | None = None) -> Array:
        out = out_array(out, (self.batch, *PLANES), np.float32, "observe")
        out.reshape(self._planes.shape)[:] = self._planes
        return out

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        out = out_array(out, (self.batch, ACTIONS), np.bool_, "legal")
        out[:] = self._mask
        return out

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        out = out_array(out, self._packed.shape, np.uint8, "pack")
        out[:] = self._packed
        return out

    def unpack(
        self, packed: ByteArray, observations: Array | None = None, legal: BoolArray | None = None
    ) -> tuple[Array, BoolArray]:
        rows, split = len(packed), self.spec.observation.nbytes
        observations = out_array(observations, (rows, *PLANES), np.float32, "unpack")
        legal = out_array(legal, (rows, ACTIONS), np.bool_, "unpack")
        observations.reshape(rows, self.spec.observation.size).view(np.uint8)[:] = packed[:, :split]
        legal.view(np.uint8)[:] = packed[:, split:]
        return observations, legal

    def random_actions(self) -> IntArray:
        words = keyed_words(self._seed, self._keys, self._episode, self._ply, Stream.RANDOM_ACTION)
        choices = (ACTIONS + 1) // 2
        return (((words >> np.uint64(32)) * np.uint64(choices)) >> np.uint64(32)).astype(np.int32) * 2

    def step(self, actions: Array) -> Step:
        chosen = action_array(actions, self.batch, ACTIONS)
        if (chosen & 1).any():
            row = int(np.flatnonzero(chosen & 1)[0])
            raise IllegalActionError(f"action {chosen[row]} in row {row} is odd; even actions are legal")
        self._ply += 1
        plies = self._ply.copy()
        done = self._ply >= self._length
        rewards = (chosen == 0).astype(np.float32)[:, None]
        final = FinalRows(self._games[done], np.zeros(int(done.sum()), np.int32), self._packed[done])
        self._episode += done
        self._ply[done] = 0
        self._planes[:, 0] = self._ply
        scores = np.zeros((self.batch, 1), np.float32)
        return Step(
            rewards, done, np.zeros(self.batch, np.bool_), done.astype(np.uint8), scores, plies, final
        )

    def save(self) -> bytes:
        return wrap(self._digest, self._episode.tobytes() + self._ply.tobytes())

    def load(self, blob: bytes) -> None:
        state = np.frombuffer(unwrap(blob, self._digest, "dummy"), np.int32)
        if len(state) != 2 * self.batch:
            raise SavedStateError(f"saved state has {len(state) // 2} games, this batch has {self.batch}")
        self._episode[:], self._ply[:] = state.reshape(2, self.batch)
        self._planes[:, 0] = self._ply
