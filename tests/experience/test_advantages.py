"""Advantages against a slow, obvious reading: every game's trajectory by itself, summed term by term."""

from __future__ import annotations

import numpy as np
import pytest

from keisei.experience.advantages import estimate_advantages
from keisei.experience.memory import SharedBlock
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout

DISCOUNT, TRACE = 0.9, 0.8


def random_slab(rng: np.random.Generator, *, seats: int, simultaneous: bool, zero_sum: bool) -> Slab:
    """Movers that change or stay at random, and games that end or are cut at random."""
    shape = SlabShape(steps=12, games=7, seats=seats, packed_bytes=4, simultaneous=simultaneous)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    slots = shape.slots
    slab.acting[:] = rng.random((13, slots)) < 0.8 if simultaneous else True
    slab.seat[:] = np.tile(np.arange(seats), 7) if simultaneous else rng.integers(seats, size=(13, slots))
    slab.value[:] = rng.normal(size=(13, slots))
    reward = rng.normal(size=(12, 7, seats))
    if zero_sum:
        reward[..., 1] = -reward[..., 0]
    slab.reward[:] = reward
    ending = rng.random((12, 7))
    slab.terminated[:] = ending < 0.15
    slab.truncated[:] = (ending >= 0.15) & (ending < 0.3)
    slab.final_value[:] = rng.normal(size=(12, slots))
    slab.final_seat[:] = slab.seat[0] if simultaneous else rng.integers(seats, size=(12, slots))
    return slab


def brute_force(slab: Slab, game: int, start: int, *, zero_sum: bool) -> float:
    """The advantage of the decision of one turn-based game at one step, from the definition."""
    me = int(slab.seat[start, game])
    advantage, weight = 0.0, 1.0
    t = start
    while True:
        # From this decision to the next one of the same view, or to the end of the record.
        earned, here = 0.0, _view(slab, t, game, me, zero_sum)
        while True:
            earned += float(slab.reward[t, game, me])
            if slab.terminated[t, game]:
                return advantage + weight * (earned - here)
            if slab.truncated[t, game]:
                after = _at_cut(slab, t, game, me, zero_sum, here)
                return advantage + weight * (earned + DISCOUNT * after - here)
            t += 1
            last = t == slab.shape.steps
            if zero_sum or slab.seat[t, game] == me or last:
                break
        known = zero_sum or slab.seat[t, game] == me
        after = _view(slab, t, game, me, zero_sum) if known else here
        advantage += weight * (earned + DISCOUNT * after - here)
        if last:
            return advantage
        weight *= DISCOUNT * TRACE


def _view(slab: Slab, t: int, game: int, me: int, zero_sum: bool) -> float:
    value = float(slab.value[t, game])
    return -value if zero_sum and slab.seat[t, game] != me else value


def _at_cut(slab: Slab, t: int, game: int, me: int, zero_sum: bool, mine: float) -> float:
    value = float(slab.final_value[t, game])
    if slab.final_seat[t, game] == me:
        return value
    return -value if zero_sum else mine


@pytest.mark.parametrize(("seats", "zero_sum"), [(2, True), (2, False), (3, False)])
@pytest.mark.parametrize("seed", range(4))
def test_turn_based(seats: int, zero_sum: bool, seed: int) -> None:
    slab = random_slab(np.random.default_rng(seed), seats=seats, simultaneous=False, zero_sum=zero_sum)
    targets = estimate_advantages(slab, DISCOUNT, TRACE, zero_sum=zero_sum)
    for game in range(7):
        for start in range(12):
            expected = brute_force(slab, game, start, zero_sum=zero_sum)
            assert targets.advantages[start, game] == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(targets.returns, targets.advantages + slab.value[:12], rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_simultaneous(seed: int) -> None:
    slab = random_slab(np.random.default_rng(seed), seats=3, simultaneous=True, zero_sum=False)
    advantages = estimate_advantages(slab, DISCOUNT, TRACE, zero_sum=False).advantages
    for slot in range(21):
        for start in np.flatnonzero(slab.acting[:12, slot]):
            assert advantages[start, slot] == pytest.approx(_slot_by_slot(slab, slot, int(start)), abs=1e-4)
        assert not advantages[~slab.acting[:12, slot], slot].any()


def _slot_by_slot(slab: Slab, slot: int, start: int) -> float:
    game, seat = divmod(slot, 3)
    advantage, weight, t = 0.0, 1.0, start
    while True:
        earned, here = 0.0, float(slab.value[t, slot])
        while True:
            earned += float(slab.reward[t, game, seat])
            if slab.terminated[t, game]:
                return advantage + weight * (earned - here)
            if slab.truncated[t, game]:
                return advantage + weight * (earned + DISCOUNT * float(slab.final_value[t, slot]) - here)
            t += 1
            if slab.acting[t, slot] or t == 12:
                break
        after = float(slab.value[t, slot]) * float(slab.acting[t, slot])
        advantage += weight * (earned + DISCOUNT * after - here)
        if t == 12:
            return advantage
        weight *= DISCOUNT * TRACE


def test_a_won_game_is_good_for_the_winner_and_bad_for_the_loser() -> None:
    shape = SlabShape(steps=3, games=1, seats=2, packed_bytes=4, simultaneous=False)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    slab.acting[:] = True
    slab.seat[:, 0] = [0, 1, 0, 1]
    slab.reward[2, 0] = [1, -1]
    slab.terminated[2, 0] = True
    slab.value[3] = 5  # of the next game: it must not matter
    advantages = estimate_advantages(slab, 1.0, 1.0, zero_sum=True).advantages[:, 0]
    assert advantages.tolist() == [1, -1, 1]
