"""Counter-based randomness: a number depends only on its key, not on earlier draws.

A key is (seed, game, episode, ply, stream). The same key gives the same number in every process and in every order.
So serial and parallel runs are equal to the bit. The native core computes the same function
(``native/randomness.h``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words: TypeAlias = NDArray[np.uint64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Stream(IntEnum):
    """What a number is used for. Two uses of one (game, ply) never share a number."""

    RESET = 1
    CHANCE = 2
    RANDOM_ACTION = 3
    POLICY = 4
    OPPONENT = 5
    OPENING = 6
    LINEUP = 7


def _mix(word: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


def keyed_word(*key: int) -> int:
    """Computes 64 random bits from a key of integers."""
    word = 0
    for part in key:
        word = _mix(((word + _GOLDEN) ^ part) & _MASK)
    return _mix((word + _GOLDEN) & _MASK)


def keyed_words(*key: ArrayLike) -> Words:
    """Computes ``keyed_word`` for arrays of keys, which are broadcast."""
    with np.errstate(over="ignore"):  # NumPy warns where all parts so far are single numbers
        return _finish(_extend(np.zeros((), np.uint64), *key))


def _extend(word: Words, *parts: ArrayLike) -> Words:
    """Mixes further parts of a key into a word."""
    golden = np.uint64(_GOLDEN)
    for part in parts:
        word = _mix_array((word + golden) ^ np.asarray(part).astype(np.uint64))
    return word


def _finish(word: Words) -> Words:
    return _mix_array(word + np.uint64(_GOLDEN))


def keyed_uniform(*key: ArrayLike) -> NDArray[np.float64]:
    """Computes a number in [0, 1) with 53 random bits from each key."""
    return as_uniform(keyed_words(*key))


def as_uniform(words: Words) -> NDArray[np.float64]:
    """Turns each random word into a number in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix_array(word: Words) -> Words:
    """Computes ``_mix`` in place."""
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


class KeyedRandom:
    """Randomness for one game: a stream of numbers that is keyed again at every ply."""

    def __init__(self, seed: int, game: int, episode: int) -> None:
        self._key = (seed, game, episode)
        self._ply = 0
        self._stream: int = Stream.RESET
        self._draws = 0

    def move_to(self, ply: int) -> None:
        """Starts the stream for the chance events of a ply."""
        self._ply, self._stream, self._draws = ply, Stream.CHANCE, 0

    def word(self) -> int:
        """64 random bits."""
        self._draws += 1
        return keyed_word(*self._key, self._ply, self._stream, self._draws)

    def integer(self, below: int) -> int:
        """Draws a whole number in 0 … below-1."""
        return (self.word() * below) >> 64

    def uniform(self) -> float:
        """Draws a number in [0, 1)."""
        return float(self.word() >> 11) * 2.0**-53


class BatchRandom:
    """Randomness for a batch of games: ``KeyedRandom`` for arrays.

    A draw is the n-th call since the ply began. The last part of the key of its numbers is draw · 2³² + number. So
    rules must make the same calls in every ply, whatever the positions are. Then a game draws the same numbers in
    every batch.
    """

    def __init__(self, seed: int, games: NDArray[np.int64], episode: ArrayLike) -> None:
        self._games = _extend(np.full(len(games), 0, np.uint64), seed, games, episode)
        self._now = self._games
        self._draws = 0

    def move_to(self, ply: ArrayLike, stream: Stream) -> None:
        """Starts the stream of a ply."""
        self._now, self._draws = self._stream(ply, stream), 0

    def words(self, count: int, more: int = 0) -> Words:
        """[games, count]: random words. With ``more`` = 1, 2 … it returns further words of the previous call, so their
        number may depend on the positions."""
        self._draws += more == 0
        numbers = np.arange(more * count, (more + 1) * count)
        return _finish(_extend(self._now[:, None], (self._draws << 32) + numbers))

    def words_of(self, games: NDArray[np.int64], numbers: ArrayLike) -> Words:
        """Computes a word for each of these games. ``numbers`` distinguishes several words of one game."""
        self._draws += 1
        return _finish(_extend(self._now[games], (self._draws << 32) + np.asarray(numbers)))

    def words_apart(self, ply: ArrayLike, stream: Stream, games: NDArray[np.int32], part: ArrayLike) -> Words:
        """Computes a word for each of these games from a separate stream. It does not count as a draw."""
        return _finish(_extend(self._stream(ply, stream)[games], part))

    def _stream(self, ply: ArrayLike, stream: Stream) -> Words:
        return _extend(self._games, ply, int(stream))
