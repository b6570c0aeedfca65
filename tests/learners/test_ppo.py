"""An update against a second implementation in NumPy; what is done to minibatches, and in which order."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
import torch
from plain_ppo_for_tests import Constants, LinearNetwork, PlainPPO, PlainView, rows_of, some_rows
from ppo_for_tests import GAME, fixed, linear, two_rows

import keisei.learners.ppo
from keisei.errors import LearningError
from keisei.experience.rollout import Minibatch
from keisei.learners.ppo import PPO, Losses, PPOConfig, explained_variance
from keisei.machine.torch_threads import torch_threads
from keisei.policies.behaviour import PlaySettings
from keisei.policies.networks import ActorCritic
from keisei.runs.metric_names import TAGS

REFERENCE: dict[str, tuple[dict[str, Any], float, float, float]] = {
    # settings; then the learning rate and the entropy weight at the progress that comes last
    "normalised, gradients cut": (
        {"learning_rate": 0.04, "schedule": "linear", "final_rate": 0.5, "max_grad_norm": 0.05, "clip": 0.3},
        0.035,
        0.01,
        0.25,
    ),
    "clipped values, cosine": (
        {
            "learning_rate": 0.04,
            "schedule": "cosine",
            "value_clip": 0.2,
            "value_weight": 0.7,
            "normalise_advantages": False,
            "max_grad_norm": 100.0,
            "entropy_weight": 0.2,
            "final_entropy_weight": 0.1,
        },
        0.00585786,
        0.125,
        0.75,
    ),
    "small gradients": (
        {"learning_rate": 0.02, "schedule": "constant", "max_grad_norm": 1e-4, "entropy_weight": 0.0},
        0.02,
        0.0,
        0.5,
    ),
}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("case", REFERENCE)
def test_updates_are_those_of_a_second_implementation(case: str, parts: int) -> None:
    settings, rate, entropy, progress = REFERENCE[case]
    ppo = linear(parts=parts, epochs=2, minibatch_size=20, **settings)
    config = ppo.config
    constants = Constants(
        rate,
        entropy,
        config.clip,
        config.value_weight,
        config.value_clip,
        config.max_grad_norm,
        config.normalise_advantages,
    )
    plain = PlainPPO(ppo.network.weights())
    for update in range(3):
        before, rows = dict(plain.weights), some_rows(40, seed=update)
        numbers = plain.learn([rows_of(rows, 0, 20), rows_of(rows, 20, 40)], 2, constants)
        report = ppo.learn(PlainView(rows), progress).owners[0]
        for name, number in numbers.items():
            assert report[name] == pytest.approx(number, rel=2e-4, abs=1e-6), name
        for name, weight in ppo.network.weights().items():
            change, expected = weight - before[name], plain.weights[name] - before[name]
            np.testing.assert_allclose(change, expected, rtol=2e-3, atol=1e-5, err_msg=name)
            assert np.abs(expected).max() > 0.01


def test_a_report_has_every_number_of_learning() -> None:
    report = linear(epochs=3, minibatch_size=8, learning_rate=0.5, schedule="linear").learn(
        PlainView(some_rows(24)), progress=0.25
    )
    assert set(report.owners) == {0}
    others = {"train/n_updates", "train/q_mean", "train/td_error"}
    assert set(report.numbers) == {name for name in TAGS if name.startswith("train/")} - others
    assert report.numbers["train/learning_rate"] == 0.375
    assert report.numbers["train/gradient_steps"] == 9
    assert all(type(number) is float for number in report.numbers.values())
    assert report.failures == {}


def test_explained_variance_is_the_share_that_values_foretell() -> None:
    returns = np.array([1, -1, 1, -1], np.float32)
    assert explained_variance(returns, returns) == 1
    assert explained_variance(np.zeros(4, np.float32), returns) == 0
    assert explained_variance(returns + 7, returns) == 1, "a constant error has no variance"
    assert explained_variance(-returns, returns) == -3
    # Errors 0.5, -0.5, 1.5, -1.5 around a variance of 1: (0.25 + 0.25 + 2.25 + 2.25) / 4 = 1.25
    assert explained_variance(np.array([0.5, -0.5, -0.5, 0.5], np.float32), returns) == pytest.approx(-0.25)
    assert explained_variance(np.array([1, 2, 3, 4], np.float32), np.ones(4, np.float32)) == 0


def test_the_report_explains_variance_by_the_values_before_the_update() -> None:
    rows = some_rows(16)
    errors, returns = (rows.returns - rows.values).astype(float), rows.returns.astype(float)
    expected = 1 - ((errors - errors.mean()) ** 2).sum() / ((returns - returns.mean()) ** 2).sum()
    report = linear(epochs=1, minibatch_size=4).learn(PlainView(rows), 0.0)
    assert report.numbers["train/explained_variance"] == pytest.approx(expected, rel=1e-4)


# What is done to a minibatch, and in which order.


def batches_of_steps(ppo: PPO, monkeypatch: pytest.MonkeyPatch) -> list[Minibatch]:
    """The minibatches of all steps from now on."""
    seen: list[Minibatch] = []
    step = ppo.step

    def watched(batch: Minibatch, progress: float) -> Losses:
        seen.append(batch)
        return step(batch, progress)

    monkeypatch.setattr(ppo, "step", watched)
    return seen


def test_advantages_are_normalised_within_each_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = linear(epochs=1, minibatch_size=2, parts=2)
    seen = batches_of_steps(ppo, monkeypatch)
    rows = two_rows(advantages=np.array([1.0, 4.0], np.float32))
    ppo.learn(PlainView(rows), 0.0)
    assert seen[0].advantages.tolist() == pytest.approx([-1, 1])  # mean 2.5, deviation 1.5
    assert rows.advantages.tolist() == [1, 4], "the rollout keeps its own"
    np.testing.assert_array_equal(seen[0].returns, rows.returns)
    four = some_rows(4)
    ppo.learn(PlainView(four), 0.0)
    for batch in seen[1:]:
        assert sorted(batch.advantages.tolist()) == pytest.approx([-1, 1], abs=1e-5)


def test_weights_of_values_leave_advantages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = linear(epochs=1, minibatch_size=2)
    seen = batches_of_steps(ppo, monkeypatch)
    ppo.learn(
        PlainView(two_rows(advantages=np.array([5, 1], np.float32), weights=np.array([3, 1], np.float32))),
        0.0,
    )
    assert seen[0].advantages.tolist() == pytest.approx([1, -1], rel=1e-5)


@pytest.mark.parametrize(("normalise", "rows"), [(False, 2), (True, 1)])
def test_advantages_are_left_alone_unasked_and_of_a_single_row(
    normalise: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ppo = linear(epochs=1, minibatch_size=rows, normalise_advantages=normalise)
    seen = batches_of_steps(ppo, monkeypatch)
    ppo.learn(PlainView(rows_of(two_rows(), 0, rows)), 0.0)
    assert seen[0].advantages.tolist() == [1, -2][:rows]


def test_equal_advantages_do_not_divide_by_nothing() -> None:
    ppo = linear(epochs=1, minibatch_size=2)
    report = ppo.learn(PlainView(two_rows(advantages=np.ones(2, np.float32))), 0.0)
    assert report.numbers["train/policy_gradient_loss"] == 0


def test_every_epoch_of_a_run_has_a_key_of_its_own() -> None:
    ppo, view = linear(learner_seed=7, epochs=3, minibatch_size=4), PlainView(some_rows(8))
    for _ in range(2):
        ppo.learn(view, 0.0)
    assert view.asked == [(4, 7, epoch) for epoch in range(6)]
    assert ppo.updates == 2


def test_the_share_of_the_settings_is_asked_for_in_every_epoch() -> None:
    ppo, view = linear(epochs=2, minibatch_size=4, advantage_share=0.25), PlainView(some_rows(8))
    ppo.learn(view, 0.0)
    assert view.shares == [0.25, 0.25]


def test_the_network_trains_while_it_learns_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = linear(epochs=1, minibatch_size=4)
    modes: list[bool] = []
    ppo.network.register_forward_pre_hook(lambda *_: modes.append(ppo.network.training))
    ppo.network.eval()
    ppo.learn(PlainView(some_rows(8)), 0.0)
    assert modes == [True, True]
    assert not ppo.network.training


def fake_divergences(ppo: PPO, divergences: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that change nothing, and say that the policy has moved so far."""
    left = iter(divergences)
    nothing = torch.zeros(())
    monkeypatch.setattr(
        ppo,
        "step",
        lambda batch, progress: Losses(nothing, nothing, nothing, torch.tensor(next(left)), nothing),
    )


@pytest.mark.parametrize(
    ("divergences", "steps"),
    [
        ([0.5, 0.1, 0.0], 3),  # far in the mean; the last minibatch says nothing of it
        ([0.0, 0.1, 0.2] * 3, 9),  # near in the mean, though the last one is far
        ([0.2, 0.1, 0.0] * 3, 9),
        ([0.0, 0.0, 0.0, 0.2, 0.2, 0.2], 6),  # a near epoch does not make up for a far one
        ([0.149] * 9, 9),
        ([0.151] * 3, 3),
    ],
)
def test_an_update_ends_where_a_whole_epoch_is_far_away(
    divergences: list[float], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ppo = linear(epochs=3, minibatch_size=4, target_kl=0.1)
    fake_divergences(ppo, divergences, monkeypatch)
    view = PlainView(some_rows(12))
    report = ppo.learn(view, 0.0)
    assert report.numbers["train/gradient_steps"] == steps
    assert report.numbers["train/approx_kl"] == pytest.approx(np.mean(divergences[:steps]))
    assert ppo.updates == 1
    fake_divergences(ppo, [9.0] * 3, monkeypatch)
    ppo.learn(view, 0.0)
    assert view.asked[-1] == (4, 0, 3), "an update that ended early leaves the keys of the next as they are"


def test_without_a_target_no_divergence_ends_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = linear(epochs=2, minibatch_size=4)
    fake_divergences(ppo, [9.0] * 6, monkeypatch)
    assert ppo.learn(PlainView(some_rows(12)), 0.0).numbers["train/gradient_steps"] == 6


def test_a_loss_that_is_no_number_is_an_error_and_changes_nothing() -> None:
    ppo = fixed(torch.zeros(2, 9), [math.nan, 0.0])
    ppo.updates = 17
    with pytest.raises(
        LearningError, match=r"nan in update 17: training has diverged.*learner\.learning_rate"
    ):
        ppo.step(two_rows(), 0.0)
    assert torch.equal(ppo.network.logits, torch.zeros(2, 9))
    assert not ppo.optimizer.state


def test_a_loss_without_bounds_is_an_error_too() -> None:
    with pytest.raises(LearningError, match="the loss is inf"):
        fixed(torch.zeros(2, 9), [math.inf, 0.0]).step(two_rows(), 0.0)


def test_weights_that_are_fixed_stay_and_those_without_gradient_are_passed_over() -> None:
    network = LinearNetwork()
    network.value.requires_grad_(False)
    network.unused = torch.nn.Parameter(torch.ones(3))
    before = network.weights()
    ppo = PPO(network, GAME, PPOConfig(minibatch_size=4, epochs=1), parts=2)
    ppo.learn(PlainView(some_rows(8)), 0.0)
    after = network.weights()
    assert (after["policy"] != before["policy"]).any()
    for name in ("value", "unused"):
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("rows_at_once", [7, 40, 2048])
def test_the_judge_says_what_the_network_says_now(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keisei.learners.ppo, "JUDGED_AT_ONCE", rows_at_once)
    ppo, rows = linear(epochs=1, minibatch_size=8, learning_rate=0.05), some_rows(40)
    sizes: list[int] = []
    handle = ppo.network.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    ppo.network.train()
    log_probs, values = ppo.judge(rows.packed, rows.actions)
    handle.remove()
    assert not ppo.network.training
    assert set(sizes) == {rows_at_once}, "batches of one size alone"
    assert len(sizes) == math.ceil(40 / rows_at_once)
    for found, expected in zip((log_probs, values), opinions(ppo.network, rows), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)
    ppo.learn(PlainView(rows), progress=0.0)
    later, _ = ppo.judge(rows.packed, rows.actions)
    np.testing.assert_allclose(later, opinions(ppo.network, rows)[0], atol=1e-5)
    assert np.abs(later - log_probs).max() > 1e-3


def test_the_judge_may_be_asked_nothing() -> None:
    log_probs, values = linear().judge(some_rows(1).packed[:0], np.zeros(0, np.int32))
    assert log_probs.shape == values.shape == (0,)


def opinions(network: ActorCritic, batch: Minibatch) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of the actions and values, in the plainest way."""
    observations, legal = GAME.unpack(batch.packed)
    with torch.inference_mode():
        logits, values = network(torch.from_numpy(observations))
        masked = logits.masked_fill(~torch.from_numpy(legal), -torch.inf).log_softmax(1)
    chosen = masked.gather(1, torch.from_numpy(batch.actions).long()[:, None])[:, 0]
    return chosen.numpy(), values.numpy()


def test_an_update_makes_good_actions_likelier() -> None:
    ppo, rows = linear(epochs=2, minibatch_size=16, learning_rate=0.01), some_rows(64)
    before, _ = opinions(ppo.network, rows)
    ppo.learn(PlainView(rows), progress=0.0)
    gain = opinions(ppo.network, rows)[0] - before
    assert np.corrcoef(gain, rows.advantages)[0, 1] > 0.3


def test_workers_play_the_network_as_freely_as_they_are_told() -> None:
    network = LinearNetwork()
    usual = PPO(network, GAME, PPOConfig()).behaviour(0.5)
    assert (usual.network, usual.settings) == (network, (PlaySettings(1.0, 0.0, 0.0),))
    free = PPO(network, GAME, PPOConfig(), temperature=0.7, epsilon=0.1).behaviour(1.0)
    assert (free.network, free.settings) == (network, (PlaySettings(0.7, 0.1, 0.0),))


def test_all_work_is_done_on_one_thread_of_torch() -> None:
    """Sums come out otherwise on two, so who calls must not matter."""
    ppo, rows = linear(epochs=1, minibatch_size=8, parts=2), some_rows(8)
    seen: list[int] = []
    ppo.network.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    ppo.optimizer.register_step_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    with torch_threads(2):
        ppo.learn(PlainView(rows), 0.0)
        ppo.judge(rows.packed, rows.actions)
        assert torch.get_num_threads() == 2
    assert seen == [1, 1, 1, 1]


def test_parts_are_learned_from_at_once_by_as_many_threads() -> None:
    network, meeting = LinearNetwork(), threading.Barrier(3, timeout=30)

    def meet(*_: object) -> None:
        meeting.wait()  # passes only where three are there at once

    network.register_forward_hook(meet)
    ppo = PPO(network, GAME, PPOConfig(minibatch_size=12, epochs=1), parts=3, threads=3)
    ppo.learn(PlainView(some_rows(12)), 0.0)
