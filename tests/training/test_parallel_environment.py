"""``ParallelEnvironment``: the dictionary, the agents, and experiments in all modes."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
import torch

from keisei import ParallelEnvironment
from keisei.errors import ConfigError
from keisei.experience.agent_memory import AgentMemory

WORLD = {"height": 5, "width": 5, "vision": 1, "agents": 3}
EXPERIMENT = {"epochs": 8, "max_turns": 6, "worlds": 2}
MODEL = {"hidden_dim": 8, "num_layers": 1, "network": "mlp", "batch_size": 8, "memory_size": 100}


def environment(model: Any = None, **parallel: Any) -> ParallelEnvironment:
    config = {
        "parallel": {"train_interval": 2, **parallel},
        "experiment": EXPERIMENT,
        "model": {**MODEL, **(model or {})},
        "world": WORLD,
    }
    return ParallelEnvironment("treasurehunt", config)


def weights(env: ParallelEnvironment) -> list[torch.Tensor]:
    return [
        torch.cat([weight.detach().reshape(-1) for weight in agent.model.network.parameters()])
        for agent in env.agents
    ]


def test_agents_have_a_memory_and_a_network_each() -> None:
    env = environment()
    assert len(env.agents) == 3
    memories = [agent.model.memory for agent in env.agents]
    assert all(isinstance(memory, AgentMemory) for memory in memories)
    assert len({id(memory) for memory in memories}) == 3
    assert not torch.equal(*weights(env)[:2])


def test_an_experiment_plays_its_epochs_and_trains() -> None:
    env = environment()
    before, threads = weights(env), {*threading.enumerate()}
    result = env.run_experiment_parallel()
    assert (result.epochs, result.turns) == (8, 8 * 6 * 2)
    assert result.gradient_steps == 8 * 3
    assert len(result.returns) == 8
    assert set(result.returns[0]) == {0, 1, 2}
    assert not math.isnan(result.mean_return())
    assert not any(map(torch.equal, before, weights(env)))
    assert [len(agent.model.memory) for agent in env.agents] == [96, 96, 96]
    assert {*threading.enumerate()} <= threads


MODES: dict[str, dict[str, Any]] = {
    "off": {"enabled": False},
    "actions": {"parallel_actions": True, "parallel_training": False},
    "threads": {"use_threads": True},
    "processes": {"use_threads": False},
}


@pytest.mark.parametrize("mode", MODES)
def test_sequential_and_parallel_give_the_same_results(mode: str) -> None:
    reference, found = environment(enabled=False, parallel_actions=False), environment(**MODES[mode])
    expected, result = reference.run_experiment_parallel(), found.run_experiment_parallel()
    assert result.returns == expected.returns
    for own, wanted in zip(weights(found), weights(reference), strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-5, atol=1e-6)


def test_a_stacked_experiment_does_the_same_work() -> None:
    reference, found = environment(enabled=False), environment()
    assert (
        found.run_experiment_parallel().gradient_steps == reference.run_experiment_parallel().gradient_steps
    )
    for own, wanted in zip(weights(found), weights(reference), strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_agents_learn_while_epochs_go_on(algorithm: str) -> None:
    threads = {*threading.enumerate()}
    env = environment({"algorithm": algorithm}, async_learning=True, train_interval=1)
    before = weights(env)
    result = env.run_experiment_parallel()
    assert result.epochs == 8
    assert algorithm == "ppo" or result.gradient_steps == 8 * 3, "no epoch is missed"
    assert not any(map(torch.equal, before, weights(env)))
    assert {*threading.enumerate()} <= threads


def test_the_number_of_workers_changes_no_result() -> None:
    one, two = environment(num_workers=1, use_threads=True), environment(num_workers=2, use_threads=True)
    assert one.run_experiment_parallel().returns == two.run_experiment_parallel().returns
    assert all(map(torch.equal, weights(one), weights(two)))


@pytest.mark.parametrize(("worlds", "tables"), [(1, 1), (5, 1), (6, 3), (16, 4)])
def test_worlds_are_divided_into_equal_tables(worlds: int, tables: int) -> None:
    config = {"experiment": {"worlds": worlds, "max_turns": 3}, "model": MODEL, "world": WORLD}
    parallel = ParallelEnvironment("treasurehunt", config).settings.parallel
    assert (parallel.tables, parallel.games) == (tables, worlds // tables)


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_an_agent_can_be_trained_by_hand(algorithm: str) -> None:
    env = environment({"algorithm": algorithm}, train_interval=100)
    model = env.agents[1].model
    assert math.isnan(model.train_step())
    env.run_experiment_parallel()
    env._buffer.memories[0].take([])
    before = weights(env)
    if algorithm == "dqn":
        assert model.train_step() > 0
        after = weights(env)
        assert torch.equal(before[0], after[0])
        assert not torch.equal(before[1], after[1])
        assert torch.equal(before[2], after[2])


def test_nothing_is_left_after_an_error() -> None:
    threads, env = {*threading.enumerate()}, environment(async_learning=True)

    def fail(*args: Any) -> None:
        raise RuntimeError("no more")

    env._buffer.take = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="no more"):
        env.run_experiment_parallel()
    assert {*threading.enumerate()} <= threads


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"parallel": {"num_workers": 0}}, "parallel.num_workers = 0"),
        ({"parallel": {"mode": "fast"}}, "parallel.mode: unknown setting"),
        ({"parallel": {"train_interval": 0}}, "parallel.train_interval = 0"),
        ({"model": None}, "agents need a network"),
        ({"model": {"network": "mlpp"}}, "network = 'mlpp'"),
        ({"model": {"input_dim": 3}}, "input_dim = 3: an observation of treasurehunt has"),
        ({"model": {"algorithm": "sac"}}, "model.algorithm = 'sac'"),
        ({"world": {"max_turns": 3}}, "the turns of an epoch are experiment.max_turns"),
        ({"world": {"agents": 400, "height": 5, "width": 5}}, "agents"),
        ({"experiment": {"epoch": 3}}, "did you mean epochs?"),
        ({"worlds": {}}, "worlds: unknown setting; did you mean world?"),
    ],
)
def test_what_does_not_fit_is_told_at_once(config: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, Exception), match=None) as caught:
        ParallelEnvironment("treasurehunt", config)
    assert isinstance(caught.value, ConfigError) or "GameError" in type(caught.value).__mro__.__repr__()
    assert message in str(caught.value)


def test_an_unknown_world_is_told() -> None:
    with pytest.raises(LookupError, match="treasurehunt"):
        ParallelEnvironment("treasurehnt")


def test_no_transition_is_torn_while_processes_play_and_agents_learn() -> None:
    """Workers fill the memories, agents learn from them, and threads draw from them, all at once. In the prisoner's
    dilemma the next position says what both did, so it must fit the action and the reward."""
    env = ParallelEnvironment(
        "prisoners-dilemma",
        {
            "parallel": {"async_learning": True, "num_workers": 2, "train_interval": 1},
            "experiment": {"epochs": 300, "max_turns": 25, "worlds": 4},
            "model": {
                "hidden_dim": 8,
                "num_layers": 1,
                "batch_size": 16,
                "memory_size": 400,
                "discount": 0.5,
            },
        },
    )
    payoffs = np.array([[3, 0], [5, 1]], np.float32)
    ended, wrong, drawn = threading.Event(), [], [0]

    def read(seat: int) -> None:
        memory = env.agents[seat].model.memory
        assert isinstance(memory, AgentMemory)
        for key in range(1 << 30):
            if ended.is_set():
                return
            if not len(memory):
                continue
            sample = memory.sample(64, seat, key)
            own, other = sample.next_packed[:, 0] // 2, sample.next_packed[:, 0] % 2
            whole = (own == sample.actions) & (sample.rewards == payoffs[own % 2, other])
            drawn[0] += len(sample)
            if not (whole & (sample.packed[:, 1] == seat) & (sample.next_packed[:, 1] == seat)).all():
                wrong.append(sample)

    threads = [threading.Thread(target=read, args=(seat,)) for seat in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        result = env.run_experiment_parallel()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert drawn[0] > 1000
    assert result.gradient_steps > 0
    assert not any(result.failures)
