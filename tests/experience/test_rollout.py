"""The buffer of an update: what it takes from workers, when it calls the judge, and what the learner sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import keisei
from keisei.errors import ConfigError
from keisei.experience.collected import CollectedSlab, Leases
from keisei.experience.contract import Buffer
from keisei.experience.rollout import ExperienceBuffer, Minibatch, RolloutView, keeping_chances, waits
from keisei.games import registry
from keisei.games.contract import Array, GameSpec
from keisei.games.randomness import KeyedRandom
from keisei.parallel import ParallelManager


class Guessing(keisei.SingleGame):
    """Three seats guess at once, one of them rests in each round; cut off after five rounds."""

    name = "guessing"
    seats = 3
    num_actions = 4
    observation = keisei.ObservationSpec((3,), np.dtype(np.float32))
    simultaneous = True
    scored_by_rewards = True
    max_plies = 5

    def reset(self, rng: KeyedRandom) -> None:
        self.round, self.luck = 0, rng.integer(4)

    def acting(self) -> Sequence[int]:
        return [seat for seat in range(3) if seat != (self.round + self.luck) % 3]

    def legal(self, seat: int) -> list[int]:
        return [0, 1, 2, 3]

    def play(self, action: Any, rng: KeyedRandom) -> list[float]:
        rewards = [0.0] * 3
        for seat, choice in zip(self.acting(), action, strict=True):
            rewards[seat] = float(choice == self.luck)
        self.round, self.luck = self.round + 1, rng.integer(4)
        return rewards

    def observe(self, seat: int) -> Array:
        return np.array([self.round, self.luck, seat], np.float32)

    def outcome(self) -> None:
        return None


@pytest.fixture(autouse=True)
def _guessing_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """While these tests run, and no longer: others look at the list of games."""
    monkeypatch.setattr("keisei.games.registry._REGISTERED", dict(registry._REGISTERED))
    registry.register_game("guessing", Guessing)


class Opinion:
    """A judge whose word depends on nothing but the row, and who remembers how much it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, packed: Array, actions: Array) -> tuple[Array, Array]:
        self.asked.append(len(actions))
        return self.log_probs(actions), self.values(packed)

    @staticmethod
    def log_probs(actions: Array) -> Array:
        return -0.25 * (1 + actions.astype(np.float32))

    @staticmethod
    def values(packed: Array) -> Array:
        weights = np.cos(np.arange(packed.shape[-1], dtype=np.float32))
        return (packed.astype(np.float32) @ weights).clip(-9, 9)


def collected(game: str, spec_changes: dict[str, Any]) -> tuple[GameSpec, Sequence[CollectedSlab]]:
    """Slabs of a network against random players in half of the games, with games that are cut off."""
    settings = {
        "enabled": False,
        "num_workers": 2,
        "games_per_worker": 6,
        "experience_batch_size": 132,
        "use_shared_memory": False,
        "seating": {"opponents": [{"policy": "random", "share": 0.5}], "opening_plies": 1},
    }
    with ParallelManager({"game": game, "max_moves": 5}, {"hidden_dim": 8}, settings) as manager:
        return replace(manager.spec, **spec_changes), manager.collect_experiences().slabs


CASES = {
    "zero-sum": ("connect-four", {}),
    "a seat moves again": ("ludo", {}),
    "per seat": ("connect-four", {"zero_sum": False}),
    "per slot": ("guessing", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_workers_say_which_decisions_are_the_learners(case: str) -> None:
    _, slabs = collected(*CASES[case])
    for item in slabs:
        slab, acting = item.slab, item.slab.acting[:-1]
        assert set(slab.policy[acting].tolist()) == {0, 1, -1}, "the learner, an opponent and chance"
        np.testing.assert_array_equal(slab.owner == 0, acting & (slab.policy == 0))
        assert set(slab.owner[slab.owner != 0].tolist()) == {-1}


@pytest.mark.parametrize("case", CASES)
def test_the_judge_is_asked_once_and_heard_in_the_right_places(case: str) -> None:
    """About the learner's decisions, and where their returns go on: that is at other decisions of its own, at the
    end of a slab, and where games were cut off."""
    spec, slabs = collected(*CASES[case])
    judge = Opinion()
    buffer = ExperienceBuffer(spec, 0.9, 0.8, judge, vtrace=True, rho_clip=0.9, trace_clip=1.5)
    buffer.take(slabs)
    whole, least, most = buffer.view().merged(), 0, 0
    for slab in (item.slab for item in slabs):
        ours = slab.acting[:-1] & (slab.owner == 0)
        cut = slab.finished("final_value") & (slab.final_seat >= 0)
        assert ours.sum() < slab.acting[:-1].sum(), "opponents have played too"
        assert cut.any()
        least, most = least + int(ours.sum()), most + int(ours.sum() + slab.acting[-1].sum() + cut.sum())
    assert len(whole) + buffer.carried == least
    assert len(judge.asked) == 1
    assert least < judge.asked[0] <= most
    np.testing.assert_array_equal(whole.values, judge.values(whole.packed))
    again = ExperienceBuffer(spec, 0.9, 0.8, judge, vtrace=True, rho_clip=0.9, trace_clip=1.5)
    parts = []
    for item in slabs:
        again.take([item])
        parts.append(again.view().merged())
    for name in Minibatch.__slots__:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(whole, name), joined)
    assert (buffer.carried > 0) == waits(spec)


@pytest.mark.parametrize("vtrace", [False, True])
def test_what_was_carried_is_judged_with_the_rest(vtrace: bool) -> None:
    spec, slabs = collected("guessing", {})
    later = [replace(item, record=replace(item.record, sequence=item.record.sequence + 1)) for item in slabs]
    judge = Opinion()
    buffer = ExperienceBuffer(spec, 0.9, 0.8, judge, vtrace=vtrace)
    buffer.take(slabs)
    waiting, decided, judge.asked = buffer.carried, len(buffer.view()), []
    buffer.take(later)
    closed = len(buffer.view()) - decided
    assert 0 < closed <= waiting
    assert len(judge.asked) == 1
    assert (judge.asked[0] > len(buffer.view())) if vtrace else (judge.asked[0] == closed)


def test_without_a_judge_experience_is_taken_as_it_is() -> None:
    spec, slabs = collected("connect-four", {})
    buffer = ExperienceBuffer(spec, 0.9, 0.8)
    assert buffer.take(slabs[:1]) == Leases()
    whole, slab = buffer.view().merged(), slabs[0].slab
    ours = slab.acting[:-1] & (slab.owner == 0)
    np.testing.assert_array_equal(whole.values, slab.value[:-1][ours])
    np.testing.assert_array_equal(whole.log_probs, slab.log_prob[ours])
    np.testing.assert_array_equal(whole.returns, whole.values + whole.advantages)
    assert buffer.view().merged() is whole, "nothing is copied a second time"


@pytest.mark.parametrize(("game", "vtrace"), [("guessing", False), ("tictactoe", True)])
def test_a_judge_is_asked_for_where_one_is_needed(game: str, vtrace: bool) -> None:
    with pytest.raises(ConfigError, match="give the buffer a judge"):
        ExperienceBuffer(keisei.make_game(game).spec, 0.9, 0.8, vtrace=vtrace)


def test_a_view_stays_as_it_is_while_the_next_experience_is_taken() -> None:
    spec, slabs = collected("connect-four", {})
    buffer: Buffer[RolloutView] = ExperienceBuffer(spec, 0.9, 0.8)
    buffer.take(slabs[:1])
    view = buffer.view()
    before = [getattr(view.merged(), name).copy() for name in Minibatch.__slots__]
    for column in (column for _, column in slabs[0].slab.columns()):
        column[...] = 0
    buffer.take(slabs[1:])
    assert len(view) == len(before[0])
    for name, column in zip(Minibatch.__slots__, before, strict=True):
        np.testing.assert_array_equal(getattr(view.merged(), name), column)
    assert buffer.view() is not view


def test_an_empty_buffer_has_nothing_to_merge() -> None:
    spec, slabs = collected("connect-four", {})
    buffer = ExperienceBuffer(spec, 0.9, 0.8)
    with pytest.raises(ConfigError, match="buffer is empty"):
        buffer.view().merged()
    buffer.take(slabs)
    assert len(buffer.view().merged()) == len(buffer.view()) > 0
    buffer.take(())
    assert not len(buffer.view())


@pytest.mark.parametrize(("rows", "size", "sizes"), [(10, 4, [4, 4, 4]), (8, 4, [4, 4]), (3, 4, [3])])
def test_minibatches_have_one_size_and_leave_nothing_out(rows: int, size: int, sizes: list[int]) -> None:
    numbers = np.arange(rows, dtype=np.float32)
    packed = np.zeros((rows, 1), np.uint8)
    view = RolloutView(Minibatch(packed, numbers.astype(np.int32), numbers, numbers, numbers, numbers))
    batches = list(view.minibatches(size, seed=1, epoch=2))
    assert [len(batch) for batch in batches] == sizes
    drawn = np.concatenate([batch.actions for batch in batches])
    assert sorted(drawn[:rows].tolist()) == list(range(rows))
    np.testing.assert_array_equal(drawn[rows:], drawn[: len(drawn) - rows])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7, 0.9])
def test_rows_are_kept_as_often_as_their_advantages_are_large(share: float) -> None:
    """Counted over many epochs. The mean of the advantages is far from 0 here, and distances are from the mean."""
    advantages = 5 + np.random.default_rng(3).standard_t(2, size=40).astype(np.float32)
    view, kept = view_of(advantages), math.ceil(40 * share)
    chances, seen = keeping_chances(advantages, kept), np.zeros(40)
    for epoch in range(2_000):
        drawn = [row for batch in view.minibatches(64, 1, epoch, share) for row in batch.actions.tolist()]
        assert len(drawn) == kept == len(set(drawn))
        seen[drawn] += 1
    np.testing.assert_allclose(seen / 2_000, chances, atol=0.05)
    assert chances.sum() == pytest.approx(kept)
    assert chances.max() <= 1
    by_distance = chances[np.argsort(np.abs(advantages - advantages.mean()))]
    assert (np.diff(by_distance) >= -1e-12).all()
    assert by_distance[-1] > by_distance[0] >= share / 4


def test_the_weighted_means_of_a_share_are_those_of_all_rows() -> None:
    """Of whatever quantity, also one that goes with the advantage or with its size."""
    random = np.random.default_rng(5)
    advantages = random.standard_normal(200).astype(np.float32) + 1
    view = view_of(advantages)
    for quantity in (advantages, np.abs(advantages), np.ones(200), random.standard_normal(200)):
        means = []
        for epoch in range(1_000):
            (batch,) = view.minibatches(200, 1, epoch, 0.3)
            means.append(float((batch.weights * quantity[batch.actions]).mean()))
        assert np.mean(means) == pytest.approx(quantity.mean(), abs=4 * np.std(means) / math.sqrt(1_000))


def test_values_that_are_fitted_to_a_share_are_those_of_all_rows() -> None:
    """Returns are 1 or -1, and the values are right, so large advantages are of surprising ends. A fit to these alone
    would be nearly flat."""
    random = np.random.default_rng(7)
    values = random.uniform(-0.9, 0.9, 20_000)
    returns = np.where(random.random(20_000) < (1 + values) / 2, 1.0, -1.0)
    view = view_of((returns - values).astype(np.float32))
    (batch,) = view.minibatches(20_000, 1, 2, 0.25)
    chosen = batch.actions
    slope = np.polyfit(values[chosen], returns[chosen], 1, w=np.sqrt(batch.weights))[0]
    assert slope == pytest.approx(1, abs=0.06)
    assert np.polyfit(values[chosen], returns[chosen], 1)[0] < 0.7, "the weights would not be needed"


def test_all_rows_count_alike_when_all_are_kept() -> None:
    view = view_of(np.arange(9, dtype=np.float32))
    for share in (1.0, 0.95):
        batches = list(view.minibatches(4, 1, 2, share))
        assert [batch.weights.tolist() for batch in batches] == [[1] * 4] * 3
        assert {row for batch in batches for row in batch.actions.tolist()} == {*range(9)}


def test_of_equal_advantages_each_is_kept_as_often() -> None:
    view, seen = view_of(np.ones(9, np.float32)), np.zeros(9)
    for epoch in range(2_000):
        (batch,) = view.minibatches(64, 1, epoch, 0.5)
        assert len(batch) == 5
        np.testing.assert_allclose(batch.weights, 1)
        seen[batch.actions] += 1
    np.testing.assert_allclose(seen / 2_000, 5 / 9, atol=0.05)


def view_of(advantages: np.ndarray) -> RolloutView:  # type: ignore[type-arg]
    """Rows whose actions are their numbers."""
    rows = len(advantages)
    numbers = np.zeros(rows, np.float32)
    return RolloutView(
        Minibatch(
            np.zeros((rows, 1), np.uint8),
            np.arange(rows, dtype=np.int32),
            numbers,
            numbers,
            advantages,
            numbers,
        )
    )
