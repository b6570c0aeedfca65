"""Runs of the independent regime: the same weights everywhere, numbers for each agent, learning in the background."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from independent_for_tests import SETTINGS, config_of, learner_of, parts_of, train
from training_for_tests import Recorder, curve

from keisei.config import apply_overrides, parse_settings
from keisei.errors import ConfigError, LearningError, PolicyError
from keisei.games import make_game
from keisei.learners.contract import Report
from keisei.policies.agents_policy import AgentsPolicy
from keisei.policies.players.saved_player import load_player
from keisei.policies.players.trained_player import load
from keisei.runs.archive import CheckpointArchive
from keisei.runs.state import State
from keisei.training.callbacks import Callback
from keisei.training.events import Counters, Update
from keisei.training.interruption import Interruption
from keisei.training.regimes.background import joined
from keisei.training.regimes.independent import independent
from keisei.training.regimes.loop import Pace
from keisei.training.settings import TrainConfig

PPO = ("learner.algorithm=ppo",)
MIXED = ("learner.agents={1: {model: {hidden_dim: 12}}, 2: {algorithm: ppo}}", "learner.train_interval=2")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(tmp_path_factory.mktemp("expected")).digest


@pytest.fixture(scope="module")
def expected_mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(tmp_path_factory.mktemp("mixed"), *MIXED).digest


class InterruptAfter(Callback):
    def __init__(self, interruption: Interruption, update: int) -> None:
        self._interruption, self._update = interruption, update

    def on_update(self, update: Update) -> None:
        if update.counters.update == self._update:
            self._interruption.request()


def interrupted(root: Path, *overrides: str, after: int) -> None:
    interruption = Interruption()
    stop = InterruptAfter(interruption, after)
    result = train(root, *overrides, callbacks=[stop], interruption=interruption)
    assert result.outcome == "interrupted"


# The same weights


@pytest.mark.parametrize(("backend", "workers"), [("inline", 2), ("thread", 2), ("process", 3)])
def test_any_placement_comes_to_the_same_weights(
    tmp_path: Path, expected: str, backend: str, workers: int
) -> None:
    placement = (
        f"parallel.backend={backend}",
        f"parallel.num_workers={workers}",
        f"run.learner_threads={workers}",
    )
    assert train(tmp_path, *placement).digest == expected


@pytest.mark.parametrize("after", [1, 3])
def test_a_resumed_run_comes_to_the_same_weights(tmp_path: Path, expected: str, after: int) -> None:
    interrupted(tmp_path, after=after)
    assert train(tmp_path, "parallel.num_workers=2").digest == expected


def test_mixed_agents_resume_between_two_trainings(tmp_path: Path, expected_mixed: str) -> None:
    interrupted(tmp_path, *MIXED, after=1)
    assert train(tmp_path, *MIXED, "parallel.num_workers=2").digest == expected_mixed


def test_seeds_and_agents_differ(tmp_path: Path, expected: str) -> None:
    assert train(tmp_path, "run.seed=1").digest != expected
    with parts_of() as parts:
        first, second = (next(agent.network.parameters()) for agent in learner_of(parts).agents[:2])
        assert not torch.equal(first, second)


def test_acting_at_once_is_acting_one_by_one(tmp_path: Path) -> None:
    """The games are the same as long as rounding decides nothing, as in one collection without learning."""
    digests = []
    for acting in ("stacked", "one-by-one"):
        with parts_of(f"learner.acting={acting}", "learner.dqn={epsilon: 0.5}") as parts:
            found = parts.manager.collect_experiences(parts.rollout)
            digests.append((found.column("action").tolist(), found.column("reward").tolist()))
    assert digests[0] == digests[1]


# Who owns what


def test_each_agent_owns_the_decisions_of_its_seat() -> None:
    with parts_of() as parts:
        for item in parts.manager.collect_experiences(parts.rollout):
            slab, steps = item.slab, item.slab.shape.steps
            acting = slab.acting[:steps]
            np.testing.assert_array_equal(slab.owner[acting], slab.seat[:steps][acting])
            assert (slab.owner[~acting] == -1).all()


def test_greedy_agents_play_what_their_own_network_says() -> None:
    with parts_of("learner.dqn={epsilon: 0, final_epsilon: 0}") as parts:
        agents = learner_of(parts).agents
        game = config_of().env.make(batch=1, seed=0)
        for item in parts.manager.collect_experiences(parts.rollout):
            slab = item.slab
            for agent, own in enumerate(agents):
                mine = slab.acting[:-1] & (slab.owner == agent)
                seen, legal = game.unpack(slab.packed[:-1][mine])
                with torch.inference_mode():
                    values = own.network(torch.from_numpy(seen))[0].numpy()
                best = np.where(legal, values, -np.inf)
                taken = np.take_along_axis(best, slab.action[mine][:, None], axis=1)
                np.testing.assert_allclose(taken.squeeze(1), best.max(axis=1), atol=1e-5)


# Numbers


@pytest.mark.parametrize("overrides", [(), PPO])
def test_every_agent_has_its_numbers(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    recorder = Recorder()
    result = train(tmp_path, *overrides, callbacks=[recorder])
    last = recorder.updates[-1]
    assert list(last.report.owners) == [0, 1, 2]
    for agent in range(3):
        assert len(curve(result.run, f"agent-{agent}/loss")) >= 3
        returns = dict(curve(result.run, f"agent-{agent}/return"))
        assert returns[last.counters.update] == pytest.approx(last.report.owners[agent]["rollout/return"])


def test_returns_are_the_rewards_of_finished_games() -> None:
    recorder: list[Update] = []
    with parts_of() as parts:
        recorder += independent(parts, Pace(updates=3), Counters())
    for update in recorder:
        returns = [numbers["rollout/return"] for numbers in update.report.owners.values()]
        if update.games.games:
            assert all(0 <= value <= 5 for value in returns), "a game of relay ends when an agent has 5"
            assert returns[0] == pytest.approx(update.games.mean_reward, abs=3)
        else:
            assert all(map(math.isnan, returns))
    assert sum(update.games.games for update in recorder) > 0


# Failures


def test_a_failure_of_one_agent_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    class Break(Callback):
        def on_update(self, update: Update) -> None:
            if update.counters.update == 1:
                memory = self._attached().parts.buffer.memories[2]  # type: ignore[attr-defined]
                memory._replay._ring.links.rewards[:] = np.inf

    recorder = Recorder()
    result = train(tmp_path, callbacks=[Break(), recorder])
    assert result.outcome == "finished"
    told = [message for level, message in recorder.notes if level == "warning"]
    assert any(message.startswith("agent 2 could not learn: LearningError: the loss is") for message in told)
    assert not any(message.startswith(("agent 0", "agent 1")) for message in told)


# Learning in the background


ASYNC = "parallel.mode=async"


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_agents_learn_while_others_play_on(tmp_path: Path, backend: str) -> None:
    recorder = Recorder()
    before = {*threading.enumerate()}
    result = train(tmp_path, ASYNC, f"parallel.backend={backend}", callbacks=[recorder])
    assert result.outcome == "finished"
    assert {*threading.enumerate()} <= before
    assert sum(update.report.owners[0].get("train/gradient_steps", 0.0) for update in recorder.updates) > 0


@pytest.mark.parametrize("overrides", [(), PPO])
def test_every_training_is_done_before_the_run_ends(overrides: tuple[str, ...]) -> None:
    with parts_of(ASYNC, *overrides) as parts:
        learner, trainings = learner_of(parts), []
        learn = learner.learn

        def slow(view: Any, progress: float) -> Report:
            threading.Event().wait(0.02)
            trainings.append(progress)
            return learn(view, progress)

        learner.learn = slow  # type: ignore[method-assign]
        updates = list(independent(parts, Pace(updates=6), Counters()))
    assert len(trainings) == len(updates) == 6
    reported = sum(
        numbers.get("train/gradient_steps", 0.0) for u in updates for numbers in u.report.owners.values()
    )
    assert reported > 0
    if not overrides:
        assert reported == sum(agent.steps for agent in learner.agents)  # type: ignore[union-attr]


def test_workers_take_new_weights_in_the_middle_of_a_slab() -> None:
    """Weights are published while a slab is played: from the next step on its decisions are made with them."""
    with parts_of(ASYNC, "parallel.tables=1") as parts:
        learner, published = learner_of(parts), []

        def publish_in_between() -> int:
            if not published:
                for weight in learner.network.parameters():
                    weight.data.add_(1)
                published.append(parts.manager.publish(learner.behaviour(0.0)))
            return 0

        worker = parts.manager.workers[0].handle._worker  # type: ignore[union-attr]
        tick = worker._tick

        def ticking() -> None:
            tick()
            if worker._control[0] % 3 == 0:
                publish_in_between()

        worker._tick = ticking
        slab = next(iter(parts.manager.collect_experiences(1))).slab
        versions = slab.version[slab.acting[:-1]]
    assert set(np.unique(versions)) == {1, published[0]}


def test_an_error_in_the_background_is_raised_where_the_run_is() -> None:
    before = {*threading.enumerate()}
    with parts_of(ASYNC) as parts:
        learner = learner_of(parts)

        def fail(view: Any, progress: float) -> Report:
            raise RuntimeError("the learner is lost")

        learner.learn = fail  # type: ignore[method-assign]
        with pytest.raises(LearningError, match="the learner is lost"):
            list(independent(parts, Pace(updates=50), Counters()))
    assert {*threading.enumerate()} <= before


def test_a_run_that_is_left_early_leaves_no_thread() -> None:
    before = {*threading.enumerate()}
    with parts_of(ASYNC) as parts:
        updates = independent(parts, Pace(updates=50), Counters())
        next(updates)
        updates.close()  # type: ignore[attr-defined]
    assert {*threading.enumerate()} <= before


def test_reports_of_several_trainings_are_joined() -> None:
    found = joined(
        [
            Report({0: {"train/loss": 1.0, "train/gradient_steps": 2.0}}, {1: "why"}),
            Report({0: {"train/loss": 3.0, "train/gradient_steps": 4.0}}),
        ]
    )
    assert found.owners == {0: {"train/loss": 3.0, "train/gradient_steps": 6.0}}
    assert found.failures == {1: "why"}


# Policies


def test_a_checkpoint_gives_every_seat_its_agent(tmp_path: Path) -> None:
    result = train(tmp_path, *MIXED)
    game = config_of().env.make(batch=4, seed=1)
    player = load_player("run", game.spec, tmp_path)
    assert isinstance(player.policy, AgentsPolicy)
    again = player.policy.network.state_dict()
    trained = result.network.state_dict()
    assert {name: tuple(t.shape) for name, t in again.items()} == {
        name: tuple(t.shape) for name, t in trained.items()
    }
    assert all(torch.equal(again[name], trained[name]) for name in again)


def test_an_agent_of_a_run_can_be_asked_by_itself(tmp_path: Path) -> None:
    result = train(tmp_path, *MIXED)
    game = config_of().env.make(batch=4, seed=1)
    observations, legal = game.observe(), game.legal()
    with pytest.raises(PolicyError, match=r"keisei.load\(run, seat=0\)"):
        load("run", root=tmp_path).values(observations, legal)
    with pytest.raises(PolicyError, match="agents have the seats 0 … 2"):
        load("run", root=tmp_path, seat=3)
    agents = learner_of_run(tmp_path)
    for seat in range(3):
        player = load("run", root=tmp_path, seat=seat)
        with torch.inference_mode():
            listed = torch.from_numpy(np.where(legal, np.arange(5, dtype=np.int32), -1))
            expected = agents[seat].network(torch.from_numpy(observations), listed)[1]
        np.testing.assert_allclose(player.values(observations, legal), expected, atol=1e-5)
        probabilities = player.probabilities(observations, legal)
        assert probabilities[~legal].max() == 0
        assert legal[np.arange(len(legal)), player.predict(observations, legal)].all()
    assert result.outcome == "finished"


def learner_of_run(root: Path) -> Any:
    """The agents of the last checkpoint of a run."""
    found = CheckpointArchive(root / "run" / "checkpoints", read_only=True).latest()
    assert found is not None
    with parts_of(*MIXED) as parts:
        learner = learner_of(parts)
        learner.restore(State(found.checkpoint.tensors, found.checkpoint.documents["learner"]))
        return learner.agents


def test_evaluations_of_independent_agents(tmp_path: Path) -> None:
    recorder = Recorder()
    train(tmp_path, "evaluation={every: 0, games: 4, opponents: [random]}", callbacks=[recorder])
    (evaluation,) = recorder.evaluations
    assert evaluation.rows[0].opponent == "random"
    assert evaluation.rows[0].mean_return is not None


def test_a_game_that_takes_turns_has_independent_agents_too(tmp_path: Path) -> None:
    for overrides in ((), PPO):
        result = train(tmp_path, "env.game=tictactoe", *overrides, name=f"turns-{len(overrides)}")
        assert result.outcome == "finished"
        assert len(curve(result.run, "agent-1/loss")) >= 2


# Settings


def problem(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TrainConfig, apply_overrides(SETTINGS, overrides), "run.yaml").resolved()
    return str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "learner.training=stackd",
            "learner.training = 'stackd': must be one of stacked, threads, processes",
        ),
        ("learner.algorithm=sac", "learner.algorithm = 'sac': must be one of dqn, ppo"),
        ("learner.agents={1: null}", "agent 1 is null: every seat needs an agent with a network"),
        ("learner.agents={1: {model: null}}", "an agent needs a network of its own"),
        (
            "learner.agents={3: {algorithm: ppo}}",
            "learner.agents names agent 3, and relay has seats for agents 0 … 2",
        ),
        (
            "learner.agents={1: {model: {input_dim: 7}}}",
            "input_dim = 7: an observation of relay has 4 numbers",
        ),
        ("model={network: slim}", "network 'slim' needs observations of shape (planes, height, width)"),
        ("learner.agents={1: {model: {hiden_dim: 7}}}", "did you mean hidden_dim?"),
        ("learner.agents={1: {dqn: {tau: 2}}}", "learner.agents.1.dqn"),
        ("learner.agents={1: {model: {outputs: policy}}}", "dqn learns the values of actions"),
        ("parallel.num_workers=0", "parallel.num_workers = 0"),
        (
            "parallel.temperature=0.5",
            "parallel.temperature = 0.5: in regime independent each agent plays as its own",
        ),
        ("parallel.inference=central", "parallel.inference = central"),
        ("parallel.seating={opponents: [{policy: random, share: 0.5}]}", "agents have all seats"),
        ("league={members: [random]}", "league: regime independent has an agent in every seat"),
        (
            "learner.replay.capacity=64",
            "the memory of an agent keeps at least two slabs of each table, 2 x 64",
        ),
        ("learner.training=processes", ""),
    ],
)
def test_what_does_not_fit_is_told(override: str, message: str) -> None:
    if message:
        assert message in problem(override)
    else:
        assert "learner.replay.prioritised=false" in problem(override, "learner.replay.prioritised=true")


def test_settings_are_resolved_and_read_again() -> None:
    resolved = config_of(*MIXED)
    assert resolved.model.outputs == "dueling"
    assert resolved.resolved() == resolved
    assert parse_settings(TrainConfig, resolved.model_dump(mode="json")) == resolved


def test_threads_follow_the_machine() -> None:
    open_ended = "run.learner_threads=auto"
    assert config_of(open_ended, "learner.training=sequential").placed().run.learner_threads == 1
    assert int(config_of(open_ended).placed().run.learner_threads) >= 1


def test_a_world_is_learned_with_a_few_agents(tmp_path: Path) -> None:
    """The worlds of the kit need nothing special."""
    world = "env={game: treasurehunt, options: {height: 5, width: 5, agents: 3, max_turns: 8, vision: 1}}"
    result = train(tmp_path, world, "model={network: slim, channels: 4, blocks: 1}")
    assert result.outcome == "finished"
    assert make_game("treasurehunt", agents=3).spec.seats == 3
