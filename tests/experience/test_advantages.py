"""Advantages that can be checked by hand. ``test_estimates`` checks them in every kind of game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from histories_for_tests import KINDS, Histories, Kind, Opinion, slabs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.errors import ConfigError
from keisei.experience.advantages import CreditRule, Judged, Targets, carries, estimate_advantages
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout
from keisei.machine.shared_memory import SharedBlock

PLAIN = CreditRule(1.0, 1.0)
STEPS = 12


def random_slab(seed: int, kind: Kind, owners: str = "alone") -> Slab:
    histories = Histories(np.random.default_rng(seed), kind, owners)
    columns = [histories.column(STEPS) for _ in range(5)]
    return slabs_of(columns, kind, [STEPS], Opinion(seed, False))[0].slab


def empty_slab(seats: int, steps: int, *, simultaneous: bool = False) -> Slab:
    shape = SlabShape(steps, games=1, seats=seats, packed_bytes=4, simultaneous=simultaneous)
    return Slab(shape, SharedBlock(slab_layout(shape).nbytes))


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


def test_a_won_game_is_good_for_the_winner_and_bad_for_the_loser() -> None:
    advantages = estimate_advantages(small_game([0, 0, 0]), PLAIN, zero_sum=True).advantages[:, 0]
    assert advantages.tolist() == [1, -1, 1]


def test_what_an_opponent_thinks_of_the_game_does_not_matter() -> None:
    found = []
    for opinion in (0.0, 9.0):
        slab = small_game([0, -1, 0])
        slab.value[:3, 0] = [0.5, opinion, 0.75]
        targets = estimate_advantages(slab, CreditRule(1.0, 0.0), zero_sum=True)
        found.append(targets.advantages[[0, 2], 0].tolist())
    assert found[0] == found[1] == [0.25, 0.25]


@pytest.mark.parametrize("zero_sum", [True, False])
def test_the_ply_of_an_opponent_is_time_that_passes(zero_sum: bool) -> None:
    """Whether rewards are a seat's own or its rival's loss: two plies on, a surprise counts (g l)^2."""
    advantages = estimate_advantages(small_game([0, -1, 0]), CreditRule(0.5, 0.5), zero_sum=zero_sum)
    assert advantages.advantages[[0, 2], 0].tolist() == [1 / 16, 1]


def test_an_agent_that_rests_is_not_worth_nothing() -> None:
    """Two agents act in the first step. One rests where the slab ends; the other acts there, and is worth 4."""
    slab = empty_slab(seats=2, steps=2, simultaneous=True)
    slab.acting[:] = [[True, True], [False, False], [True, False]]
    slab.reward[:, 0] = [[1, 2], [0, 3]]
    slab.value[2, 0] = 4
    targets = estimate_advantages(slab, CreditRule(0.5, 1.0), zero_sum=False)
    assert targets.settled[0].tolist() == [True, False]
    assert targets.returns[0, 0] == 1 + 0.25 * 4
    assert targets.open is not None
    assert targets.open.earned.tolist() == [2 + 0.5 * 3]


@settings(max_examples=10)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(seed=st.integers(0, 2**32 - 1), owners=st.sampled_from(["alone", "mixed"]), trace=st.floats(0, 1))
def test_vtrace_of_what_the_same_policy_played_is_gae(
    kind: Kind, seed: int, owners: str, trace: float
) -> None:
    slab = random_slab(seed, kind, owners)
    played = Judged(slab.log_prob, slab.value, slab.final_value)

    def both(lam: float) -> tuple[Targets, Targets]:
        plain = estimate_advantages(slab, CreditRule(0.9, lam), zero_sum=kind.zero_sum)
        return plain, estimate_advantages(slab, CreditRule(0.9, lam), zero_sum=kind.zero_sum, judged=played)

    plain, corrected = both(trace)
    ours = plain.settled
    np.testing.assert_array_equal(ours, corrected.settled)
    np.testing.assert_allclose(corrected.returns[ours], plain.returns[ours], atol=1e-5)
    plain, corrected = both(1.0)
    np.testing.assert_allclose(corrected.advantages[ours], plain.advantages[ours], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_ratio_beyond_all_bounds_is_clipped_without_a_warning(kind: Kind) -> None:
    slab = random_slab(1, kind)
    far = np.full_like(slab.log_prob, 500.0)
    slab.log_prob[:] = 0
    for judgement, same in ((far, np.zeros_like(far)), (-far, np.full_like(far, -np.inf))):
        found, expected = (
            estimate_advantages(
                slab,
                CreditRule(0.9, 0.8),
                zero_sum=kind.zero_sum,
                judged=Judged(log_probs, slab.value, slab.final_value),
            )
            for log_probs in (judgement, same)
        )
        ours = found.settled
        assert ours.any()
        np.testing.assert_array_equal(found.returns[ours], expected.returns[ours])


def test_only_a_zero_sum_chain_of_two_carries_nothing() -> None:
    assert [carries(kind.spec) for kind in KINDS] == [False, True, True, True, True]
    assert not carries(Kind(seats=1).spec), "whoever is alone never waits"
    assert carries(Kind(seats=1, simultaneous=True).spec)


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
