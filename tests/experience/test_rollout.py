"""The buffer asks its judge about the right rows, and puts what it says in the right places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import keisei
from keisei.errors import ConfigError
from keisei.experience.advantages import Judged, estimate_advantages
from keisei.experience.rollout import ExperienceBuffer, Minibatch
from keisei.experience.slab import Slab
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


def collected(game: str, spec_changes: dict[str, Any]) -> tuple[GameSpec, list[Slab]]:
    """Slabs of a network against random players in half of the games, with games that are cut off."""
    settings = {
        "enabled": False,
        "num_workers": 2,
        "games_per_worker": 6,
        "experience_batch_size": 132,
        "use_shared_memory": False,
        "seating": {"opponents": [{"policy": "random", "share": 0.5}]},
    }
    with ParallelManager({"game": game, "max_moves": 5}, {"hidden_dim": 8}, settings) as manager:
        slabs = [item.slab for item in manager.collect_experiences()]
        return replace(manager.spec, **spec_changes), slabs


CASES = {
    "zero-sum": ("connect-four", {}),
    "per seat": ("connect-four", {"zero_sum": False}),
    "per slot": ("guessing", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_judge_is_asked_once_about_each_slab_and_heard_in_the_right_places(case: str) -> None:
    spec, slabs = collected(*CASES[case])
    judge = Opinion()
    buffer = ExperienceBuffer(spec, 0.9, 0.8, judge, rho_clip=0.9, trace_clip=1.5)
    buffer.add_batch(slabs)
    whole, asked, place = buffer.merged(), [], 0
    for slab in slabs:
        steps = slab.shape.steps
        ours = slab.acting[:steps] & (slab.policy == 0)
        cut = slab.finished("final_value") & (slab.final_seat >= 0)
        assert ours.sum() < slab.acting[:steps].sum(), "opponents have played too"
        assert cut.any()
        asked.append(int(ours.sum() + slab.acting[steps].sum() + cut.sum()))
        everywhere = Judged(
            judge.log_probs(slab.action), judge.values(slab.packed), judge.values(slab.final_packed) * cut
        )
        targets = estimate_advantages(
            slab, 0.9, 0.8, zero_sum=spec.zero_sum, judged=everywhere, rho_clip=0.9, trace_clip=1.5
        )
        rows = slice(place, place := place + int(ours.sum()))
        np.testing.assert_array_equal(whole.log_probs[rows], slab.log_prob[ours])
        np.testing.assert_allclose(whole.values[rows], everywhere.values[:steps][ours], rtol=1e-5)
        np.testing.assert_allclose(whole.returns[rows], targets.returns[ours], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(whole.advantages[rows], targets.advantages[ours], rtol=1e-4, atol=1e-4)
    assert judge.asked == asked
    assert len(whole) == place


def test_without_a_judge_experience_is_taken_as_it_is() -> None:
    spec, slabs = collected("connect-four", {})
    buffer = ExperienceBuffer(spec, 0.9, 0.8)
    buffer.add_batch(slabs[:1])
    whole, slab = buffer.merged(), slabs[0]
    ours = slab.acting[:-1] & (slab.policy == 0)
    targets = estimate_advantages(slab, 0.9, 0.8, zero_sum=True)
    np.testing.assert_array_equal(whole.values, slab.value[:-1][ours])
    np.testing.assert_array_equal(whole.advantages, targets.advantages[ours])
    assert buffer.merged() is whole, "nothing is copied a second time"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"discount": 0.0}, "discount is in"),
        ({"trace": 1.5}, r"lambda in \[0, 1\]"),
        ({"rho_clip": 0.0}, "rho_clip and trace_clip are above 0"),
        ({"trace_clip": -1.0}, "rho_clip and trace_clip are above 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], problem: str) -> None:
    spec = keisei.make_game("tictactoe").spec
    with pytest.raises(ConfigError, match=problem):
        ExperienceBuffer(spec, **({"discount": 0.9, "trace": 0.9} | settings))


@pytest.mark.parametrize(("rows", "size", "sizes"), [(10, 4, [4, 4, 4]), (8, 4, [4, 4]), (3, 4, [3])])
def test_minibatches_have_one_size_and_leave_nothing_out(rows: int, size: int, sizes: list[int]) -> None:
    buffer = ExperienceBuffer(keisei.make_game("tictactoe").spec, 0.99, 0.95)
    numbers = np.arange(rows, dtype=np.float32)
    packed = np.zeros((rows, 1), np.uint8)
    buffer._parts = [Minibatch(packed, numbers.astype(np.int32), numbers, numbers, numbers, numbers)]
    batches = list(buffer.minibatches(size, seed=1, epoch=2))
    assert [len(batch) for batch in batches] == sizes
    drawn = np.concatenate([batch.actions for batch in batches])
    assert sorted(drawn[:rows].tolist()) == list(range(rows))
    np.testing.assert_array_equal(drawn[rows:], drawn[: len(drawn) - rows])
