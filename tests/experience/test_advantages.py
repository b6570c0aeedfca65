"""Advantages that can be checked by hand. ``test_estimates`` checks them in every kind of game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from histories_for_tests import KINDS, Histories, Kind, Opinion, names_of, record_of, slabs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.errors import ConfigError
from keisei.experience.advantages import CreditRule
from keisei.experience.collected import CollectedSlab
from keisei.experience.judging import Judge
from keisei.experience.rollout import ExperienceBuffer, Minibatch, waits
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout
from keisei.games.contract import Array
from keisei.machine.shared_memory import SharedBlock

STEPS = 12
TURNS, APART = Kind(seats=2, zero_sum=True), Kind(seats=2)


def random_slab(seed: int, kind: Kind, owners: str = "alone") -> Slab:
    histories = Histories(np.random.default_rng(seed), kind, owners)
    columns = [histories.column(STEPS) for _ in range(5)]
    return slabs_of(columns, kind, [STEPS], Opinion(seed, False))[0].slab


def empty_slab(seats: int, steps: int, *, simultaneous: bool = False) -> Slab:
    """A slab of one game, in which every position has a name of its own."""
    shape = SlabShape(steps, games=1, seats=seats, packed_bytes=4, simultaneous=simultaneous)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    slab.packed.view(np.uint32)[..., 0] = np.arange((steps + 1) * shape.slots).reshape(steps + 1, shape.slots)
    return slab


def small_game(owners: Sequence[int]) -> Slab:
    """One game of three plies that seat 0 wins."""
    slab = empty_slab(seats=2, steps=3)
    slab.acting[:] = True
    slab.seat[:, 0] = [0, 1, 0, 1]
    slab.owner[:, 0] = owners
    slab.reward[2, 0] = [1, -1]
    slab.terminated[2, 0] = True
    slab.value[3] = 5  # of the next game: it must not matter
    return slab


def as_played(slab: Slab) -> Judge:
    """Thinks of everything as was thought when it was played."""
    known: dict[int, tuple[float, float]] = {}

    def remember(packed: Array, log_probs: Array, values: Array) -> None:
        known.update(
            zip(names_of(packed), zip(log_probs.tolist(), values.tolist(), strict=True), strict=True)
        )

    here, end = slab.acting[:-1], slab.acting[-1]
    remember(slab.final_packed.reshape(-1, 4), slab.final_value.ravel(), slab.final_value.ravel())
    remember(slab.packed[-1][end], slab.value[-1][end], slab.value[-1][end])
    remember(slab.packed[:-1][here], slab.log_prob[here], slab.value[:-1][here])

    def judge(packed: Array, actions: Array) -> tuple[Array, Array]:
        log_probs, values = np.array([known[name] for name in names_of(packed)], np.float32).reshape(-1, 2).T
        return log_probs.copy(), values.copy()

    return judge


def learned(
    slab: Slab, kind: Kind, discount: float, trace: float, judge: Judge | None = None, *, vtrace: bool = False
) -> Minibatch:
    """All that is learned from a slab."""
    buffer = ExperienceBuffer(
        kind.spec, discount, trace, judge or as_played(slab), vtrace=vtrace, rho_clip=1.0, trace_clip=1.0
    )
    buffer.take([CollectedSlab(record_of(0, 0), 0, slab)])
    return buffer.view().whole


def test_a_won_game_is_good_for_the_winner_and_bad_for_the_loser() -> None:
    assert learned(small_game([0, 0, 0]), TURNS, 1.0, 1.0).advantages.tolist() == [1, -1, 1]


def test_what_an_opponent_thinks_of_the_game_does_not_matter() -> None:
    found = []
    for opinion in (0.0, 9.0):
        slab = small_game([0, -1, 0])
        slab.value[:3, 0] = [0.5, opinion, 0.75]
        found.append(learned(slab, TURNS, 1.0, 0.0).advantages.tolist())
    assert found[0] == found[1] == [0.25, 0.25]


@pytest.mark.parametrize("kind", [TURNS, APART])
def test_the_ply_of_an_opponent_is_time_that_passes(kind: Kind) -> None:
    """Whether rewards are a seat's own or its rival's loss: two plies on, a surprise counts (g l)^2."""
    assert learned(small_game([0, -1, 0]), kind, 0.5, 0.5).advantages.tolist() == [1 / 16, 1]


def test_an_agent_that_rests_is_not_worth_nothing() -> None:
    """Two agents act in the first step. One rests where the slab ends; the other acts there, and is worth 4."""
    slab = empty_slab(seats=2, steps=2, simultaneous=True)
    slab.acting[:] = [[True, True], [False, False], [True, False]]
    slab.seat[:] = [0, 1]
    slab.reward[:, 0] = [[1, 2], [0, 3]]
    slab.value[2, 0] = 4
    kind = Kind(seats=2, simultaneous=True)
    buffer = ExperienceBuffer(kind.spec, 0.5, 1.0, as_played(slab))
    buffer.take([CollectedSlab(record_of(0, 0), 0, slab)])
    assert names_of(buffer.view().whole.packed) == [0]
    assert buffer.view().whole.returns.tolist() == [1 + 0.25 * 4]
    assert buffer.carried == 1
    assert buffer.state().tensors["carry"]["earned"].tolist() == [2 + 0.5 * 3]


@settings(max_examples=10)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(seed=st.integers(0, 2**32 - 1), owners=st.sampled_from(["alone", "mixed"]), trace=st.floats(0, 1))
def test_vtrace_of_what_the_same_policy_played_is_gae(
    kind: Kind, seed: int, owners: str, trace: float
) -> None:
    slab = random_slab(seed, kind, owners)
    plain, corrected = (learned(slab, kind, 0.9, trace, vtrace=vtrace) for vtrace in (False, True))
    np.testing.assert_array_equal(plain.packed, corrected.packed)
    np.testing.assert_allclose(corrected.returns, plain.returns, atol=1e-5)
    plain, corrected = (learned(slab, kind, 0.9, 1.0, vtrace=vtrace) for vtrace in (False, True))
    np.testing.assert_allclose(corrected.advantages, plain.advantages, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_ratio_beyond_all_bounds_is_clipped_without_a_warning(kind: Kind) -> None:
    slab = random_slab(1, kind)
    slab.log_prob[:] = 0
    played = as_played(slab)

    def thinking(log_prob: float) -> Minibatch:
        def judge(packed: Array, actions: Array) -> tuple[Array, Array]:
            return np.full(len(actions), log_prob, np.float32), played(packed, actions)[1]

        return learned(slab, kind, 0.9, 0.8, judge, vtrace=True)

    for far, same in ((500.0, 0.0), (-500.0, -np.inf)):
        found, expected = thinking(far), thinking(same)
        assert len(found)
        np.testing.assert_array_equal(found.returns, expected.returns)


def test_only_a_zero_sum_chain_of_two_carries_nothing() -> None:
    assert [waits(kind.spec) for kind in KINDS] == [False, True, True, True, True]
    assert not waits(Kind(seats=1).spec), "whoever is alone never waits"
    assert waits(Kind(seats=1, simultaneous=True).spec)


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
    with pytest.raises(ConfigError, match=problem):
        CreditRule(**({"discount": 0.9, "trace": 0.9} | settings))
