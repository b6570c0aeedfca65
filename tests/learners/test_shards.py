"""Several threads learn the same as one thread, bit for bit."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from keisei.experience.rollout import Minibatch
from keisei.games import make_game
from keisei.learners.ppo import PPO, PPOConfig
from keisei.learners.shards import Shards, added, split
from keisei.machine.torch_threads import torch_threads
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


def learned(game: str, model: dict[str, Any], parts: int, rows: int, threads: int = 1) -> torch.Tensor:
    """The weights after three steps."""
    unpacking = make_game(game, batch=1, seed=0)
    network = build_network({"hidden_dim": 16, "channels": 8, "blocks": 1, **model}, unpacking.spec, seed=1)
    learner = PPO(network, unpacking, PPOConfig(), parts=parts, threads=threads)
    batch = minibatch(game, rows)
    for _ in range(3):
        learner.step(batch, 0.0)
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


NETWORKS = [("tictactoe", "mlp"), ("shogi", "slim"), ("shogi", "gather"), ("connect-four", "residual")]


@pytest.mark.parametrize(("game", "network"), NETWORKS)
def test_parts_teach_what_the_whole_teaches(game: str, network: str) -> None:
    whole = learned(game, {"network": network}, 1, rows=37)
    in_parts = learned(game, {"network": network}, 3, rows=37)
    torch.testing.assert_close(in_parts, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("game", "network"), NETWORKS)
def test_the_number_of_threads_changes_no_bit(game: str, network: str) -> None:
    alone = learned(game, {"network": network}, 4, rows=37, threads=1)
    for threads in (2, 3, 4, 7):
        assert torch.equal(alone, learned(game, {"network": network}, 4, rows=37, threads=threads)), threads
    with torch_threads(2):  # as a caller may have it who has not thought of it
        assert torch.equal(alone, learned(game, {"network": network}, 4, rows=37, threads=2))


@pytest.mark.parametrize("network", ["slim", "residual", "gather", "mlp"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_step_is_the_plain_step_of_adam(network: str, parts: int) -> None:
    """Against torch's simplest way: one backward pass and an Adam that is not fused."""
    game = make_game("shogi", batch=1, seed=0)
    model = {"network": network, "hidden_dim": 16, "channels": 8, "blocks": 1}
    config, batch = PPOConfig(normalise_advantages=False), minibatch("shogi", 24)
    ours, plain = (
        PPO(build_network(model, game.spec, seed=1), game, config, parts=parts, threads=2) for _ in range(2)
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


def test_parts_come_from_the_settings_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def noted(batch: Minibatch, parts: int) -> list[Minibatch]:
        asked.append(parts)
        return split(batch, parts)

    monkeypatch.setattr("keisei.learners.ppo.split", noted)
    game = make_game("tictactoe", batch=1, seed=0)
    network = build_network({"hidden_dim": 4}, game.spec, seed=1)
    for settings, given in ((2, None), (2, 3), ("auto", None), ("auto", 4)):
        learner = PPO(network, game, PPOConfig(parts=settings), parts=given)  # type: ignore[arg-type]
        learner.step(minibatch("tictactoe", 8), 0.0)
    assert asked == [2, 3, 1, 4]


@pytest.mark.parametrize("callers", [1, 2])
def test_as_many_parts_as_threads_are_worked_on_at_once_on_one_core_each(callers: int) -> None:
    batch, meeting = minibatch("tictactoe", 8), threading.Barrier(4, timeout=30)

    def meet(part: Minibatch) -> tuple[int, int]:
        meeting.wait()  # passes only where all four are there at once
        is_caller = threading.current_thread() is threading.main_thread()
        with torch_threads(2) if is_caller else nullcontext():  # which is nobody's business but its own
            meeting.wait()
            if not is_caller:
                found = torch.get_num_threads()
            meeting.wait()
        return len(part), torch.get_num_threads() if is_caller else found

    with torch_threads(callers):
        assert Shards(4).map(meet, split(batch, 4)) == [(2, 1)] * 4
        assert torch.get_num_threads() == callers, "the caller has its own number back"


def test_no_more_threads_than_allowed_and_results_in_order() -> None:
    parts, workers = split(minibatch("tictactoe", 24), 12), set[int]()

    def work(part: Minibatch) -> int:
        workers.add(threading.get_ident())
        return int(part.advantages[0] * 1e6)

    for threads in (1, 2, 3, 20):
        workers.clear()
        assert Shards(threads).map(work, parts) == [int(part.advantages[0] * 1e6) for part in parts]
        assert len(workers) <= min(threads, 12)
        if threads == 1:
            assert workers == {threading.get_ident()}


def test_one_slow_part_holds_up_no_other() -> None:
    """One thread takes all the rest, while the other is busy with the first part, whose result still comes first."""
    parts, done, rest_is_done = split(minibatch("tictactoe", 6), 6), [], threading.Event()

    def work(part: Minibatch) -> Minibatch:
        if part is parts[0]:
            assert rest_is_done.wait(timeout=30)
            return part
        done.append(part)
        if len(done) == 5:
            rest_is_done.set()
        return part

    results = Shards(2).map(work, parts)
    assert all(result is part for result, part in zip(results, parts, strict=True))


@pytest.mark.parametrize("broken", [0, 1, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_any_part_is_raised(broken: int, threads: int) -> None:
    shards = split(minibatch("tictactoe", 4), 4)

    def work(part: Minibatch) -> None:
        if part is shards[broken]:
            raise ValueError("broken part")

    with pytest.raises(ValueError, match="broken part"):
        Shards(threads).map(work, shards)


def test_after_an_error_nothing_is_worked_on_any_more() -> None:
    shards = split(minibatch("tictactoe", 8), 8)
    started, finished = list[Minibatch](), list[Minibatch]()
    meeting, caller = threading.Barrier(2, timeout=30), threading.get_ident()
    raised = threading.Event()

    def work(part: Minibatch) -> None:
        started.append(part)
        if len(started) <= 2:
            meeting.wait()
        if threading.get_ident() == caller:
            raised.set()
            raise ValueError("broken part")
        assert raised.wait(timeout=30)
        time.sleep(0.5)  # the caller has thrown away by then what was left
        finished.append(part)

    with pytest.raises(ValueError, match="broken part"):
        Shards(2).map(work, shards)
    assert len(started) == 2
    assert len(finished) == 1, "the other thread has come to an end"


def test_gradients_are_added_where_there_are_any() -> None:
    one, two = torch.ones(2), torch.full((2,), 2.0)
    total = added([[one, None, None], [two, two, None], [one, None, None]])
    assert total[0] is not None
    assert total[0].tolist() == [4, 4]
    assert total[1] is two
    assert total[2] is None
    assert one.tolist() == [1, 1], "nothing is added in place"


def test_parameters_may_share_a_gradient() -> None:
    shared, other = torch.ones(2), torch.full((2,), 2.0)
    total = added([[shared, shared], [other, other]])
    assert [gradient.tolist() for gradient in total if gradient is not None] == [[3, 3], [3, 3]]


def test_gradients_are_added_in_the_order_of_the_parts() -> None:
    """Of floats, (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1."""
    big, small = torch.tensor([1e8]), torch.tensor([1.0])
    for order, total in (((big, small, -big), 0.0), ((big, -big, small), 1.0)):
        assert added([[gradient] for gradient in order]) == [torch.tensor([total])]
