"""Several threads learn what one learns, and always the same."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from keisei.experience.rollout import Minibatch
from keisei.games import make_game
from keisei.learners.ppo import PPO, PPOConfig
from keisei.learners.shards import Shards, added, split
from keisei.policies.networks import build_network


def minibatch(game: str, rows: int) -> Minibatch:
    batch = make_game(game, batch=rows, seed=3)
    chance = np.random.default_rng(0)
    numbers = {name: chance.standard_normal(rows).astype(np.float32) for name in ("advantages", "returns")}
    return Minibatch(
        packed=batch.pack(),
        actions=batch.random_actions(),
        log_probs=np.full(rows, -2, np.float32),
        values=np.zeros(rows, np.float32),
        **numbers,
    )


def learned(game: str, model: dict[str, Any], threads: int, rows: int) -> torch.Tensor:
    """The weights after three steps."""
    unpacking = make_game(game, batch=1, seed=0)
    network = build_network({"hidden_dim": 16, "channels": 8, "blocks": 1, **model}, unpacking.spec, seed=1)
    learner = PPO(network, unpacking, PPOConfig(), threads=threads)
    batch = minibatch(game, rows)
    for _ in range(3):
        learner.step(batch, 0.0)
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


@pytest.mark.parametrize(
    ("game", "network"),
    [("tictactoe", "mlp"), ("shogi", "slim"), ("shogi", "gather"), ("connect-four", "residual")],
)
def test_threads_learn_what_one_thread_learns(game: str, network: str) -> None:
    alone = learned(game, {"network": network}, 1, rows=37)
    together = learned(game, {"network": network}, 3, rows=37)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-6)
    assert torch.equal(together, learned(game, {"network": network}, 3, rows=37)), "the same bits every time"


@pytest.mark.parametrize("network", ["slim", "residual", "gather", "mlp"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_is_the_plain_step_of_adam(network: str, threads: int) -> None:
    """Against torch's simplest way: one backward pass and an Adam that is not fused."""
    game = make_game("shogi", batch=1, seed=0)
    model = {"network": network, "hidden_dim": 16, "channels": 8, "blocks": 1}
    config, batch = PPOConfig(normalise_advantages=False), minibatch("shogi", 24)
    ours, plain = (
        PPO(build_network(model, game.spec, seed=1), game, config, threads=threads) for _ in range(2)
    )
    adam = torch.optim.Adam(plain.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=False)
    for _ in range(3):
        ours.step(batch, 0.0)
        adam.zero_grad()
        plain.losses(batch).total(config, config.entropy_weight).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(plain.network.parameters(), config.max_grad_norm)
        adam.step()
    for (name, mine), theirs in zip(ours.network.named_parameters(), plain.network.parameters(), strict=True):
        torch.testing.assert_close(
            mine, theirs, rtol=1e-3, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_parts_cover_all_rows_in_order() -> None:
    batch = minibatch("tictactoe", 10)
    for parts, sizes in ((1, [10]), (3, [3, 3, 4]), (10, [1] * 10), (25, [1] * 10)):
        shards = split(batch, parts)
        assert [len(shard) for shard in shards] == sizes
        np.testing.assert_array_equal(np.concatenate([shard.actions for shard in shards]), batch.actions)


def test_every_part_has_a_thread_of_its_own() -> None:
    batch, meeting = minibatch("tictactoe", 8), threading.Barrier(4, timeout=30)

    def meet(part: Minibatch) -> int:
        meeting.wait()  # passes only where all four are there at once
        assert torch.get_num_threads() == 1 or threading.current_thread() is threading.main_thread()
        return len(part)

    assert Shards(4).map(meet, split(batch, 4)) == [2, 2, 2, 2]


@pytest.mark.parametrize("broken", [0, 1])
def test_an_error_in_any_thread_is_raised(broken: int) -> None:
    batch = minibatch("tictactoe", 4)
    shards = split(batch, 2)

    def work(part: Minibatch) -> None:
        if part is shards[broken]:
            raise ValueError("broken part")

    with pytest.raises(ValueError, match="broken part"):
        Shards(2).map(work, shards)


def test_gradients_are_added_where_there_are_any() -> None:
    one, two = torch.ones(2), torch.full((2,), 2.0)
    total = added([[one, None, None], [two, two, None]])
    assert total[0] is not None
    assert total[0].tolist() == [3, 3]
    assert total[1] is two
    assert total[2] is None
