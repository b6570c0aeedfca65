"""The losses of a minibatch against cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from plain_ppo_for_tests import rows_of
from ppo_for_tests import FixedNetwork, fixed, two_rows

from keisei.experience.rollout import Minibatch
from keisei.games import make_game
from keisei.learners.ppo import PPO, Losses, PPOConfig


def test_policy_loss_is_clipped_where_the_ratio_left_its_bounds() -> None:
    # Both rows uniform over nine actions: ratios 1/9 / 0.1 = 1.111 and 1/9 / 0.2 = 0.5556.
    losses = fixed(torch.zeros(2, 9), [0.0, 0.0]).losses(two_rows())
    first = (1 / 9) / 0.1 * 1.0  # within 0.8 … 1.2
    second = min((1 / 9) / 0.2 * -2.0, 0.8 * -2.0)  # clipped at 0.8, and the smaller of the two counts
    assert losses.policy.item() == pytest.approx(-(first + second) / 2, rel=1e-5)
    assert losses.entropy.item() == pytest.approx(math.log(9), rel=1e-5)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain"),
    [
        (1.5, 1.0, 1.3),  # good, and already much likelier: no more to gain
        (1.5, -1.0, -1.5),  # bad, and likelier: the full loss
        (0.5, 1.0, 0.5),  # good, and less likely: all that is lost
        (0.5, -1.0, -0.7),  # bad, and already unlikely
        (1.25, 2.0, 2.5),
        (0.75, -2.0, -1.5),
    ],
)
def test_the_clip_takes_away_gains_and_no_losses(ratio: float, advantage: float, gain: float) -> None:
    acted = np.full(2, math.log(1 / 9 / ratio), np.float32)
    rows = two_rows(log_probs=acted, advantages=np.full(2, advantage, np.float32))
    losses = fixed(torch.zeros(2, 9), [0.0, 0.0], clip=0.3).losses(rows)
    assert losses.policy.item() == pytest.approx(-gain, rel=1e-5)


@pytest.mark.parametrize(
    ("ratios", "share"), [((1.31, 1.0), 0.5), ((0.69, 1.29), 0.5), ((0.71, 1.29), 0.0), ((0.1, 9.0), 1.0)]
)
def test_the_clip_fraction_counts_ratios_out_of_bounds_on_either_side(
    ratios: tuple[float, float], share: float
) -> None:
    rows = two_rows(log_probs=np.log(np.array([1 / 9 / ratio for ratio in ratios], np.float32)))
    losses = fixed(torch.zeros(2, 9), [0.0, 0.0], clip=0.3).losses(rows)
    assert losses.clip_fraction.item() == share


def test_the_divergence_is_estimated_without_bias_and_never_negative() -> None:
    """Mean of r - 1 - log r over what the old policy did; weighted by its chances that is KL(old, new) itself."""
    old, new = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    logits = torch.full((2, 9), -60.0)
    logits[:, :2] = torch.log(torch.tensor(new)).float()  # as good as certain to play one of the first two
    ppo = fixed(logits, [0.0, 0.0])
    found = [
        ppo.losses(rows_of(two_rows(log_probs=np.log(old).astype(np.float32)), row, row + 1)).approx_kl.item()
        for row in (0, 1)
    ]
    assert found == pytest.approx([2 - 1 - math.log(2), 2 / 3 - 1 - math.log(2 / 3)], rel=1e-4)
    expected = float((old * np.log(old / new)).sum())
    assert float((old * found).sum()) == pytest.approx(expected, rel=1e-4)
    both = ppo.losses(two_rows(log_probs=np.log(old).astype(np.float32)))
    assert both.approx_kl.item() == pytest.approx(sum(found) / 2, rel=1e-4)


def test_illegal_actions_have_no_part_in_probability_or_entropy() -> None:
    game = make_game("tictactoe", batch=1, seed=1)
    for action in (4, 0, 8):
        game.step(np.array([action]))
    logits = torch.zeros(1, 9)
    logits[0, [0, 4, 8]] = 50.0  # a network in love with the three squares that are taken
    ppo = PPO(FixedNetwork(logits, torch.zeros(1)), game, PPOConfig(normalise_advantages=False))
    batch = Minibatch(
        game.pack(),
        np.array([1], np.int32),
        np.log(np.array([1 / 6], np.float32)),
        *(np.array([number], np.float32) for number in (0, 3, 0)),
    )
    losses = ppo.losses(batch)
    assert losses.policy.item() == pytest.approx(-3, rel=1e-5)  # the ratio is exactly 1
    assert losses.entropy.item() == pytest.approx(math.log(6), rel=1e-5)
    losses.total(ppo.config, 0.01).backward()  # type: ignore[no-untyped-call]
    assert torch.equal(ppo.network.logits.grad[0, [0, 4, 8]], torch.zeros(3))


def test_value_loss_plain_and_clipped() -> None:
    plain = fixed(torch.zeros(2, 9), [0.4, 0.2]).losses(two_rows())
    assert plain.value.item() == pytest.approx((0.6**2 + 1.2**2) / 2, rel=1e-5)
    # Clipped to 0.1 around the old values 0 and 0.5: 0.1 and 0.4; the larger error of the two counts.
    clipped = fixed(torch.zeros(2, 9), [0.4, 0.2], value_clip=0.1).losses(two_rows())
    assert clipped.value.item() == pytest.approx((0.9**2 + 1.4**2) / 2, rel=1e-5)
    # Away from the returns 1 and -1, the plain errors are the larger ones.
    away = fixed(torch.zeros(2, 9), [-0.4, 0.8], value_clip=0.1).losses(two_rows())
    assert away.value.item() == pytest.approx((1.4**2 + 1.8**2) / 2, rel=1e-5)


def test_values_are_fitted_to_weighted_rows_and_all_else_is_a_plain_mean() -> None:
    weights = np.array([1.75, 0.25], np.float32)
    ppo = fixed(torch.randn(2, 9, generator=torch.Generator().manual_seed(1)), [0.4, 0.2], clip=0.01)
    rows, both = ppo.row_losses(two_rows()), ppo.losses(two_rows(weights=weights))
    for name in Losses.__slots__:
        first, second = getattr(rows, name).tolist()
        own = (1.75, 0.25) if name == "value" else (1, 1)
        mean = (own[0] * first + own[1] * second) / 2
        assert getattr(both, name).item() == pytest.approx(mean, rel=1e-4), name


def test_the_total_weighs_values_and_rewards_entropy() -> None:
    one = [torch.tensor(number) for number in (0.5, 2.0, 3.0, 9.0, 9.0)]
    assert Losses(*one).total(PPOConfig(value_weight=0.25), 0.1).item() == pytest.approx(0.5 + 0.5 - 0.3)
