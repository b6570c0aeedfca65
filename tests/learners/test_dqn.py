"""What DQN asks of a replay, how it follows its schedules, and that threads change no bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_dqn_for_tests import PlainReplay, linear_dqn, linear_network, some_sample

from keisei.errors import LearningError
from keisei.games import make_game
from keisei.learners.contract import Learner
from keisei.learners.dqn import DQN, DQNConfig
from keisei.policies.networks import build_network
from keisei.policies.q_network import QNetwork
from keisei.runs.state_tensors import weights_digest


def test_it_keeps_the_contract_of_learners() -> None:
    learner: Learner[PlainReplay] = linear_dqn()
    assert learner.state() is not None


def test_each_due_step_has_a_sample_of_its_own() -> None:
    learner, replay = linear_dqn(5, minibatch_size=8), PlainReplay(some_sample(40), due=3)
    report = learner.learn(replay, 0.0)
    assert replay.asked == [(8, 5, 0), (8, 5, 1), (8, 5, 2)]
    learner.learn(replay, 0.1)
    assert replay.asked[3:] == [(8, 5, 3), (8, 5, 4), (8, 5, 5)], "keys go on from update to update"
    assert (learner.steps, report.numbers["train/gradient_steps"]) == (6, 3)


def test_without_due_steps_nothing_changes() -> None:
    learner = linear_dqn()
    digest = weights_digest(learner.network)
    report = learner.learn(PlainReplay(some_sample(40), due=0), 0.5)
    assert (learner.steps, weights_digest(learner.network)) == (0, digest)
    assert report.numbers["train/gradient_steps"] == 0
    assert "train/loss" not in report.numbers


def test_the_replay_is_told_the_error_of_each_decision() -> None:
    learner, replay = linear_dqn(minibatch_size=16), PlainReplay(some_sample(40))
    sample = replay.sample(16, 0, 0)
    expected = (learner.targets(sample) - learner.predicted(sample)).squeeze(1).abs().detach()
    learner.learn(replay, 0.0)
    ((places, errors),) = replay.told
    assert places == sample.places.tolist()
    np.testing.assert_allclose(errors, expected, rtol=1e-5)


def test_a_report_has_the_means_of_all_steps() -> None:
    learner, twin = linear_dqn(minibatch_size=8), linear_dqn(minibatch_size=8)
    replay = PlainReplay(some_sample(40), due=4)
    report = learner.learn(replay, 0.25).numbers
    steps = [twin.step(replay.sample(8, 0, key)) for key in range(4)]
    assert report["train/loss"] == pytest.approx(np.mean([step.loss for step in steps]))
    assert report["train/q_mean"] == pytest.approx(np.mean([step.q_mean for step in steps]))
    assert report["train/td_error"] == pytest.approx(np.mean([step.errors.mean() for step in steps]))
    assert report["rollout/exploration_rate"] == pytest.approx(0.525)


def test_schedules_follow_the_run() -> None:
    learner = linear_dqn(
        learning_rate=0.1, schedule="linear", epsilon=0.9, final_epsilon=0.1, epsilon_spread=7
    )
    report = learner.learn(PlainReplay(some_sample(40)), 0.75)
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    assert report.numbers["train/learning_rate"] == pytest.approx(0.025)
    behaviour = learner.behaviour(0.25)
    assert behaviour.network is learner.network
    assert behaviour.settings[0] == pytest.approx((0.0, 0.5, 7.0))


@pytest.mark.parametrize("network", ["mlp", "gather", "slim"])
def test_threads_change_no_bit_and_parts_do(network: str) -> None:
    digests, errors = [], []
    for parts, threads in [(3, 1), (3, 2), (3, 5), (1, 1)]:
        game = make_game("tictactoe", batch=1, seed=0)
        model = {"network": network, "hidden_dim": 16, "channels": 8, "outputs": "dueling", "quantiles": 2}
        built = build_network(model, game.spec, 3)
        assert isinstance(built, QNetwork)
        learner = DQN(built, game, DQNConfig(), parts=parts, threads=threads)
        errors.append(np.concatenate([learner.step(some_sample(50, seed)).errors for seed in range(3)]))
        digests.append(weights_digest(learner.network))
    assert digests[0] == digests[1] == digests[2] != digests[3]
    for found in errors[1:3]:
        np.testing.assert_array_equal(found, errors[0])
    np.testing.assert_allclose(errors[3], errors[0], rtol=1e-3, atol=1e-4)


def test_parts_add_up_to_the_whole() -> None:
    whole, parted = linear_dqn(), linear_dqn(parts=3)
    one, other = (learner.step(some_sample(20)) for learner in (whole, parted))
    assert (other.loss, other.q_mean) == pytest.approx((one.loss, one.q_mean), rel=1e-5)
    for weight, same in zip(whole.network.parameters(), parted.network.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, same.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("tau", "interval"), [(1.0, 3), (0.25, 1)])
def test_the_target_network_follows(tau: float, interval: int) -> None:
    learner = linear_dqn(tau=tau, target_interval=interval, learning_rate=0.1)
    before = [weight.clone() for weight in learner.target.parameters()]
    for seed in range(interval - 1):
        learner.step(some_sample(12, seed))
    for old, now in zip(before, learner.target.parameters(), strict=True):
        assert torch.equal(old, now), "it rests in between"
    learner.step(some_sample(12, 9))
    for old, now, new in zip(before, learner.target.parameters(), learner.network.parameters(), strict=True):
        torch.testing.assert_close(now, old + tau * (new.detach() - old))
        assert tau < 1 or torch.equal(now, new)


def test_a_loss_that_is_no_number_ends_training_and_changes_nothing() -> None:
    learner = linear_dqn()
    sample = some_sample(12)
    with torch.no_grad():
        learner.network.body.value[0] = torch.nan
    digest = weights_digest(learner.network)
    replay = PlainReplay(sample)
    replay.sample = lambda *key: sample  # type: ignore[method-assign]
    with pytest.raises(
        LearningError, match=r"the loss is nan in gradient step 0.*lower learner\.learning_rate"
    ):
        learner.learn(replay, 0.0)
    assert (learner.steps, weights_digest(learner.network), replay.told) == (0, digest, [])


def test_rewards_that_are_no_numbers_are_blamed_on_the_game() -> None:
    learner, sample = linear_dqn(), some_sample(12)
    sample.rewards[3] = np.nan
    with pytest.raises(
        LearningError, match="gradient step 0, since tictactoe pays rewards that are not finite"
    ):
        learner.step(sample)


def test_gradients_are_clipped() -> None:
    def moved(limit: float) -> float:
        learner = linear_dqn(max_grad_norm=limit)
        learner.step(some_sample(12))
        return float(sum(weight.grad.square().sum() for weight in learner.network.parameters()) ** 0.5)  # type: ignore[union-attr, misc]

    assert moved(1e-3) == pytest.approx(1e-3, rel=1e-4)
    assert moved(1e3) > 0.01


def test_a_network_without_its_value_head_learns_too() -> None:
    learner = linear_dqn(outputs="q", learning_rate=0.1)
    before = learner.network.body.value.clone()  # type: ignore[operator, union-attr]
    learner.step(some_sample(12))
    assert torch.equal(learner.network.body.value, before)  # type: ignore[arg-type]
    assert not torch.equal(learner.network.body.policy, linear_network("q").body.policy)  # type: ignore[arg-type]
