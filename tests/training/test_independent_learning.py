"""Independent agents learn: the same on every path, and no bit of one depends on another."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from independent_for_tests import buffer_of, fill, learner_of, parts_of, weights

from keisei.errors import CheckpointError
from keisei.experience.agent_memory import AgentMemory
from keisei.experience.agent_rollout import AgentRollout
from keisei.experience.replayed import ReplaySample
from keisei.learners.agent_units import Alone
from keisei.learners.dqn import DQN
from keisei.learners.ppo import PPO
from keisei.learners.stacked_dqn import StackedDQN
from keisei.learners.stacked_ppo import StackedPPO
from keisei.learners.unit_processes import UnitProcesses
from keisei.learners.unit_threads import UnitThreads
from keisei.runs.metric_names import GRADIENT_STEPS

AGENTS = 3
PATHS = ("stacked", "threads", "processes", "sequential")
IN_PROCESS = ("stacked", "threads", "sequential")
DIFFERENT = "learner.agents={1: {model: {hidden_dim: 12}}, 2: {algorithm: ppo}}"


def trained(*overrides: str, trainings: int = 2) -> list[torch.Tensor]:
    """The weights of all agents after some trainings on the same experience."""
    with parts_of(*overrides) as parts:
        learner = learner_of(parts)
        for _ in range(trainings):
            fill(parts)
            report = learner.learn(parts.buffer.view(), 0.3)
            assert not report.failures
            assert list(report.owners) == [0, 1, 2]
        learner.close()
        return [weights(learner, agent) for agent in range(AGENTS)]


# Every path comes to the same


@pytest.fixture(scope="module")
def one_by_one() -> list[torch.Tensor]:
    return trained("learner.training=sequential")


@pytest.mark.parametrize("path", ["threads", "processes"])
def test_threads_and_processes_give_the_bits_of_one_after_another(
    path: str, one_by_one: list[torch.Tensor]
) -> None:
    found = trained(f"learner.training={path}", "run.learner_threads=2")
    assert all(map(torch.equal, found, one_by_one))


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model={network: mlp, hidden_dim: 8, quantiles: 4}",),
        ("learner.dqn.double=false", "learner.dqn.tau=0.3", "learner.dqn.target_interval=1"),
        ("learner.replay.prioritised=true",),
        ("learner.dqn.max_grad_norm=0.01",),
        ("learner.dqn.schedule=linear",),
        ("learner.algorithm=ppo",),
        ("learner.algorithm=ppo", "learner.ppo={minibatch_size: 1024, value_clip: 0.1}"),
        ("learner.algorithm=ppo", "learner.ppo={minibatch_size: 15, advantage_share: 0.4}"),
        (
            "learner.algorithm=ppo",
            "learner.ppo={minibatch_size: 16, epochs: 4, target_kl: 0.00017, max_grad_norm: 5}",
        ),
        (
            "learner.algorithm=ppo",
            "learner.ppo={minibatch_size: 16, schedule: cosine, entropy_weight: 0.5, final_entropy_weight: 0}",
        ),
    ],
)
def test_a_stacked_computation_comes_to_the_same_up_to_rounding(overrides: tuple[str, ...]) -> None:
    expected = trained("learner.training=sequential", *overrides)
    for stacked, alone in zip(trained("learner.training=stacked", *overrides), expected, strict=True):
        torch.testing.assert_close(stacked, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("threads", "size"), [(2, 2), (3, 16)])
def test_threads_change_no_bit_of_a_stack(threads: int, size: int) -> None:
    stacks = f"learner.stack_size={size}"
    assert all(map(torch.equal, trained(stacks), trained(stacks, f"run.learner_threads={threads}")))


@pytest.mark.parametrize("path", ["stacked", "threads", "processes"])
def test_agents_may_differ_in_network_and_algorithm(path: str) -> None:
    found = trained(DIFFERENT, f"learner.training={path}")
    assert all(map(torch.equal, found, trained(DIFFERENT, "learner.training=sequential")))


def test_ppo_agents_are_stacked_too() -> None:
    with parts_of("learner.algorithm=ppo") as parts:
        (unit,) = learner_of(parts).units
        assert isinstance(unit, StackedPPO)


def test_equal_agents_learn_at_once_and_others_beside_them() -> None:
    with parts_of("learner.agents={1: {dqn: {learning_rate: 0.5}}}") as parts:
        units = learner_of(parts).units
        assert [(type(unit), unit.agents) for unit in units] == [(StackedDQN, (0, 2)), (Alone, (1,))]
    with parts_of(DIFFERENT) as parts:
        assert [type(agent) for agent in learner_of(parts).agents] == [DQN, DQN, PPO]


# Nothing is shared


def disturb(parts: Any, what: str) -> None:
    """Changes the memory, the weights or the rewards of agent 1."""
    learner, memory = learner_of(parts), buffer_of(parts).memories[1]
    if what == "weights":
        for weight in learner.agents[1].network.parameters():
            weight.data.mul_(3)
    elif what == "memory":
        assert isinstance(memory, AgentMemory)
        for slab in memory._slabs:
            slab.action[:] = (slab.action + 1) % 5
    elif what == "rewards":
        assert isinstance(memory, AgentMemory)
        memory._replay._ring.links.rewards[:] += 7
    else:
        assert isinstance(memory, AgentMemory)
        memory._replay._ring.links.rewards[:] = np.nan


@pytest.mark.parametrize(
    ("path", "what"),
    [
        *((path, what) for path in IN_PROCESS for what in ("weights", "memory", "rewards", "nan")),
        ("processes", "memory"),
    ],
)
def test_a_change_of_one_agent_changes_no_bit_of_another(path: str, what: str) -> None:
    found = []
    for disturbed in (False, True):
        with parts_of(f"learner.training={path}") as parts:
            fill(parts)
            if disturbed:
                disturb(parts, what)
            learner = learner_of(parts)
            report = learner.learn(parts.buffer.view(), 0.3)
            learner.close()
            found.append([weights(learner, agent) for agent in range(AGENTS)])
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][2], found[1][2])
    assert not torch.equal(found[0][1], found[1][1])
    if what == "nan":
        assert "the loss is nan" in report.failures[1]
        assert list(report.owners) == [0, 2]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        *((path, what) for path in IN_PROCESS for what in ("weights", "rewards", "nan", "nothing")),
        ("processes", "nothing"),
    ],
)
def test_ppo_agents_share_nothing_either(path: str, what: str) -> None:
    found = []
    for disturbed in (False, True):
        with parts_of(f"learner.training={path}", "learner.algorithm=ppo") as parts:
            fill(parts)
            learner, rollout = learner_of(parts), buffer_of(parts).memories[1]
            assert isinstance(rollout, AgentRollout)
            if disturbed and what == "weights":
                disturb(parts, what)
            elif disturbed and what == "nothing":
                rollout._parts.clear()
            elif disturbed:
                for part in rollout._parts:
                    part.returns[:] = np.nan if what == "nan" else 7
            report = learner.learn(parts.buffer.view(), 0.3)
            learner.close()
            found.append([weights(learner, agent) for agent in range(AGENTS)])
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][2], found[1][2])
    assert not torch.equal(found[0][1], found[1][1])
    assert list(report.failures) == ([1] if what == "nan" else [])


# An agent that fails


class BrokenError(Exception):
    pass


def break_memory(parts: Any, agent: int, times: int) -> None:
    """Lets an agent fail when it draws, a number of times."""
    memory = buffer_of(parts).memories[agent]
    assert isinstance(memory, AgentMemory)
    whole, left = memory.sample, [times]

    def sample(*args: Any) -> ReplaySample:
        if left[0]:
            left[0] -= 1
            raise BrokenError("no memory today")
        return whole(*args)

    memory.sample = sample  # type: ignore[method-assign]


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_that_fails_is_told_left_out_and_tries_again(
    path: str, one_by_one: list[torch.Tensor]
) -> None:
    expected = trained() if path == "stacked" else one_by_one
    with parts_of(f"learner.training={path}") as parts:
        learner = learner_of(parts)
        before = weights(learner, 1)
        fill(parts)
        break_memory(parts, 1, times=1)
        report = learner.learn(parts.buffer.view(), 0.3)
        assert list(report.failures) == [1]
        assert report.failures[1].startswith("BrokenError: no memory today")
        assert list(report.owners) == [0, 2]
        assert torch.equal(weights(learner, 1), before)
        fill(parts)
        report = learner.learn(parts.buffer.view(), 0.3)
        assert not report.failures
        assert not torch.equal(weights(learner, 1), before)
        learner.close()
        assert torch.equal(weights(learner, 0), expected[0])
        assert torch.equal(weights(learner, 2), expected[2])


def break_stack(stack: Any, after: int) -> None:
    """Lets the joint computation of a stack fail after so many gradient steps."""
    whole, left = stack._joint.gradients, [after]

    def fail(*args: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise BrokenError("all at once")
        return whole(*args)

    stack._joint.gradients = fail


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize(("algorithm", "ahead"), [("dqn", False), ("dqn", True), ("ppo", False)])
def test_if_a_joint_computation_fails_agents_go_on_alone_after_the_steps_that_they_have_made(
    algorithm: str, ahead: bool, after: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No step is lost, and none is made twice, also where samples were drawn ahead. The first failure is a warning."""
    found, counts = [], []
    for training in ("stacked", "sequential"):
        with parts_of(f"learner.training={training}", f"learner.algorithm={algorithm}") as parts:
            learner = learner_of(parts)
            fill(parts)
            if training == "stacked":
                (stack,) = learner.units
                break_stack(stack, after)
            views = parts.buffer.view()
            if ahead:
                views = [view.drawn(0.3) for view in views]
            report = learner.learn(views, 0.3)
            assert not report.failures
            found.append([weights(learner, agent) for agent in range(AGENTS)])
            counts.append([numbers[GRADIENT_STEPS] for numbers in report.owners.values()])
    assert counts[0] == counts[1]
    assert min(counts[0]) > 3
    for stacked, alone in zip(*found, strict=True):
        torch.testing.assert_close(stacked, alone, rtol=1e-4, atol=1e-5)
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert "agents 0, 1, 2 cannot learn at once, so each learns alone" in warning.getMessage()
    assert "BrokenError: all at once" in warning.getMessage()


def test_a_value_that_nobody_learns_does_not_keep_agents_from_learning_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = []
    for training in ("stacked", "sequential"):
        with parts_of(f"learner.training={training}", "model.outputs=q") as parts:
            learner = learner_of(parts)
            fill(parts)
            learner.learn(parts.buffer.view(), 0.3)
            found.append([weight for agent in learner.agents for weight in agent.network.parameters()])
    for stacked, alone in zip(*found, strict=True):
        torch.testing.assert_close(stacked, alone, rtol=1e-4, atol=1e-5)
    assert not caplog.records


def test_a_training_that_hangs_is_told_and_its_agent_is_left_out_until_it_returns() -> None:
    with parts_of("learner.training=threads", "run.learner_threads=2", "learner.training_timeout=3") as parts:
        learner = learner_of(parts)
        fill(parts)
        go_on, memory = threading.Event(), buffer_of(parts).memories[1]
        assert isinstance(memory, AgentMemory)
        whole = memory.sample

        def sample(*args: Any) -> ReplaySample:
            go_on.wait()
            return whole(*args)

        memory.sample = sample  # type: ignore[method-assign]
        first = learner.learn(parts.buffer.view(), 0.3)
        assert first.failures == {1: "its training has not ended after 3 s; it is left out until it does"}
        assert list(first.owners) == [0, 2]
        fill(parts, 1)
        assert list(learner.learn(parts.buffer.view(), 0.3).failures) == [1]
        go_on.set()
        assert isinstance(learner._runner, UnitThreads)
        while learner._runner._hung:
            threading.Event().wait(0.001)
        fill(parts, 1)
        assert not learner.learn(parts.buffer.view(), 0.3).failures


def test_a_process_that_hangs_is_ended_and_its_agents_try_again() -> None:
    with parts_of("learner.training=processes", "run.learner_threads=2") as parts:
        learner = learner_of(parts)
        runner = learner._runner
        assert isinstance(runner, UnitProcesses)
        fill(parts)
        before = weights(learner, 0)
        runner.timeout = 1e-6
        report = learner.learn(parts.buffer.view(), 0.3)
        assert "its training has not ended after 1e-06 s, so its process was ended" in report.failures[0]
        assert not report.owners
        assert torch.equal(weights(learner, 0), before)
        runner.timeout = 300
        fill(parts)
        assert not learner.learn(parts.buffer.view(), 0.3).failures
        learner.close()
        assert runner._pool is None


def test_no_thread_is_left_after_a_training() -> None:
    before = {*threading.enumerate()}
    trained("run.learner_threads=3", "learner.training=threads", trainings=1)
    assert {*threading.enumerate()} <= before


# Checkpoints


@pytest.mark.parametrize("overrides", [(), (DIFFERENT,), ("learner.training=sequential",)])
def test_a_restored_learner_goes_on_with_the_same_bits(overrides: tuple[str, ...]) -> None:
    with parts_of(*overrides) as parts, parts_of(*overrides) as others:
        learner, other = learner_of(parts), learner_of(others)
        fill(parts)
        fill(others)
        learner.learn(parts.buffer.view(), 0.1)
        others.buffer.view()
        other.restore(learner.state())
        fill(parts, 1)
        fill(others, 1)
        for own, own_parts in ((learner, parts), (other, others)):
            own.learn(own_parts.buffer.view(), 0.5)
        for agent in range(AGENTS):
            assert torch.equal(weights(learner, agent), weights(other, agent))


def test_a_state_of_other_agents_is_refused() -> None:
    with parts_of() as parts:
        learner = learner_of(parts)
        state = learner.state()
        assert isinstance(state.document, dict)
        agents = state.document["agents"]
        assert isinstance(agents, list)
        state.document["agents"] = agents[:2]
        with pytest.raises(CheckpointError, match="the checkpoint is of 2 agents, and this run has 3"):
            learner.restore(state)
