"""``train_dqn`` and the agent that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keisei
from keisei.errors import ConfigError, PolicyError, RunExistsError
from keisei.experience.replay import ReplayBuffer
from keisei.games import make_game
from keisei.parallel import ParallelManager
from keisei.policies.contract import Situation
from keisei.policies.model_config import ModelConfig
from keisei.policies.players.inference_policy import InferencePolicy
from keisei.policies.players.saved_player import load_player
from keisei.runs.directory import RunDirectory
from keisei.runs.state_tensors import weights_digest
from keisei.training import dqn_agent
from keisei.training.dqn_agent import DQNAgent, train_dqn
from keisei.training.presets import load_preset
from keisei.training.regimes.learner_settings import DQNSettings

SMALL = ("model.hidden_dim=16", "model.num_layers=1", "parallel.backend=inline")


def trained(root: Path, **arguments: Any) -> DQNAgent:
    small: dict[str, Any] = {
        "n_episodes": 60, "num_workers": 2, "batch_size": 32, "game": "tictactoe", "device": "cpu",
        "buffer_size": 1000, "overrides": SMALL, "root": root,
    }  # fmt: skip
    return train_dqn(**(small | arguments))


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> DQNAgent:
    return trained(tmp_path_factory.mktemp("agent"))


def test_it_is_a_name_of_the_package() -> None:
    assert keisei.train_dqn is train_dqn


def test_arguments_become_settings(agent: DQNAgent) -> None:
    config = agent.config
    assert isinstance(config.learner, DQNSettings)
    parallel, replay = config.parallel, config.learner.replay
    assert (parallel.tables, parallel.num_workers, parallel.games, parallel.episodes_per_worker) == (
        2,
        2,
        4,
        4,
    )
    assert (replay.capacity, replay.learning_steps, replay.learning_starts) == (1000, "auto", 32)
    assert config.learner.minibatch_size == 32
    assert (config.run.episodes, config.run.steps, config.run.minutes) == (60, None, None)
    assert agent.run is not None
    assert agent.run.name == "tictactoe-train-dqn"
    assert agent.learner.steps > 40, "one step for each episode, after the first"


def test_steps_may_be_given(tmp_path: Path) -> None:
    agent = trained(tmp_path, learning_steps_per_batch=3, n_episodes=20)
    assert isinstance(agent.config.learner, DQNSettings)
    assert agent.config.learner.replay.learning_steps == 3
    assert agent.learner.steps % 3 == 0


def test_a_small_batch_is_not_split_as_the_preset_splits_its_own(tmp_path: Path) -> None:
    assert load_preset("ludo-dqn").settings["learner"]["parts"] == 2
    agent = trained(tmp_path, game="ludo", n_episodes=2, overrides=["parallel.backend=inline"])
    assert isinstance(agent.config.learner, DQNSettings)
    assert agent.config.learner.parts == 1


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 1), (3, 1), (48, 46)])
def test_by_default_two_cores_are_left_free(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, workers: int
) -> None:
    monkeypatch.setattr(dqn_agent, "usable_cores", lambda: cores)
    found: list[Any] = []

    def noting(settings: Any, **arguments: Any) -> Any:
        found.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(dqn_agent, "plan_run", noting)
    with pytest.raises(KeyboardInterrupt):
        train_dqn(game="tictactoe", root=tmp_path)
    parallel = found[0]["parallel"]
    assert (parallel["tables"], parallel["num_workers"], parallel["games"]) == (workers, workers, 4)
    assert found[0]["run"]["episodes"] == 100_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_episodes": 0}, "n_episodes = 0: must be a whole number at least 1"),
        ({"batch_size": 0}, "batch_size = 0: must be a whole number at least 1"),
        ({"num_workers": 0}, "num_workers = 0: must be a whole number from 1 to 512 or null"),
        ({"num_workers": "auto"}, "num_workers = 'auto': must be a whole number from 1 to 512 or null"),
        (
            {"learning_steps_per_batch": 0, "episodes_per_batch": 0},
            "2 problems in the arguments of train_dqn",
        ),
        ({"buffer_size": 10}, "batch_size = 32 is more than buffer_size = 10"),
        ({"overrides": ["learner.speed=3"]}, "learner.speed: unknown setting"),
        ({"overrides": "learner.tau=0.5"}, r"overrides = 'learner.tau=0.5': .* write \['learner.tau=0.5'\]"),
        ({"buffer_size": 100}, "learner.replay.capacity = 100"),
        ({"existing": "Resume"}, "existing = 'Resume': it is resume, restart"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_written(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        trained(tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_keeps_the_first_run(tmp_path: Path) -> None:
    digests = [weights_digest(trained(tmp_path, n_episodes=20).get_weights()) for _ in range(2)]
    assert digests[0] == digests[1], "the same seed, the same agent"
    assert len(list(tmp_path.iterdir())) == 2
    assert weights_digest(trained(tmp_path, n_episodes=20, seed=1).get_weights()) != digests[0]


def test_weights_come_and_go(agent: DQNAgent) -> None:
    weights = agent.get_weights()
    other = DQNAgent(agent.config)
    assert weights_digest(other.get_weights()) != weights_digest(weights)
    other.set_weights(weights)
    assert weights_digest(other.get_weights()) == weights_digest(weights)
    assert weights_digest(other.learner.target) == weights_digest(weights), "learning goes on from them"
    weights[next(iter(weights))].add_(1)
    assert weights_digest(other.get_weights()) != weights_digest(weights), "they are copies"
    wrong = {name: torch.zeros(3) for name in weights}
    with pytest.raises(PolicyError, match="these weights do not fit the network"):
        other.set_weights(wrong)
    before = weights_digest(other.get_weights())
    last = list(weights)[-1]
    mixed: dict[str, Any] = {**weights, last: weights[last].numpy()}
    with pytest.raises(PolicyError, match=f"{last} is of type ndarray, and weights are tensors"):
        other.set_weights(mixed)
    broken = {**weights, last: torch.full_like(weights[last], torch.nan)}
    with pytest.raises(PolicyError, match=f"{weights[last].numel()} numbers of {last} are not finite"):
        other.set_weights(broken)
    whole = {**weights, last: weights[last].to(torch.int64)}
    with pytest.raises(PolicyError, match=rf"{last} is int64\[.*\] and must be float32\["):
        other.set_weights(whole)
    with pytest.raises(PolicyError, match=r"0 is float32\[1\] and must be left out"):
        other.set_weights({**weights, 0: torch.zeros(1)})  # type: ignore[dict-item]
    with pytest.raises(PolicyError, match="weights are a mapping from names to tensors"):
        other.set_weights(None)  # type: ignore[arg-type]
    assert weights_digest(other.get_weights()) == before, "nothing has changed"


def test_an_inference_policy_plays_as_the_agent(agent: DQNAgent) -> None:
    policy = InferencePolicy(agent.spec, agent.config.model, agent.get_weights())
    game = make_game("tictactoe", batch=16, seed=3)
    situation = Situation(game, 0, 0)
    decision = policy.act(situation)
    expected = agent.policy().act(situation)
    np.testing.assert_array_equal(decision.actions, expected.actions)
    np.testing.assert_array_equal(decision.values, expected.values)
    assert not hasattr(policy, "optimizer")
    new = InferencePolicy(agent.spec, agent.config.model)
    assert weights_digest(new.get_weights()) != weights_digest(agent.get_weights())
    with pytest.raises(PolicyError, match="do not fit"):
        new.set_weights({})


def test_play_gives_a_match(agent: DQNAgent) -> None:
    match = agent.play("random", games=10)
    assert (match.players, len(match.games)) == (("agent", "random"), 10)
    assert agent.play(agent.policy(epsilon=0.5), games=2).players[0] == "agent"
    assert agent.play("tictactoe-train-dqn", games=2).players[1].startswith("tictactoe-train-dqn")
    other = make_game("connect-four").spec
    stranger = InferencePolicy(other, ModelConfig(network="mlp", hidden_dim=8).resolved(other))
    with pytest.raises(PolicyError, match=r"is made for connect-four \(.* and cannot play tictactoe \("):
        agent.play(stranger, games=2)


def test_a_saved_agent_is_loaded_and_plays_as_a_run(agent: DQNAgent, tmp_path: Path) -> None:
    path = agent.save(tmp_path / "kept")
    loaded = DQNAgent.load(path)
    assert weights_digest(loaded.get_weights()) == weights_digest(agent.get_weights())
    assert weights_digest(loaded.learner.target) == weights_digest(agent.learner.target)
    assert loaded.learner.steps == agent.learner.steps
    player = load_player("kept", agent.spec, tmp_path)
    assert player.name.startswith("kept@")
    with pytest.raises(RunExistsError, match="kept exists; save the agent under another path"):
        agent.save(tmp_path / "kept")


def test_an_agent_of_another_machines_device_is_loaded_on_this_one(agent: DQNAgent, tmp_path: Path) -> None:
    run = agent.config.run.model_copy(update={"device": "cuda:7"})
    path = agent.save(tmp_path / "kept")
    RunDirectory.open(path).change_config(agent.config.model_copy(update={"run": run}))
    with pytest.raises(ConfigError, match="nothing can be computed there"):
        DQNAgent.load(path)
    loaded = DQNAgent.load(path, device="cpu")
    assert weights_digest(loaded.get_weights()) == weights_digest(agent.get_weights())


def test_games_of_a_module_name_their_run(tmp_path: Path) -> None:
    game = "keisei.games.tictactoe:TicTacToe"
    agent = trained(tmp_path, n_episodes=8, game=game)
    assert agent.run is not None
    assert agent.run.name == "keisei.games.tictactoe-TicTacToe-train-dqn"


def test_trajectories_of_workers_go_into_the_replay_and_are_learned_from(agent: DQNAgent) -> None:
    learner = DQNAgent(agent.config)
    config = learner.config
    with ParallelManager(config.env, config.model, config.parallel, model=learner.learner.network) as manager:
        experiences = manager.collect_experiences()
        known = learner.add_trajectory_to_buffer(experiences)
        assert len(experiences) * 0.8 < known <= len(experiences)
        manager.collect_experiences()  # the memory of the first experience is used again
    digest = weights_digest(learner.get_weights())
    report = learner.learn(steps=5)
    assert (report.numbers["train/gradient_steps"], learner.learner.steps) == (5, 5)
    assert weights_digest(learner.get_weights()) != digest


def test_the_replay_has_copies(agent: DQNAgent) -> None:
    learner = DQNAgent(agent.config)
    config = learner.config
    with ParallelManager(config.env, None, config.parallel) as manager:
        learner.add_trajectory_to_buffer(manager.collect_experiences())
        buffer = learner._buffer
        assert isinstance(buffer, ReplayBuffer)
        before = buffer.sample(64, 0, 0)
        manager.collect_experiences()
        after = buffer.sample(64, 0, 0)
    np.testing.assert_array_equal(before.packed, after.packed)
    np.testing.assert_array_equal(before.next_packed, after.next_packed)


def test_trajectories_of_another_shape_are_refused(agent: DQNAgent) -> None:
    learner = DQNAgent(agent.config)
    shape = learner.config.parallel.model_copy(update={"horizon": 5})
    with (
        ParallelManager(learner.config.env, None, shape) as manager,
        pytest.raises(ConfigError, match=r"the replay keeps slabs of .*steps=16.* given one of .*steps=5"),
    ):
        learner.add_trajectory_to_buffer(manager.collect_experiences())


def test_a_run_of_another_regime_makes_no_agent() -> None:
    from training_for_tests import tiny

    with pytest.raises(ConfigError, match=r"learner\.regime = ppo: a DQN agent learns in regime dqn"):
        DQNAgent(tiny())
