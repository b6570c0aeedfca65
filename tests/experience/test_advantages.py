"""Advantages against a slow, obvious reading: every game's trajectory by itself, summed term by term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.experience.advantages import Judged, Targets, estimate_advantages
from keisei.experience.memory import SharedBlock
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout

STEPS, GAMES = 12, 7


@dataclass(frozen=True)
class Kind:
    """A shape of trajectory."""

    seats: int
    zero_sum: bool = False
    simultaneous: bool = False


TURNING = Kind(seats=2, zero_sum=True)
KINDS = [TURNING, Kind(seats=2), Kind(seats=3), Kind(seats=3, simultaneous=True)]


def random_slab(rng: np.random.Generator, kind: Kind, opponents: float = 0.0) -> Slab:
    """Movers that change or stay at random, and games that end or are cut at random."""
    seats = kind.seats
    shape = SlabShape(STEPS, GAMES, seats, packed_bytes=4, simultaneous=kind.simultaneous)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    slots, rows = shape.slots, (STEPS + 1, shape.slots)
    slab.acting[:] = rng.random(rows) < 0.8 if kind.simultaneous else True
    slab.seat[:] = np.tile(np.arange(seats), GAMES) if kind.simultaneous else rng.integers(seats, size=rows)
    slab.value[:] = rng.normal(size=rows)
    slab.log_prob[:] = -rng.exponential(size=(STEPS, slots))
    slab.policy[:] = rng.random((STEPS, slots)) < opponents
    reward = rng.normal(size=(STEPS, GAMES, seats))
    if kind.zero_sum:
        reward[..., 1] = -reward[..., 0]
    slab.reward[:] = reward
    ending = rng.random((STEPS, GAMES))
    slab.terminated[:] = ending < 0.15
    slab.truncated[:] = (ending >= 0.15) & (ending < 0.3)
    slab.final_value[:] = rng.normal(size=(STEPS, slots))
    slab.final_seat[:] = slab.seat[0] if kind.simultaneous else rng.integers(seats, size=(STEPS, slots))
    return slab


def as_played(slab: Slab) -> Judged:
    """What the policy that acted says itself."""
    return Judged(slab.log_prob, slab.value, slab.final_value)


def random_judgement(rng: np.random.Generator, slab: Slab) -> Judged:
    rows = slab.log_prob.shape
    return Judged(
        log_probs=(-rng.exponential(size=rows)).astype(np.float32),
        values=rng.normal(size=slab.value.shape).astype(np.float32),
        final_values=rng.normal(size=rows).astype(np.float32),
    )


@dataclass(frozen=True)
class Link:
    """One decision of a trajectory, up to the next one, as seen by the seat that the trajectory is told for."""

    value: float
    earned: float
    discount: float
    """Of what comes after: more than one factor where plies of an opponent lie between."""
    after: float
    """The value of the next decision, or of where the record ends; 0 where the game has ended."""
    ratio: float
    """pi / mu."""

    @property
    def delta(self) -> float:
        return self.earned + self.discount * self.after - self.value


def trajectory(slab: Slab, judged: Judged, slot: int, start: int, discount: float, kind: Kind) -> list[Link]:
    """From one decision to the end of its game or of the record."""
    game = slot // kind.seats if kind.simultaneous else slot
    me = int(slab.seat[start, slot])
    links: list[Link] = []
    t: int | None = start
    while t is not None:
        link, t = _link(slab, judged, slot, game, me, t, discount, kind)
        links.append(link)
    return links


def _link(
    slab: Slab, judged: Judged, slot: int, game: int, me: int, t: int, discount: float, kind: Kind
) -> tuple[Link, int | None]:
    """The link that begins at a decision, and where the next one begins; None at the end."""
    here = _seen(kind, judged.values[t, slot], slab.seat[t, slot], me)
    difference = float(judged.log_probs[t, slot]) - float(slab.log_prob[t, slot])
    ratio = 1.0 if slab.policy[t, slot] else float(np.exp(difference))
    earned, factor = 0.0, 1.0
    while True:
        earned += factor * float(slab.reward[t, game, me])
        if slab.terminated[t, game]:
            return Link(here, earned, factor * discount, 0.0, ratio), None
        if slab.truncated[t, game]:
            after = _bootstrap(kind, judged.final_values[t, slot], slab.final_seat[t, slot], me, here)
            return Link(here, earned, factor * discount, after, ratio), None
        t += 1
        if t == STEPS:
            if kind.simultaneous and not slab.acting[t, slot]:
                return Link(here, earned, discount, 0.0, ratio), None
            after = _bootstrap(kind, judged.values[t, slot], slab.seat[t, slot], me, here)
            return Link(here, earned, factor * discount, after, ratio), None
        if kind.zero_sum and slab.policy[t, slot]:
            factor *= discount  # an opponent's ply is time that passes
        elif _decides(slab, kind, t, slot, me):
            after = _seen(kind, judged.values[t, slot], slab.seat[t, slot], me)
            return Link(here, earned, factor * discount, after, ratio), t


def _decides(slab: Slab, kind: Kind, t: int, slot: int, me: int) -> bool:
    if kind.simultaneous:
        return bool(slab.acting[t, slot])
    return kind.zero_sum or slab.seat[t, slot] == me


def _seen(kind: Kind, value: float, seat: int, me: int) -> float:
    return -float(value) if kind.zero_sum and seat != me else float(value)


def _bootstrap(kind: Kind, value: float, seat: int, me: int, mine: float) -> float:
    """Where another seat would act next, a seat whose rewards are its own knows no better than its last word."""
    return _seen(kind, value, seat, me) if kind.zero_sum or seat == me else mine


def gae(links: Sequence[Link], trace: float) -> float:
    """The sum over k of (g l)^k delta_k."""
    return sum(
        float(np.prod([before.discount * trace for before in links[:k]])) * link.delta
        for k, link in enumerate(links)
    )


def vtrace(links: Sequence[Link], trace: float, rho_clip: float, trace_clip: float) -> float:
    """Equation 1 of Espeholt et al.: V + the sum over k of (the product of g c before k) rho_k delta_k."""
    corrections = (
        np.prod([before.discount * trace * min(trace_clip, before.ratio) for before in links[:k]])
        * min(rho_clip, link.ratio)
        * link.delta
        for k, link in enumerate(links)
    )
    return links[0].value + float(sum(corrections))


def decisions(slab: Slab) -> list[tuple[int, int]]:
    """Of the learner: (step, slot) each."""
    found = np.argwhere(slab.acting[:STEPS] & (slab.policy == 0))
    return [(int(step), int(slot)) for step, slot in found]


seeds = st.integers(0, 2**32 - 1)
shares = st.sampled_from([0.0, 0.3, 0.7])
discounts = st.floats(0.5, 1.0)
traces = st.floats(0.0, 1.0)
clips = st.floats(0.3, 3.0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=10)
@given(seed=seeds, opponents=shares, discount=discounts, trace=traces)
def test_gae(kind: Kind, seed: int, opponents: float, discount: float, trace: float) -> None:
    slab = random_slab(np.random.default_rng(seed), kind, opponents)
    targets = estimate_advantages(slab, discount, trace, zero_sum=kind.zero_sum)
    for step, slot in decisions(slab):
        expected = gae(trajectory(slab, as_played(slab), slot, step, discount, kind), trace)
        assert targets.advantages[step, slot] == pytest.approx(expected, abs=1e-4)
        assert targets.returns[step, slot] == pytest.approx(expected + slab.value[step, slot], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=10)
@given(seed=seeds, opponents=shares, discount=discounts, trace=traces, rho_clip=clips, trace_clip=clips)
def test_vtrace(
    kind: Kind,
    seed: int,
    opponents: float,
    discount: float,
    trace: float,
    rho_clip: float,
    trace_clip: float,
) -> None:
    rng = np.random.default_rng(seed)
    slab = random_slab(rng, kind, opponents)
    judged = random_judgement(rng, slab)
    targets = estimate_advantages(
        slab, discount, trace, zero_sum=kind.zero_sum, judged=judged, rho_clip=rho_clip, trace_clip=trace_clip
    )
    for step, slot in decisions(slab):
        links = trajectory(slab, judged, slot, step, discount, kind)
        target = vtrace(links, trace, rho_clip, trace_clip)
        after = vtrace(links[1:], trace, rho_clip, trace_clip) if links[1:] else links[0].after
        advantage = links[0].earned + links[0].discount * after - links[0].value
        # Clipped ratios may be up to 3, so numbers grow along a chain.
        assert targets.returns[step, slot] == pytest.approx(target, rel=1e-3, abs=1e-3)
        assert targets.advantages[step, slot] == pytest.approx(advantage, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=10)
@given(seed=seeds, opponents=shares, trace=traces)
def test_vtrace_of_what_the_same_policy_played_is_gae(
    kind: Kind, seed: int, opponents: float, trace: float
) -> None:
    slab = random_slab(np.random.default_rng(seed), kind, opponents)

    def both(lam: float) -> tuple[Targets, Targets]:
        plain = estimate_advantages(slab, 0.9, lam, zero_sum=kind.zero_sum)
        return plain, estimate_advantages(slab, 0.9, lam, zero_sum=kind.zero_sum, judged=as_played(slab))

    plain, corrected = both(trace)
    np.testing.assert_allclose(corrected.returns, plain.returns, atol=1e-5)
    plain, corrected = both(1.0)
    ours = slab.acting[:STEPS] & (slab.policy == 0)
    np.testing.assert_allclose(corrected.advantages[ours], plain.advantages[ours], atol=1e-5)


def test_a_ratio_beyond_all_bounds_is_clipped_without_a_warning() -> None:
    slab = random_slab(np.random.default_rng(1), TURNING)
    far = np.full_like(slab.log_prob, 500.0)
    slab.log_prob[:] = 0
    for judgement, same in ((far, np.zeros_like(far)), (-far, np.full_like(far, -np.inf))):
        found, expected = (
            estimate_advantages(
                slab, 0.9, 0.8, zero_sum=True, judged=Judged(log_probs, slab.value, slab.final_value)
            )
            for log_probs in (judgement, same)
        )
        np.testing.assert_array_equal(found.returns, expected.returns)


def small_game(policies: Sequence[int]) -> Slab:
    """One game of three plies that seat 0 wins."""
    shape = SlabShape(steps=3, games=1, seats=2, packed_bytes=4, simultaneous=False)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    slab.acting[:] = True
    slab.seat[:, 0] = [0, 1, 0, 1]
    slab.policy[:, 0] = policies
    slab.reward[2, 0] = [1, -1]
    slab.terminated[2, 0] = True
    slab.value[3] = 5  # of the next game: it must not matter
    return slab


def test_a_won_game_is_good_for_the_winner_and_bad_for_the_loser() -> None:
    advantages = estimate_advantages(small_game([0, 0, 0]), 1.0, 1.0, zero_sum=True).advantages[:, 0]
    assert advantages.tolist() == [1, -1, 1]


def test_what_an_opponent_thinks_of_the_game_does_not_matter() -> None:
    found = []
    for opinion in (0.0, 9.0):
        slab = small_game([0, 1, 0])
        slab.value[:3, 0] = [0.5, opinion, 0.75]
        found.append(estimate_advantages(slab, 1.0, 0.0, zero_sum=True).advantages[[0, 2], 0].tolist())
    assert found[0] == found[1] == [0.25, 0.25]
