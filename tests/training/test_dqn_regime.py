"""The pool regime: its loop, its settings, the same weights everywhere, and policies from its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_for_tests import Recorder, train
from training_for_tests import tiny as tiny_ppo

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games import make_game
from keisei.policies.behaviour import PlaySettings
from keisei.policies.neural import NeuralPolicy
from keisei.policies.players.saved_player import load_player
from keisei.training.callbacks import Callback
from keisei.training.events import Counters, Update
from keisei.training.interruption import Interruption
from keisei.training.regimes.learner_settings import DQNSettings, PPOSettings
from keisei.training.regimes.loop import Pace, Parts, play_and_learn
from keisei.training.settings import TrainConfig
from keisei.training.studies.profiling import profile
from keisei.training.wiring import connect

POOL = (
    "learner={regime: dqn, minibatch_size: 64, learning_rate: 1e-2, target_interval: 5, parts: 2}",
    "learner.replay={capacity: 768, learning_starts: 300, n_step: 2, sample_to_insert_ratio: 2, save_replay: true}",
    "parallel.tables=3",
    "parallel.seating={opponents: [{policy: random, share: 0.5}], opening_plies: 2}",
    "run.steps=1536",
)
"""Four updates of 384 decisions. The replay is full after two."""


def config_of(*overrides: str) -> TrainConfig:
    return tiny_ppo(*POOL, *overrides)


class InterruptAfter(Callback):
    def __init__(self, interruption: Interruption, update: int) -> None:
        self._interruption, self._update = interruption, update

    def on_update(self, update: Update) -> None:
        if update.counters.update == self._update:
            self._interruption.request()


def interrupted(root: Path, *overrides: str, after: int = 2) -> None:
    interruption = Interruption()
    stop = InterruptAfter(interruption, after)
    result = train(root, *POOL, *overrides, callbacks=[stop], interruption=interruption)
    assert result.outcome == "interrupted"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(tmp_path_factory.mktemp("expected"), *POOL, "parallel.num_workers=1").digest


# The same weights


@pytest.mark.parametrize(
    ("backend", "workers"), [("inline", 2), ("inline", 3), ("thread", 2), ("process", 2), ("process", 3)]
)
def test_any_placement_comes_to_the_same_weights(
    tmp_path: Path, expected: str, backend: str, workers: int
) -> None:
    placement = (
        f"parallel.backend={backend}",
        f"parallel.num_workers={workers}",
        f"run.learner_threads={workers}",
    )
    assert train(tmp_path, *POOL, *placement).digest == expected


@pytest.mark.parametrize("after", [1, 3])
def test_a_resumed_run_comes_to_the_same_weights(tmp_path: Path, expected: str, after: int) -> None:
    """After the first update the replay still fills; after the third it has overwritten some."""
    interrupted(tmp_path, "parallel.num_workers=2", after=after)
    assert train(tmp_path, *POOL, "parallel.num_workers=3").digest == expected


def test_a_replay_that_was_not_saved_fills_again(tmp_path: Path, expected: str) -> None:
    unsaved = "learner.replay.save_replay=false"
    interrupted(tmp_path, unsaved, after=3)
    recorder = Recorder()
    result = train(tmp_path, *POOL, unsaved, callbacks=[recorder])
    assert result.digest != expected
    assert [update.numbers["train/gradient_steps"] for update in recorder.updates] == [0]


@pytest.mark.parametrize(
    "override",
    [
        "learner.double=false",
        "learner.tau=0.5",
        "model.outputs=q",
        "model.quantiles=4",
        "learner.epsilon_spread=7",
        "learner.replay.prioritised=true",
        "learner.replay.n_step=1",
        "learner.replay.learning_steps=auto",
    ],
)
def test_each_part_of_the_method_makes_a_difference(tmp_path: Path, expected: str, override: str) -> None:
    assert train(tmp_path, *POOL, override).digest != expected


# The loop


@contextmanager
def parts_of(*overrides: str) -> Iterator[Parts]:
    parts = connect(config_of(*overrides).placed())
    try:
        yield parts
    finally:
        parts.manager.stop_workers()


def test_epsilon_falls_after_each_batch_and_workers_play_with_it() -> None:
    with parts_of("learner.epsilon=1", "learner.final_epsilon=0.2", "learner.epsilon_share=1") as parts:
        played = []
        publish = parts.manager.publish

        def noting(behaviour: Any) -> int:
            played.extend(behaviour.settings)
            return publish(behaviour)

        parts.manager.publish = noting  # type: ignore[method-assign]
        updates = list(play_and_learn(parts, Pace(steps=1536), Counters()))
    expected = [1.0, 0.8, 0.6, 0.4]
    assert [update.numbers["rollout/exploration_rate"] for update in updates] == pytest.approx(expected)
    assert played == [pytest.approx((0.0, epsilon, 0.0)) for epsilon in (*expected[1:], 0.2)]


def test_the_first_games_are_played_at_the_first_epsilon() -> None:
    with parts_of("learner.epsilon=0.75") as parts:
        assert parts.manager.version == 1
        experiences = parts.manager.collect_experiences()
        settings = parts.learner.behaviour(0.0).settings
    assert settings == (PlaySettings(0.0, 0.75, 0.0),)
    for item in experiences:
        mine = item.slab.policy == 0
        greedy = np.exp(item.slab.log_prob[mine]) > 0.25
        assert 0.1 < greedy.mean() < 0.6, "a greedy move has a chance of 0.25 and more, a random one has less"


def test_gradient_steps_follow_the_replay() -> None:
    with parts_of() as parts:
        updates = list(play_and_learn(parts, Pace(steps=1536), Counters()))
    steps = [update.numbers["train/gradient_steps"] for update in updates]
    assert steps[0] == 0, "there are not enough decisions yet"
    assert all(4 <= number <= 13 for number in steps[1:]), "two samples for each decision of the learner"
    assert [update.counters.update for update in updates] == [1, 2, 3, 4]
    assert updates[-1].progress == 1.0


def test_a_run_may_end_after_a_number_of_games(tmp_path: Path) -> None:
    recorder = Recorder()
    result = train(tmp_path, *POOL, "run.steps=null", "run.episodes=100", callbacks=[recorder])
    games = [update.counters.games for update in recorder.updates]
    assert games[-1] == result.counters.games >= 100 > games[-2]
    assert [update.progress for update in recorder.updates] == pytest.approx(
        [min(1, count / 100) for count in games]
    )


@pytest.mark.parametrize("backend", ["inline", "thread"])
def test_asynchronous_workers_play_on_and_the_learner_keeps_its_ratio(backend: str) -> None:
    with parts_of("parallel.mode=async", f"parallel.backend={backend}") as parts:
        updates = list(play_and_learn(parts, Pace(steps=3000), Counters()))
    steps = sum(update.numbers["train/gradient_steps"] for update in updates)
    transitions = sum(update.collection.transitions for update in updates[1:])
    assert steps == pytest.approx(2 * 0.65 * transitions / 64, rel=0.35)


def test_a_network_in_the_learners_process_may_decide(tmp_path: Path) -> None:
    result = train(tmp_path, *POOL, "parallel.inference=central")
    assert result.counters.transitions == 1536


def test_the_learner_meets_a_league(tmp_path: Path) -> None:
    """Half of the games are against members; the replay has only the learner's own decisions."""
    league = "league={latest_ratio: 0.5, save_steps: 384, swap_steps: 128, members: [random], epsilon: 0.1}"
    digests = set()
    for workers in (1, 3):
        recorder = Recorder()
        placement = f"parallel.num_workers={workers}"
        result = train(tmp_path, *POOL, league, placement, callbacks=[recorder], name=f"league-{workers}")
        digests.add(result.digest)
    assert len(digests) == 1
    assert recorder.updates[-1].numbers["league/members"] > 1
    assert sum(update.numbers["league/games"] for update in recorder.updates) > 5


def test_a_profile_counts_steps_also_while_the_replay_fills() -> None:
    found = profile(config_of().placed())
    assert (found.updates, found.transitions) == (4, 1536)
    assert found.gradient_steps > 0
    assert found.learner.forward > 0


# Policies


def test_a_checkpoint_gives_a_policy_that_plays_the_best_action(tmp_path: Path) -> None:
    result = train(tmp_path, *POOL, "model.quantiles=3")
    game = make_game("tictactoe", batch=8, seed=1)
    for _ in range(3):
        game.step(game.random_actions())
    player = load_player("run", game.spec, tmp_path)
    assert isinstance(player.policy, NeuralPolicy)
    assert player.policy.temperature == 0
    observations, legal = game.observe(), game.legal()
    actions = torch.arange(9, dtype=torch.int32).expand(8, -1)
    listed = actions.masked_fill(~torch.from_numpy(legal), -1)
    with torch.inference_mode():
        values = result.network(torch.from_numpy(observations), listed)[0].numpy()
    best = np.where(legal, values, -np.inf).max(axis=1)
    np.testing.assert_allclose(player.policy.evaluate(observations, legal), best, rtol=1e-5, atol=1e-6)


def test_evaluations_of_a_pool_run(tmp_path: Path) -> None:
    exam = ("evaluation={every: 768, games: 4, opponents: [random]}",)
    recorder = Recorder()
    train(tmp_path, *POOL, *exam, callbacks=[recorder])
    assert [evaluation.update for evaluation in recorder.evaluations] == [2, 4]
    assert {row.opponent for row in recorder.evaluations[0].rows} == {"random"}


# Settings


def problem(settings: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TrainConfig, {"env": {"game": "tictactoe"}, **settings}, "run.yaml")
    return str(caught.value)


def test_the_regime_chooses_the_settings_of_the_learner() -> None:
    assert isinstance(TrainConfig().learner, PPOSettings)
    assert isinstance(parse_settings(TrainConfig, {"learner": {"epochs": 1}}).learner, PPOSettings)
    learner = parse_settings(TrainConfig, {"learner": {"regime": "dqn", "tau": 0.5}}).learner
    assert isinstance(learner, DQNSettings)
    assert learner.tau == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": {"regime": "pol"}}, "learner.regime = 'pol': must be one of ppo, dqn"),
        ({"learner": {"regime": "dqn", "epochs": 2}}, "learner.epochs: unknown setting"),
        (
            {"learner": {"regime": "dqn", "epsilo": 2}},
            "learner.epsilo: unknown setting; did you mean epsilon?",
        ),
        ({"learner": {"epsilon": 0.5}}, "learner.epsilon: unknown setting"),
        (
            {"learner": {"regime": "dqn", "replay": {"n_steps": 3}}},
            "learner.replay.n_steps: unknown setting; did you mean n_step?",
        ),
        (
            {"learner": {"regime": "dqn"}, "parallel": {"epsilon": 0.1}},
            "parallel.epsilon = 0.1: regime dqn explores by learner.epsilon",
        ),
        ({"learner": {"regime": "dqn"}, "parallel": {"temperature": 0.5}}, "parallel.temperature = 0.5"),
        ({"learner": {"regime": "dqn"}, "model": {"outputs": "policy"}}, "take dueling or q"),
        ({"model": {"outputs": "dueling"}}, "regime ppo learns a policy"),
        ({"model": {"quantiles": 4}}, "model.quantiles = 4: regime ppo learns a policy"),
        (
            {"learner": {"regime": "dqn", "replay": {"capacity": 20_000}}},
            "learner.replay.capacity = 20000: a replay keeps at least two slabs of each table, 2 x 16384 decisions",
        ),
        ({"run": {"steps": None}}, "run.steps, run.minutes and run.episodes are all null"),
    ],
)
def test_what_does_not_fit_is_told(settings: dict[str, Any], message: str) -> None:
    assert message in problem(settings)


def test_settings_are_resolved_for_the_regime() -> None:
    assert tiny_ppo().model.outputs == "policy"
    assert config_of().model.outputs == "dueling"
    assert config_of("model.outputs=q").model.outputs == "q"
    resolved = config_of("learner.parts=auto")
    assert resolved.learner.parts == 1
    assert resolved.resolved() == resolved
    assert parse_settings(TrainConfig, resolved.model_dump(mode="json")) == resolved
