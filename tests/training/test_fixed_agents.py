"""Agents that are held fixed: they play on with the weights that they have, and the others learn an answer to them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from independent_for_tests import config_of, fill, learner_of, parts_of, train, weights

from keisei.errors import ConfigError
from keisei.runs.archive import CheckpointArchive

AGENTS = 3


def changed(*overrides: str) -> list[tuple[bool, bool]]:
    """Whether two trainings have changed the weights of each agent, and anything of it at all."""
    with parts_of(*overrides) as parts:
        learner = learner_of(parts)
        before = [
            (weight_of(learner.agents[agent].network), weights(learner, agent)) for agent in range(AGENTS)
        ]
        for _ in range(2):
            fill(parts)
            learner.learn(parts.buffer.view(), 0.5)
        after = [
            (weight_of(learner.agents[agent].network), weights(learner, agent)) for agent in range(AGENTS)
        ]
        learner.close()
    return [
        (not torch.equal(old[0], new[0]), not torch.equal(old[1], new[1]))
        for old, new in zip(before, after, strict=True)
    ]


def weight_of(network: torch.nn.Module) -> torch.Tensor:
    """The first weights of a network or of a stack of them."""
    return next(network.parameters()).detach().clone()


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
@pytest.mark.parametrize("training", ["stacked", "threads", "processes", "sequential"])
@pytest.mark.parametrize("fixed", [(1,), (0, 2)])
def test_fixed_agents_keep_every_bit_and_the_others_learn(
    algorithm: str, training: str, fixed: tuple[int, ...]
) -> None:
    found = changed(
        f"learner.algorithm={algorithm}",
        f"learner.training={training}",
        f"learner.fixed_agents={list(fixed)}",
    )
    assert found == [(agent not in fixed,) * 2 for agent in range(AGENTS)]


@pytest.mark.parametrize("fixed", [(1,), (0, 2)])
def test_workers_play_with_what_the_others_learned(fixed: tuple[int, ...]) -> None:
    with parts_of(f"learner.fixed_agents={list(fixed)}") as parts:
        learner = learner_of(parts)
        before = [weight_of(learner.agents[agent].network) for agent in range(AGENTS)]
        fill(parts)
        learner.learn(parts.buffer.view(), 0.5)
        for stack, network in zip(learner.network.stacks, learner.network.networks, strict=True):
            played = weight_of(network).reshape(len(stack), *before[0].shape)
            for agent, weight in zip(stack, played, strict=True):
                assert torch.equal(weight, before[agent]) == (agent in fixed)
                assert torch.equal(weight, weight_of(learner.agents[agent].network))


def test_a_fixed_agent_explores_as_at_the_end_of_a_run() -> None:
    with parts_of("learner.fixed_agents=[1]", "learner.dqn={epsilon: 1.0, final_epsilon: 0.125}") as parts:
        learner = learner_of(parts)
        assert [own.epsilon for own in learner.behaviour(0.0).settings] == [1.0, 0.125, 1.0]


def test_a_run_can_fix_agents_and_let_them_learn_again(tmp_path: Path) -> None:
    first = train(tmp_path)
    steps = first.counters.transitions

    def model(agent: int) -> dict[str, torch.Tensor]:
        found = CheckpointArchive(first.run.checkpoints).latest()
        assert found is not None
        tensors = found.checkpoint.tensors["model"]
        return {name: value for name, value in tensors.items() if name.startswith(f"{agent}.")}

    def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
        return all(torch.equal(one[name], other[name]) for name in one)

    before = [model(agent) for agent in range(AGENTS)]
    train(tmp_path, "learner.fixed_agents=[0]", f"run.steps={steps + 500}")
    between = [model(agent) for agent in range(AGENTS)]
    assert [same(*pair) for pair in zip(before, between, strict=True)] == [True, False, False]
    train(tmp_path, f"run.steps={steps + 1000}")
    after = [model(agent) for agent in range(AGENTS)]
    assert [same(*pair) for pair in zip(between, after, strict=True)] == [False, False, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[3]", "learner.fixed_agents names agent 3, and relay has seats for agents 0 … 2"),
        ("[2, 1, 0]", "learner.fixed_agents names all 3 agents, so none would learn; leave at least one out"),
        ("[-1]", "learner.fixed_agents"),
    ],
)
def test_impossible_agents_are_refused_at_the_start(given: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(f"learner.fixed_agents={given}")
    assert message in str(caught.value)
