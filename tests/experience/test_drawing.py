"""Draws follow their distribution, and steps follow from what is inserted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from histories_for_tests import GAMES, KINDS, Histories
from replays_for_tests import cut, replay_of

from keisei.config import parse_settings
from keisei.errors import ConfigError, LearningError
from keisei.experience.collected import CollectedSlab
from keisei.experience.drawing import EqualDrawing, PrioritisedDrawing
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.games.randomness import keyed_uniform
from keisei.native import core, load_core, usable_builds

KIND, STEPS = KINDS[0], 4


def played(slabs: int = 6) -> list[CollectedSlab]:
    histories = Histories(np.random.default_rng(2), KIND, "alone")
    return cut([histories.column(slabs * STEPS) for _ in range(GAMES)], KIND, STEPS)


def filled(**settings: Any) -> ReplayBuffer:
    buffer = replay_of(KIND, STEPS, GAMES, 6, **settings)
    buffer.take(played())
    return buffer


def chi_square(counts: np.ndarray[Any, Any], chances: np.ndarray[Any, Any]) -> float:
    """How many standard deviations the statistic is above its mean."""
    expected = counts.sum() * chances
    freedom = len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


def drawn_counts(buffer: ReplayBuffer, size: int, rounds: int) -> dict[int, int]:
    places = np.concatenate([buffer.view().sample(size, 5, key).places for key in range(rounds)])
    return dict(zip(*(part.tolist() for part in np.unique(places, return_counts=True)), strict=True))


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_prioritised_sampling_matches_its_distribution(alpha: float) -> None:
    buffer = filled(alpha=alpha, smallest_error=0.01)
    view = buffer.view()
    everything = view.sample(len(buffer), 0, 0)
    errors = np.random.default_rng(1).exponential(size=len(everything)).astype(np.float32)
    view.update_priorities(everything, -errors)
    chances = (errors.astype(np.float64) + 0.01) ** alpha
    chances /= chances.sum()
    # Single draws are independent of each other.
    counts = drawn_counts(buffer, 1, 20_000)
    found = np.array([counts.get(place, 0) for place in everything.places.tolist()])
    assert abs(chi_square(found, chances)) < 4
    # A large sample takes one from each share, so it is nearer than chance.
    counts = drawn_counts(buffer, 10_000, 1)
    found = np.array([counts.get(place, 0) for place in everything.places.tolist()])
    assert (np.abs(found - 10_000 * chances) < 2).all()


def test_equal_sampling_matches_its_distribution() -> None:
    buffer = filled(prioritised=False)
    counts = drawn_counts(buffer, 100, 200)
    assert len(counts) == len(buffer)
    found = np.array(list(counts.values()))
    assert abs(chi_square(found, np.full(len(found), 1 / len(found)))) < 4


def test_importance_weights_correct_for_the_chances() -> None:
    """With beta 1, a weighted mean over draws is the plain mean."""
    buffer = filled(alpha=0.8, beta=0.0, final_beta=1.0)
    view = buffer.view()
    everything = view.sample(len(buffer), 0, 0)
    assert (everything.weights == 1).all(), "all have the same priority"
    errors = np.random.default_rng(1).exponential(size=len(everything)).astype(np.float32)
    view.update_priorities(everything, errors)
    sample = view.sample(20_000, 1, 1)
    worth = dict(zip(everything.places.tolist(), np.arange(len(everything)), strict=True))
    values = np.array([worth[place] for place in sample.places.tolist()])
    assert np.average(values, weights=sample.weights) == pytest.approx(
        np.mean(list(worth.values())), rel=0.02
    )
    assert sample.weights.max() == 1
    assert (view.sample(100, 1, 1, progress=0.0).weights == 1).all()
    half, whole = (view.sample(100, 1, 1, progress=progress).weights for progress in (0.5, 1.0))
    np.testing.assert_allclose(half**2, whole, rtol=1e-4)


def test_new_decisions_have_the_highest_priority() -> None:
    buffer, slabs = replay_of(KIND, STEPS, GAMES, 6, alpha=0.5), played()
    buffer.take(slabs[:1])
    sample = buffer.view().sample(len(buffer), 0, 0)
    for error in (3.0, 0.2):
        buffer.view().update_priorities(sample, np.full(len(sample), error, np.float32))
    before = set(sample.places.tolist())
    buffer.take(slabs[1:2])
    drawing = buffer._drawing
    assert isinstance(drawing, PrioritisedDrawing)
    places = buffer.view().sample(4000, 1, 1).places
    priorities = {
        place: float(drawing.priorities(np.array([place], np.int32))[0]) for place in set(places.tolist())
    }
    new = set(priorities) - before
    assert new
    assert all(priorities[place] == pytest.approx(math.sqrt(3.001)) for place in new)
    assert all(priorities[place] == pytest.approx(math.sqrt(0.201)) for place in set(priorities) & before)


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_errors_that_are_no_numbers_are_refused(error: float) -> None:
    buffer = filled()
    sample = buffer.view().sample(4, 0, 0)
    with pytest.raises(LearningError, match="not all finite"):
        buffer.view().update_priorities(sample, np.array([1, error, 1, 1], np.float32))
    assert buffer.view().sample(4, 0, 0).places.tolist() == sample.places.tolist()


def test_a_replay_without_priorities_ignores_them() -> None:
    buffer = filled(prioritised=False)
    sample = buffer.view().sample(8, 0, 0)
    buffer.view().update_priorities(sample, np.full(8, 50.0, np.float32))
    assert isinstance(buffer._drawing, EqualDrawing)
    assert buffer.view().sample(8, 0, 0).places.tolist() == sample.places.tolist()


# The tree


@pytest.mark.parametrize("build", usable_builds())
@pytest.mark.parametrize("size", [1, 15, 16, 17, 128, 129, 5000])
def test_a_tree_finds_what_a_running_sum_finds(build: str, size: int) -> None:
    native: Any = load_core(build)
    rng = np.random.default_rng(size)
    priorities = np.where(rng.random(size) < 0.3, 0, rng.exponential(size=size)).astype(np.float32)
    priorities[rng.integers(size)] = 2.0
    tree = native.SumTree(size)
    order = rng.permutation(size).astype(np.int32)
    tree.set(order, rng.random(size).astype(np.float32))  # other numbers first
    for part in np.array_split(order, 7):
        tree.set(part, priorities[part])
    running = np.cumsum(priorities, dtype=np.float64)
    assert tree.total == pytest.approx(running[-1])
    places, drawn = np.empty(997, np.int32), np.empty(997, np.float32)
    tree.draw(3, 4, places, drawn)
    marks = (np.arange(997) + keyed_uniform(3, 4, np.arange(997))) / 997 * tree.total
    expected = np.searchsorted(running, marks, side="right")
    near = np.abs(running[:, None] - marks).min(axis=0) < 1e-9 * tree.total
    assert (places[~near] == expected[~near]).all()
    assert (drawn == priorities[places]).all()
    assert (drawn > 0).all()


def test_sums_depend_on_the_priorities_alone() -> None:
    """However they came about, so that a resumed run draws the same."""
    rng = np.random.default_rng(1)
    priorities = rng.exponential(size=3000).astype(np.float32)
    places = np.arange(3000, dtype=np.int32)
    one, other = core.SumTree(3000), core.SumTree(3000)
    one.set(places, priorities)
    for _ in range(50):
        some = rng.integers(0, 3000, 100).astype(np.int32)
        other.set(some, rng.exponential(size=100).astype(np.float32))
    shuffled = rng.permutation(places)
    other.set(shuffled, priorities[shuffled])
    assert one.total == other.total


@pytest.mark.parametrize(("first", "count"), [(0, 3000), (0, 0), (7, 1), (15, 2), (100, 333), (2999, 1)])
def test_clearing_neighbours_is_setting_them_to_nothing(first: int, count: int) -> None:
    places = np.arange(3000, dtype=np.int32)
    one, other = core.SumTree(3000), core.SumTree(3000)
    for tree in (one, other):
        tree.set(places, 1 + np.sin(places).astype(np.float32))
    one.clear(first, count)
    other.set(places[first : first + count], np.zeros(count, np.float32))
    assert one.total == other.total
    found, expected = np.empty(3000, np.float32), np.empty(3000, np.float32)
    one.get(places, found)
    other.get(places, expected)
    assert found.tobytes() == expected.tobytes()
    with pytest.raises(IndexError, match="the tree has 3000 places"):
        one.clear(first, 3001 - first)


def test_wrong_places_do_not_reach_memory() -> None:
    tree = core.SumTree(10)
    with pytest.raises(ValueError, match="nothing to draw"):
        tree.draw(0, 0, np.zeros(3, np.int32), np.zeros(3, np.float32))
    for place in (-1, 10):
        with pytest.raises(IndexError, match="a place is outside 0 … 9"):
            tree.set(np.array([place], np.int32), np.ones(1, np.float32))
        with pytest.raises(IndexError, match="a place is outside 0 … 9"):
            tree.get(np.array([place], np.int32), np.ones(1, np.float32))
    with pytest.raises(ValueError, match="priorities has 2 elements, not 1"):
        tree.set(np.zeros(1, np.int32), np.ones(2, np.float32))


# Steps


def steps_of(collections: int, **settings: Any) -> tuple[list[int], list[int], list[int]]:
    """After each collection of one slab: the steps that are due, the decisions inserted, and the games finished."""
    buffer = replay_of(KIND, STEPS, GAMES, 12, batch_size=5, **settings)
    due, inserted, finished = [], [], []
    for item in played(collections):
        before = len(buffer)
        buffer.take([item])
        due.append(buffer.steps())
        inserted.append(len(buffer) - before)
        finished.append(int((item.slab.terminated | item.slab.truncated).sum()))
    return due, inserted, finished


def test_steps_by_a_ratio_of_samples_to_inserted_decisions() -> None:
    due, inserted, _ = steps_of(10, sample_to_insert_ratio=1.3)
    for count in range(1, 11):
        assert sum(due[:count]) == int(1.3 * sum(inserted[:count]) / 5 + 1e-9)


def test_steps_for_each_game_that_was_finished() -> None:
    due, _, finished = steps_of(10, learning_steps="auto")
    assert due == finished
    assert len(set(finished)) > 1


def test_a_given_number_of_steps() -> None:
    assert steps_of(4, learning_steps=7)[0] == [7] * 4


@pytest.mark.parametrize("settings", [{"learning_steps": 7}, {"learning_steps": "auto"}, {}])
def test_learning_starts_when_enough_is_inserted(settings: dict[str, Any]) -> None:
    due, inserted, _ = steps_of(10, learning_starts=50, **settings)
    for count in range(1, 11):
        assert (due[count - 1] > 0) == (sum(inserted[:count]) >= 50)
    assert 0 in due


def test_nothing_is_due_where_nothing_can_be_drawn() -> None:
    buffer = replay_of(KIND, STEPS, GAMES, 6, learning_steps=7, owner=3)
    buffer.take(played())
    assert (len(buffer), buffer.steps()) == (0, 0)


# Settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacity": None}, "capacity = None and megabytes = None: give one of them"),
        ({"megabytes": 5.0}, "capacity = 500000 and megabytes = 5.0: give one of them"),
        ({"capacity": 100, "learning_starts": 101}, "learning_starts = 101 is more than capacity = 100"),
        ({"alpha": 1.5}, "alpha"),
        ({"n_step": 0}, "n_step"),
        ({"learning_steps": "often"}, "learning_steps"),
        ({"chain": "seats"}, "chain"),
        ({"prioritized": True}, "prioritised"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_settings(ReplaySettings, given)
    assert message in str(error.value)


def test_both_seats_need_a_zero_sum_game_of_two() -> None:
    for kind in KINDS[1:]:
        with pytest.raises(ConfigError, match="chain = both-seats is for zero-sum games of two"):
            replay_of(kind, STEPS, GAMES, 6, chain="both-seats")
    replay_of(KINDS[0], STEPS, GAMES, 6, chain="both-seats")


def test_a_slab_has_no_more_places_than_it_has() -> None:
    slabs = core.ReplaySlabs(2, 2, 2, 1, False, 4)
    counts, listed = np.zeros(2, np.int32), np.zeros((2, 4), np.int32)
    slabs.add(np.array([4, 5, 6], np.int32), counts, listed)
    assert (counts.tolist(), listed[1].tolist()) == ([0, 3], [0, 1, 2, 0])
    with pytest.raises(IndexError, match="more places of a slab are drawn than it has"):
        slabs.add(np.array([7, 7], np.int32), counts, listed)
    with pytest.raises(IndexError, match="a place is outside 0 … 7"):
        slabs.add(np.array([8], np.int32), counts, listed)
