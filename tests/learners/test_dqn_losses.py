"""Targets, losses, gradients and the target network against a plain DQN, and against cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from plain_dqn_for_tests import PlainDQN, linear_dqn, rows_of, some_sample
from torch import Tensor

from keisei.experience.replayed import ReplaySample
from keisei.learners.dqn import DQN, DQNConfig, quantile_losses
from keisei.policies.networks import ActorCritic, ModelConfig
from keisei.policies.q_network import QNetwork

KINDS = [
    pytest.param({"outputs": "dueling"}, id="dueling"),
    pytest.param({"outputs": "q"}, id="q"),
    pytest.param({"outputs": "dueling", "quantiles": 3}, id="dueling, quantiles"),
    pytest.param({"outputs": "q", "quantiles": 4}, id="quantiles"),
]


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_a_plain_dqn(kind: dict[str, Any], double: bool) -> None:
    settings: dict[str, Any] = {
        "learning_rate": 0.05,
        "target_interval": 2,
        "tau": 0.75,
        "max_grad_norm": 0.3,
        "huber": 0.7,
    }
    learner = linear_dqn(1, double=double, **kind, **settings)
    plain = PlainDQN.of(learner, kind["outputs"] == "dueling")
    for seed in range(5):
        sample = some_sample(24, seed)
        loss, errors = plain.step(sample)
        step = learner.step(sample)
        assert step.loss == pytest.approx(loss, rel=1e-4)
        np.testing.assert_allclose(step.errors, errors, rtol=1e-3, atol=1e-4)
        for name, weight in plain.weights.items():
            ours, theirs = (dict(net.body.named_parameters()) for net in (learner.network, learner.target))
            np.testing.assert_allclose(ours[name].detach(), weight, atol=2e-4)
            np.testing.assert_allclose(theirs[name].detach(), plain.target[name], atol=2e-4)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_those_of_a_plain_dqn(kind: dict[str, Any], double: bool) -> None:
    learner = linear_dqn(2, double=double, target_interval=1000, **kind)
    plain = PlainDQN.of(learner, kind["outputs"] == "dueling")
    for seed in range(3):  # so that the two networks differ
        learner.step(some_sample(24, seed))
        plain.step(some_sample(24, seed))
    sample = some_sample(36, 7)
    expected = np.stack([plain.targets(sample, row) for row in range(len(sample))])
    np.testing.assert_allclose(learner.targets(sample), expected, atol=1e-4)


class Fixed(ActorCritic):
    """Gives the same outputs for every position."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__(linear_dqn()._game.spec.observation)
        self.outputs = torch.nn.Parameter(outputs)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs.expand(len(inputs), -1), torch.zeros(len(inputs))


def fixed_dqn(online: list[float], target: list[float], **settings: Any) -> DQN:
    """A learner whose network and target network give these values to the nine squares of any position."""
    game = linear_dqn()._game
    network = QNetwork(Fixed(torch.tensor(online)), ModelConfig(outputs="q"), game.spec)
    learner = DQN(network, game, DQNConfig(**settings))
    with torch.no_grad():
        learner.target.body.outputs.copy_(torch.tensor(target))  # type: ignore[operator, union-attr]
    return learner


def one_row(**columns: Any) -> ReplaySample:
    """The first position, where all squares are free, followed by one in which squares 0 and 4 are taken."""
    game = linear_dqn()._game
    first = game.pack()
    game.step(np.array([0]))
    game.step(np.array([4]))
    row: dict[str, Any] = {
        "packed": first,
        "actions": np.array([3], np.int32),
        "rewards": np.array([0.5], np.float32),
        "next_packed": game.pack(),
        "discounts": np.array([0.9], np.float32),
        "weights": np.ones(1, np.float32),
        "places": np.zeros(1, np.int32),
        "generations": np.zeros(1, np.int32),
    }
    return ReplaySample(**(row | columns))


ONLINE = [9.0, 1, 2, 3, 9, 5, 4, 0, 0]  # squares 0 and 4 look best, and are taken
TARGET = [7.0, 1, 1, 1, 7, 2, 6, 1, 1]


def test_an_illegal_action_never_wins_the_maximum() -> None:
    # Of the free squares, 5 is the best for the network and 6 for the target network.
    assert fixed_dqn(ONLINE, TARGET).targets(one_row()).item() == pytest.approx(0.5 + 0.9 * 2)
    assert fixed_dqn(ONLINE, TARGET, double=False).targets(one_row()).item() == pytest.approx(0.5 + 0.9 * 6)


def test_where_all_legal_actions_lose_none_is_taken_for_0() -> None:
    losing = [0.0, -1, -2, -3, 0, -4, -5, -6, -7]
    assert fixed_dqn(losing, losing).targets(one_row()).item() == pytest.approx(0.5 + 0.9 * -1)


def test_the_value_of_the_other_side_counts_against_the_mover() -> None:
    other_side = one_row(discounts=np.array([-0.9], np.float32))
    assert fixed_dqn(ONLINE, TARGET).targets(other_side).item() == pytest.approx(0.5 - 0.9 * 2)


def test_a_game_that_ended_is_worth_its_rewards() -> None:
    over = one_row(discounts=np.zeros(1, np.float32), next_packed=np.zeros_like(one_row().next_packed))
    assert fixed_dqn(ONLINE, TARGET).targets(over).item() == pytest.approx(0.5)


def test_targets_have_no_gradient() -> None:
    learner = linear_dqn()
    assert not learner.targets(some_sample(6)).requires_grad
    learner.step(some_sample(6))
    assert all(weight.grad is None for weight in learner.target.parameters())


@pytest.mark.parametrize(("taken", "loss"), [(5.0, 0.5**2 / 2), (9.0, 2 * (3.5 - 1))])
def test_large_errors_count_in_a_line(taken: float, loss: float) -> None:
    values = [0.0] * 9
    values[3] = taken
    over = one_row(discounts=np.zeros(1, np.float32), rewards=np.array([5.5], np.float32))
    assert fixed_dqn(values, TARGET, huber=2.0).step(over).loss == pytest.approx(loss)


def test_weights_scale_losses_and_not_errors() -> None:
    learner, sample = linear_dqn(), some_sample(12)
    single = [learner_loss(rows_of(sample, [row])) for row in range(12)]
    assert learner.step(sample).loss == pytest.approx(np.mean(single), rel=1e-5)
    half = replace(sample, weights=sample.weights / 2)
    one, other = linear_dqn().step(sample), linear_dqn().step(half)
    assert other.loss == pytest.approx(one.loss / 2, rel=1e-5)
    np.testing.assert_array_equal(one.errors, other.errors)


def learner_loss(sample: ReplaySample) -> float:
    return linear_dqn().step(sample).loss


def test_quantile_losses_of_a_case_worked_out_by_hand() -> None:
    # Two quantiles, tau 1/4 and 3/4; predicted 0 and 1, targets 0.5 and 3; the loss is linear from 1 on.
    # tau 1/4: errors 0.5 and 3, losses 0.125 and 2.5, slope 1/4 each: mean (0.03125 + 0.625) / 2
    # tau 3/4: errors -0.5 and 2, losses 0.125 and 1.5, slopes 1/4 and 3/4: mean (0.03125 + 1.125) / 2
    found = quantile_losses(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 3.0]]), 1.0)
    assert found.tolist() == pytest.approx([(0.03125 + 0.625) / 2 + (0.03125 + 1.125) / 2])
