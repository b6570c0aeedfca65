"""Counter-based randomness: arrays equal scalars, keys are independent, and numbers are even."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keisei.games.randomness import BatchRandom, KeyedRandom, Stream, keyed_uniform, keyed_word, keyed_words

KEY_PART = st.integers(0, 2**64 - 1)


@given(st.lists(KEY_PART, min_size=1, max_size=6))
def test_the_array_version_equals_the_scalar_version(key: list[int]) -> None:
    assert int(keyed_words(*[np.array([part], np.uint64) for part in key])[0]) == keyed_word(*key)


def test_arrays_of_keys_are_broadcast() -> None:
    words = keyed_words(7, np.arange(5)[:, None], np.arange(3, dtype=np.int32))
    assert words.shape == (5, 3)
    assert words.dtype == np.uint64
    assert all(int(words[i, j]) == keyed_word(7, i, j) for i in range(5) for j in range(3))


def test_the_function_never_changes() -> None:
    """Saved runs and the native core depend on these very numbers."""
    assert keyed_word(7, 0, 0, 0, Stream.RANDOM_ACTION, 0) == 0xFE1F1D500F080F87
    assert KeyedRandom(7, 3, 1).word() == keyed_word(7, 3, 1, 0, Stream.RESET, 1)


def test_a_batch_draws_by_game_ply_and_call() -> None:
    episode = np.array([0, 4, 2], np.int32)
    random = BatchRandom(7, np.array([5, 6, 7]), episode)
    random.move_to(np.array([0, 1, 9], np.int32), Stream.CHANCE)
    first, more, other = random.words(2), random.words(2, more=1), random.words_of(np.array([2, 0]), 3)
    key = (7, 6, 4, 1, Stream.CHANCE)
    assert first[1].tolist() == [keyed_word(*key, (1 << 32) + number) for number in (0, 1)]
    assert more[1].tolist() == [keyed_word(*key, (1 << 32) + number) for number in (2, 3)]
    assert int(other[0]) == keyed_word(7, 7, 2, 9, Stream.CHANCE, (2 << 32) + 3)
    apart = random.words_apart(8, Stream.RANDOM_ACTION, np.array([1], np.int32), 3)
    assert int(apart[0]) == keyed_word(7, 6, 4, 8, Stream.RANDOM_ACTION, 3)
    random.move_to(0, Stream.RESET)
    assert int(random.words(1)[1, 0]) == keyed_word(7, 6, 4, 0, Stream.RESET, 1 << 32)


def test_words_of_neighbouring_keys_do_not_repeat() -> None:
    words = keyed_words(np.arange(50)[:, None, None], np.arange(50)[:, None], np.arange(40))
    assert len(np.unique(words)) == words.size


def test_every_bit_is_set_half_of_the_time() -> None:
    words = keyed_words(1, np.arange(20_000))
    for bit in range(64):
        share = float(((words >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(share - 0.5) < 0.02  # more than five standard deviations


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    numbers = keyed_uniform(3, np.arange(50_000))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    chi_squared = float(((counts - 2500) ** 2 / 2500).sum())
    assert chi_squared < 50  # 19 degrees of freedom: exceeded once in ten thousand times


def test_a_game_draws_the_same_at_a_ply_whatever_it_drew_before() -> None:
    eager, lazy = KeyedRandom(1, 2, 3), KeyedRandom(1, 2, 3)
    for _ in range(10):
        eager.word()
    eager.move_to(4)
    lazy.move_to(4)
    assert [eager.integer(6) for _ in range(5)] == [lazy.integer(6) for _ in range(5)]
    assert eager.uniform() == lazy.uniform()


def test_games_episodes_and_seeds_draw_different_numbers() -> None:
    keys = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    assert len({KeyedRandom(*key).word() for key in keys}) == len(keys)


def test_whole_numbers_take_every_value_about_as_often() -> None:
    counts = np.bincount([KeyedRandom(5, game, 0).integer(6) for game in range(6000)], minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 150
