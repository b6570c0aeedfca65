"""The losses of PPO against small cases computed by hand, and what an update does."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import keisei.learners.ppo
from keisei.errors import LearningError
from keisei.experience.rollout import ExperienceBuffer, Minibatch, shuffled
from keisei.games import make_game
from keisei.learners.ppo import PPO, PPOConfig, scheduled
from keisei.parallel import ParallelManager
from keisei.policies.networks import ActorCritic, build_network

GAME = make_game("tictactoe", batch=4, seed=1)


class FixedNetwork(ActorCritic):
    """Gives the logits and values it holds, for as many rows as it is asked about."""

    def __init__(self, logits: Tensor, values: Tensor) -> None:
        super().__init__(GAME.spec.observation)
        self.logits = torch.nn.Parameter(logits)
        self.values = torch.nn.Parameter(values)

    def heads(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits[: len(observations)], self.values[: len(observations)]


def two_rows(**changes: object) -> Minibatch:
    """Two starting positions of tic-tac-toe, where all nine actions are legal."""
    columns: dict[str, object] = {
        "packed": GAME.pack()[:2],
        "actions": np.array([0, 1], np.int32),
        "log_probs": np.log(np.array([0.1, 0.2], np.float32)),
        "values": np.array([0.0, 0.5], np.float32),
        "advantages": np.array([1.0, -2.0], np.float32),
        "returns": np.array([1.0, -1.0], np.float32),
    }
    return Minibatch(**(columns | changes))  # type: ignore[arg-type]


def learner(logits: Tensor, values: list[float], **settings: object) -> PPO:
    config = PPOConfig(normalise_advantages=False, **settings)  # type: ignore[arg-type]
    return PPO(FixedNetwork(logits, torch.tensor(values)), GAME, config)


def test_policy_loss_is_clipped_where_the_ratio_left_its_bounds() -> None:
    # Both rows uniform over nine actions: ratios 1/9 / 0.1 = 1.111 and 1/9 / 0.2 = 0.5556.
    losses = learner(torch.zeros(2, 9), [0.0, 0.0]).losses(two_rows())
    first = (1 / 9) / 0.1 * 1.0  # within 0.8 … 1.2
    second = min((1 / 9) / 0.2 * -2.0, 0.8 * -2.0)  # clipped at 0.8, and the smaller of the two counts
    assert losses.policy.item() == pytest.approx(-(first + second) / 2, rel=1e-5)
    assert losses.clip_fraction.item() == 0.5
    assert losses.entropy.item() == pytest.approx(math.log(9), rel=1e-5)


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
    losses.total(ppo.config, 0.01).backward()
    assert torch.equal(ppo.network.logits.grad[0, [0, 4, 8]], torch.zeros(3))


def test_value_loss_plain_and_clipped() -> None:
    plain = learner(torch.zeros(2, 9), [0.4, 0.2]).losses(two_rows())
    assert plain.value.item() == pytest.approx((0.6**2 + 1.2**2) / 2, rel=1e-5)
    # Clipped to 0.1 around the old values 0 and 0.5: 0.1 and 0.4; the larger error of the two counts.
    clipped = learner(torch.zeros(2, 9), [0.4, 0.2], value_clip=0.1).losses(two_rows())
    assert clipped.value.item() == pytest.approx((0.9**2 + 1.4**2) / 2, rel=1e-5)


def test_a_loss_that_is_no_number_is_an_error() -> None:
    ppo = learner(torch.zeros(2, 9), [math.nan, 0.0])
    with pytest.raises(LearningError, match=r"diverged.*ppo\.learning_rate"):
        ppo.step(two_rows(), 0.0)


@pytest.mark.parametrize(
    ("kind", "values"),
    [("constant", (1, 1, 1)), ("linear", (1, 0.55, 0.1)), ("cosine", (1, 0.55, 0.1))],
)
def test_schedules(kind: str, values: tuple[float, ...]) -> None:
    found = [scheduled(kind, progress, 0.1) for progress in (0, 0.5, 1)]  # type: ignore[arg-type]
    assert found == pytest.approx(values)


def test_minibatches_hold_every_transition_once_in_an_order_that_its_key_fixes() -> None:
    order = shuffled(100, seed=3, epoch=1)
    assert sorted(order) == list(range(100))
    assert (order == shuffled(100, seed=3, epoch=1)).all()
    assert (order != shuffled(100, seed=3, epoch=2)).any()


def test_an_update_makes_good_actions_likelier() -> None:
    model = {"hidden_dim": 32, "num_layers": 1}
    network = build_network(model, GAME.spec, seed=1)
    ppo = PPO(network, make_game("tictactoe", batch=1, seed=0), PPOConfig(minibatch_size=64, epochs=2))
    settings = {"enabled": False, "num_workers": 1, "games_per_worker": 8, "experience_batch_size": 256}
    with ParallelManager({"game": "tictactoe"}, model, settings, model=network) as manager:
        buffer = ExperienceBuffer(manager.spec, 0.99, 0.95)
        buffer.take(manager.collect_experiences().slabs)
        whole = buffer.view().merged()
        before = chosen_log_probs(network, whole)
        np.testing.assert_allclose(before, whole.log_probs, atol=1e-4)
        report = ppo.update(buffer.view(), progress=0.0)
        gain = chosen_log_probs(network, whole) - before
    assert report.gradient_steps == 2 * math.ceil(len(whole) / 64)
    assert np.corrcoef(gain, whole.advantages)[0, 1] > 0.3


@pytest.mark.parametrize("rows_at_once", [7, 2048])
def test_the_judge_says_what_the_network_says_now(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keisei.learners.ppo, "JUDGED_AT_ONCE", rows_at_once)
    model = {"hidden_dim": 32, "num_layers": 1}
    network = build_network(model, GAME.spec, seed=1)
    ppo = PPO(network, make_game("tictactoe", batch=1, seed=0), PPOConfig())
    settings = {"enabled": False, "num_workers": 1, "games_per_worker": 8, "experience_batch_size": 256}
    with ParallelManager({"game": "tictactoe"}, model, settings, model=network) as manager:
        slabs = manager.collect_experiences().slabs
        plain = ExperienceBuffer(manager.spec, 0.99, 0.9)
        plain.take(slabs)
        whole = plain.view().merged()
        network.train()
        log_probs, values = ppo.judge(whole.packed, whole.actions)
        assert not network.training
        np.testing.assert_allclose(log_probs, whole.log_probs, atol=1e-5)
        np.testing.assert_allclose(values, whole.values, atol=1e-5)
        corrected = ExperienceBuffer(manager.spec, 0.99, 0.9, ppo.judge, vtrace=True)
        corrected.take(slabs)
        np.testing.assert_allclose(corrected.view().merged().returns, whole.returns, atol=1e-4)
        ppo.update(plain.view(), progress=0.0)
        later, _ = ppo.judge(whole.packed, whole.actions)
        np.testing.assert_allclose(later, chosen_log_probs(network, whole), atol=1e-5)
        assert np.abs(later - log_probs).max() > 1e-3


def test_corrected_experience_is_learned_by_its_ratio_to_the_policy_that_acted() -> None:
    """The judge changes targets and advantages; what the loss divides by stays as it was stored."""
    network = build_network({"hidden_dim": 16, "num_layers": 1}, GAME.spec, seed=1)
    settings = {"enabled": False, "num_workers": 1, "games_per_worker": 4, "experience_batch_size": 64}
    model = {"hidden_dim": 16, "num_layers": 1}
    with ParallelManager({"game": "tictactoe"}, model, settings, model=network) as manager:
        slabs = manager.collect_experiences().slabs
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(1.5)
        ppo = PPO(network, make_game("tictactoe", batch=1, seed=0), PPOConfig(normalise_advantages=False))
        buffer = ExperienceBuffer(manager.spec, 0.99, 0.9, ppo.judge, vtrace=True)
        buffer.take(slabs)
        whole = buffer.view().merged()
        stored = np.concatenate([item.slab.log_prob.reshape(-1) for item in slabs])
        ratio = np.exp(chosen_log_probs(network, whole) - stored)
        expected = np.minimum(ratio * whole.advantages, ratio.clip(0.8, 1.2) * whole.advantages)
        assert ppo.losses(whole).policy.item() == pytest.approx(-expected.mean(), rel=1e-4)
        assert (np.abs(ratio - 1) > 0.01).any()


@pytest.mark.parametrize("name", ["rho_clip", "trace_clip"])
def test_clips_are_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PPOConfig(**{name: 0.0})


def chosen_log_probs(network: ActorCritic, batch: Minibatch) -> np.ndarray:
    observations, legal = GAME.unpack(batch.packed)
    with torch.inference_mode():
        logits, _ = network(torch.from_numpy(observations))
        masked = logits.masked_fill(~torch.from_numpy(legal), -torch.inf).log_softmax(1)
    return masked.gather(1, torch.from_numpy(batch.actions).long()[:, None])[:, 0].numpy()
