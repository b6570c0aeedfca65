"""``ArrayBatch``: a batch of games whose whole state is a few arrays with one entry for each game.

A game on top of it says who acts, plays one step of all games at once, restarts games, and gives packed rows. The
rest of the contract is here. All actions are legal in all positions. The score of a game is the sum of its rewards.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

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
from keisei.games.options import MAX_GAME
from keisei.games.randomness import BatchRandom, Stream
from keisei.games.saved import Reader, digest_of, unwrap, wrap

__all__ = ["ArrayBatch"]

_NUMBERING = struct.Struct("<QQI")  # seed, first game, batch
TERMINATED, TRUNCATED = 1, 2
"""Codes of ``Step.ending``."""


class ArrayBatch(ABC):
    """The part of a game that does not depend on its rules.

    A subclass calls ``__init__``, makes its arrays with ``keep``, and then calls ``start``.
    """

    def __init__(
        self, spec: GameSpec, options: dict[str, object], *, batch: int, seed: int, first_game: int
    ) -> None:
        self.spec, self.batch = spec, batch
        self.seed, self.first_game = seed, first_game
        self._digest = digest_of(spec, options)
        self._kept: dict[str, Array] = {}
        self.episode = self.keep("episode", np.zeros(batch, np.int32))
        self.ply = self.keep("ply", np.zeros(batch, np.int32))
        self.returns = self.keep("returns", np.zeros((batch, spec.seats), np.float64))
        """[batch, seats]: the sum of the rewards of each seat since its game began."""
        self._all_games = np.repeat(np.arange(batch, dtype=np.int32), spec.seats)
        self._all_seats = np.tile(np.arange(spec.seats, dtype=np.int32), batch)
        self._last_texts: dict[int, str] | None = None

    def keep(self, name: str, array: Array) -> Array:
        """Makes an array part of the saved state. It is changed in place and never replaced."""
        self._kept[name] = array
        return array

    def start(self) -> None:
        """Begins the first game in every place of the batch."""
        self._begin(np.arange(self.batch))

    def _begin(self, games: NDArray[np.int64]) -> None:
        self._key_randomness()
        self.random.move_to(0, Stream.RESET)
        self.restart(games)

    def _key_randomness(self) -> None:
        numbers = self.first_game + np.arange(self.batch)
        self.random = BatchRandom(self.seed, numbers, self.episode)

    # What the rules decide ---------------------------------------------------------------------------

    @abstractmethod
    def acting(self) -> BoolArray | None:
        """[batch, seats]: who acts now; None if all seats of all games act. Every game has a seat that acts."""

    @abstractmethod
    def play(self, actions: IntArray) -> tuple[FloatArray, BoolArray]:
        """Plays one step of all games, and returns rewards [batch, seats] and which games the rules ended [batch].

        ``actions`` is [batch, seats], with -1 for seats that do not act.
        """

    @abstractmethod
    def restart(self, games: NDArray[np.int64]) -> None:
        """Begins new games in these places. ``episode``, ``ply`` and ``random`` are set already."""

    @abstractmethod
    def pack_rows(self, games: Array, seats: Array) -> ByteArray:
        """[rows, packed_bytes]: the packed rows of these seats."""

    @abstractmethod
    def expand(self, packed: ByteArray, out: Array) -> None:
        """Writes the observations of packed rows."""

    @abstractmethod
    def are_possible(self, packed: ByteArray) -> BoolArray:
        """[rows]: whether packed rows can be expanded."""

    @abstractmethod
    def text(self, game: int = 0) -> str:
        """Draws a game."""

    def check_state(self) -> None:
        """Raises ``SavedStateError`` if the arrays, which were read from a saved state, are not possible."""
        limit = MAX_GAME if self.spec.max_plies is None else self.spec.max_plies
        if (self.episode < 0).any() or (self.ply < 0).any() or (self.ply >= limit).any():
            raise SavedStateError(f"saved state of {self.spec.name} has an impossible episode or ply")
        if not np.isfinite(self.returns).all():
            raise SavedStateError(f"saved state of {self.spec.name} has rewards that are not finite")

    # The contract ------------------------------------------------------------------------------------

    def _row_index(self) -> tuple[IntArray, IntArray]:
        """Game and seat of each row."""
        acting = self.acting()
        if acting is None:
            return self._all_games, self._all_seats
        index = np.flatnonzero(acting)
        return self._all_games[index], self._all_seats[index]

    def rows(self) -> Rows:
        game, seat = self._row_index()
        return Rows(game.copy(), seat.copy(), self.episode[game], self.ply[game])

    def observe(self, out: Array | None = None) -> Array:
        packed = self.pack_rows(*self._row_index())
        seen = self.spec.observation
        out = out_array(out, (len(packed), *seen.shape), seen.dtype, "observe")
        self.expand(packed, out)
        return out

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        rows = len(self._row_index()[0])
        out = out_array(out, (rows, self.spec.num_actions), np.bool_, "legal")
        out[...] = True
        return out

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        packed = self.pack_rows(*self._row_index())
        if out is None:
            return packed
        out = out_array(out, packed.shape, np.uint8, "pack")
        out[...] = packed
        return out

    def unpack(
        self, packed: ByteArray, observations: Array | None = None, legal: BoolArray | None = None
    ) -> tuple[Array, BoolArray]:
        size, seen = self.spec.packed_bytes, self.spec.observation
        packed = np.asarray(packed)
        if packed.ndim != 2 or packed.shape[1] != size or packed.dtype != np.uint8:
            raise GameError(
                f"packed rows of {self.spec.name} are uint8 of shape (rows, {size}), got {packed.dtype} of shape "
                f"{packed.shape}"
            )
        possible = self.are_possible(packed)
        if not possible.all():
            raise GameError(
                f"row {int(possible.argmin())} of the packed rows is no possible row of {self.spec.name}; it was "
                f"damaged"
            )
        observations = out_array(observations, (len(packed), *seen.shape), seen.dtype, "unpack")
        legal = out_array(legal, (len(packed), self.spec.num_actions), np.bool_, "unpack")
        self.expand(packed, observations)
        legal[...] = True
        return observations, legal

    def random_actions(self) -> IntArray:
        game, seat = self._row_index()
        words = self.random.words_apart(self.ply, Stream.RANDOM_ACTION, game, seat)
        return _below(words, self.spec.num_actions)

    def step(self, actions: Array) -> Step:
        game, seat = self._row_index()
        chosen = action_array(actions, len(game), self.spec.num_actions)
        if len(chosen) == self.batch * self.spec.seats:
            table = chosen.reshape(self.batch, self.spec.seats)
        else:
            table = np.full((self.batch, self.spec.seats), -1, np.int32)
            table[game, seat] = chosen
        self.random.move_to(self.ply, Stream.CHANCE)
        rewards, terminated = self.play(table)
        self.ply += 1
        self.returns += rewards
        truncated = (self.ply == self.spec.max_plies) & ~terminated
        done = terminated | truncated
        ending = terminated * np.uint8(TERMINATED) + truncated * np.uint8(TRUNCATED)
        scores = (self.returns * done[:, None]).astype(np.float32)
        plies = self.ply.copy()
        return Step(rewards, terminated, truncated, ending, scores, plies, self._finish(done))

    def _finish(self, done: BoolArray) -> FinalRows:
        """Collects the last positions of finished games, and restarts these games."""
        games = np.flatnonzero(done)
        if not len(games):
            nothing = np.empty(0, np.int32)
            return FinalRows(nothing, nothing, np.empty((0, self.spec.packed_bytes), np.uint8))
        acting = self.acting()
        last = np.repeat(done[:, None], self.spec.seats, axis=1) if acting is None else acting & done[:, None]
        game, seat = (index.astype(np.int32) for index in np.nonzero(last))
        final = FinalRows(game, seat, self.pack_rows(game, seat))
        if self._last_texts is not None:
            self._last_texts.update((game, self.text(game)) for game in games.tolist())
        self.episode[games] += 1
        self.ply[games] = 0
        self.returns[games] = 0
        self._begin(games)
        return final

    def keep_last_positions(self) -> None:
        self._last_texts = {}

    def last_text(self, game: int = 0) -> str:
        if self._last_texts is None or game not in self._last_texts:
            raise GameError(
                f"no last position of game {game} of {self.spec.name} is kept; call keep_last_positions() before the "
                f"game ends"
            )
        return self._last_texts[game]

    # Keeping -----------------------------------------------------------------------------------------

    def save(self) -> bytes:
        head = _NUMBERING.pack(self.seed, self.first_game, self.batch)
        return wrap(self._digest, head + b"".join(array.tobytes() for array in self._kept.values()))

    def load(self, blob: bytes) -> None:
        reader = Reader(unwrap(blob, self._digest, self.spec.name))
        seed, first_game, batch = reader.unpack(_NUMBERING)
        if batch != self.batch:
            raise SavedStateError(f"saved state holds {batch} games, this batch has {self.batch}")
        read = [
            np.frombuffer(reader.take(array.nbytes), array.dtype).reshape(array.shape)
            for array in self._kept.values()
        ]
        reader.finish()
        before = [array.copy() for array in self._kept.values()]
        self._set(read)
        try:
            self.check_state()
        except SavedStateError:
            self._set(before)
            raise
        self.seed, self.first_game = seed, first_game
        self._key_randomness()

    def _set(self, arrays: list[Array]) -> None:
        for array, new in zip(self._kept.values(), arrays, strict=True):
            array[...] = new


def _below(words: NDArray[np.uint64], count: int) -> IntArray:
    """Turns random words into whole numbers in 0 … count-1."""
    return (((words >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int32)
