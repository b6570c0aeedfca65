"""The trainer: numbers, matches, checkpoints, callbacks, and how a run ends."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from logs_for_tests import read_log
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_for_tests import (
    ROLLOUT,
    UPDATES,
    After,
    Recorder,
    checkpoints,
    curve,
    is_running,
    raising,
    tiny,
    train,
)

from keisei.errors import ConfigError, DivergenceError
from keisei.games.shogi import Board, kif
from keisei.learners.ppo_config import PPOConfig
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.metric_names import TAGS
from keisei.runs.replays import SUFFIX, read_replay
from keisei.runs.rows import EvaluationRow, GameRow, RatingRow
from keisei.training.callbacks import Callback, StopTraining
from keisei.training.events import Counters, Ended, Started, Update
from keisei.training.regimes.loop import Pace, play_and_learn
from keisei.training.regimes.registry import regime_of
from keisei.training.trainer import Trainer, TrainResult

BY_DQN = {
    "train/q_mean", "train/td_error", "rollout/exploration_rate", "rollout/replayed", "rollout/late_priorities",
}  # fmt: skip
BY_AGENTS = {"rollout/return"}
BY_PPO = {name for name in TAGS if not name.startswith("league/")} - BY_DQN - BY_AGENTS
"""The numbers of a run that learns by PPO, without a league."""
STABLE_BASELINES = {
    "rollout/ep_len_mean", "rollout/ep_rew_mean", "train/loss", "train/policy_gradient_loss", "train/value_loss",
    "train/entropy_loss", "train/approx_kl", "train/clip_fraction", "train/explained_variance",
    "train/learning_rate", "train/n_updates", "time/fps", "time/total_timesteps", "time/time_elapsed",
}  # fmt: skip


def stored(run: RunDirectory) -> tuple[list[EvaluationRow], list[RatingRow], list[GameRow]]:
    with RunDatabase(run.database, read_only=True) as database:
        return database.evaluations(), database.ratings(), database.games()


# The loop and its numbers


def test_a_run_counts_what_it_does(tmp_path: Path) -> None:
    recorder = Recorder()
    result = train(tmp_path, callbacks=[recorder])
    assert result.outcome == "finished"
    assert result.run.status().state is RunState.FINISHED
    assert [update.counters.update for update in recorder.updates] == [1, 2, 3, 4]
    assert [update.counters.transitions for update in recorder.updates] == [256, 512, 768, 1024]
    assert [update.progress for update in recorder.updates] == [0.25, 0.5, 0.75, 1.0]
    assert result.counters == replace(recorder.updates[-1].counters, seconds=result.counters.seconds)
    assert result.counters.seconds >= recorder.updates[-1].counters.seconds
    assert result.counters.games == sum(update.games.games for update in recorder.updates) > 50
    seconds = [update.counters.seconds for update in recorder.updates]
    assert seconds == sorted(seconds)
    for update in recorder.updates:
        assert update.collection.policy_lag == 0
        assert update.collection.workers == 2
        assert 0 < update.collection.worker_utilisation <= 1
        assert update.numbers["train/gradient_steps"] == ROLLOUT // 64
        assert 5 <= update.games.mean_plies <= 9
        assert sum(update.games.endings.values()) == update.games.games
        assert update.games.draws == update.games.endings.get("full board", 0) / update.games.games


def test_numbers_go_to_the_database_to_tensorboard_and_to_the_log(tmp_path: Path) -> None:
    recorder = Recorder()
    run = train(tmp_path, "evaluation.opponents=[random]", callbacks=[recorder]).run
    assert set(TAGS) > STABLE_BASELINES
    board = EventAccumulator(str(run.tensorboard))
    board.Reload()
    assert set(board.Tags()["scalars"]) == {*BY_PPO, "evaluation/random"}
    for name, values in {
        "time/total_timesteps": [update.counters.transitions for update in recorder.updates],
        "train/n_updates": [1, 2, 3, 4],
        "train/loss": [update.numbers["train/loss"] for update in recorder.updates],
        "selfplay/first_win_rate": [update.games.first_wins for update in recorder.updates],
        "perf/learn_seconds": [update.learn_seconds for update in recorder.updates],
        "perf/collect_seconds": [update.collection.seconds for update in recorder.updates],
    }.items():
        assert [value for _, value in curve(run, name)] == values
        assert [event.value for event in board.Scalars(name)] == pytest.approx(values)
        assert [event.step for event in board.Scalars(name)] == [256, 512, 768, 1024]
    lines = [line for line in read_log(run.log) if line["event"] == "update"]
    assert [line["metrics"]["train/loss"] for line in lines[:UPDATES]] == [
        update.numbers["train/loss"] for update in recorder.updates
    ]
    assert set(lines[0]["metrics"]) == BY_PPO


def test_learning_learns(tmp_path: Path) -> None:
    """The policy becomes surer of itself and comes to win against a random player."""
    result = train(
        tmp_path, "run.steps=15_360", "parallel.games=32", "parallel.horizon=16", "model.hidden_dim=64",
        "learner.learning_rate=5e-3", "learner.epochs=4", "run.checkpoint_every=null", "evaluation.opponents=[random]",
        "evaluation.games=100",
    )  # fmt: skip
    losses = [value for _, value in curve(result.run, "train/entropy_loss")]
    assert losses[-1] > losses[0] + 0.1
    assert result.evaluation is not None
    assert result.evaluation.rows[0].score > 0.65


@pytest.mark.parametrize("workers", [1, 3])
def test_an_update_learns_from_its_tables_whatever_the_number_of_workers(
    tmp_path: Path, workers: int
) -> None:
    recorder = Recorder()
    train(
        tmp_path, f"parallel.num_workers={workers}", "parallel.tables=3", "parallel.games=5", "run.steps=480",
        callbacks=[recorder],
    )  # fmt: skip
    assert [update.collection.transitions for update in recorder.updates] == [3 * 5 * 16] * 2


def test_schedules_follow_the_run(tmp_path: Path) -> None:
    run = train(tmp_path, "learner.learning_rate=0.004", "learner.schedule=linear").run
    assert [value for _, value in curve(run, "train/learning_rate")] == pytest.approx(
        [0.004, 0.003, 0.002, 0.001]
    )


def test_the_clock_ends_a_run_too() -> None:
    pace = Pace(steps=1000, seconds=60)
    assert pace.progress(Counters(transitions=100, seconds=30)) == 0.5
    assert pace.progress(Counters(transitions=700, seconds=30)) == 0.7
    assert not pace.is_over(Counters(transitions=999, seconds=59))
    assert pace.is_over(Counters(transitions=0, seconds=60))
    assert Pace(seconds=math.inf, steps=10).progress(Counters(transitions=5, seconds=1e9)) == 0.5


def test_minutes_without_steps(tmp_path: Path) -> None:
    result = train(tmp_path, "run.steps=null", "run.minutes=0.01")
    assert result.outcome == "finished"
    assert result.counters.seconds >= 0.6
    assert result.counters.update >= 1


# Matches


def test_evaluations_come_on_schedule_and_are_kept(tmp_path: Path) -> None:
    recorder = Recorder()
    run = train(
        tmp_path, "evaluation.every=512", "evaluation.opponents=[random, greedy]", callbacks=[recorder]
    ).run
    assert [evaluation.update for evaluation in recorder.evaluations] == [2, 4]
    evaluations, ratings, games = stored(run)
    assert [(row.update, row.opponent) for row in evaluations] == [
        (2, "greedy"), (2, "random"), (4, "greedy"), (4, "random"), (4, "update-000000002"),
    ]  # fmt: skip
    assert {row.games for row in evaluations} == {2}
    assert [row.step for row in evaluations if row.opponent == "random"] == [512, 1024]
    assert {row.player for row in ratings} == {"random", "greedy", "update-000000002", "update-000000004"}
    assert next(row.rating for row in ratings if row.player == "random") == 0
    assert len(games) == 10, "the two games of each match can be replayed"
    for row in games:
        replay = read_replay(run.path / row.record)
        assert (replay.names, len(replay.actions)) == ((row.first, row.second), row.plies)
    assert [update for update, _ in curve(run, "evaluation/random")] == [2, 4]


@pytest.mark.parametrize("gate", [0.5, 1.0])
def test_the_best_is_who_passes_the_gate(tmp_path: Path, gate: float) -> None:
    recorder = Recorder()
    run = train(
        tmp_path, "evaluation={every: 256, opponents: [random], games: 4}", f"evaluation.gate={gate}",
        callbacks=[recorder],
    ).run  # fmt: skip
    best = ""
    for evaluation in recorder.evaluations:
        against_best = [row.score for row in evaluation.rows if row.opponent == best]
        assert evaluation.is_best == (not best or (against_best[0] >= gate and against_best[0] > 0.5))
        if evaluation.is_best:
            best = f"update-{evaluation.update:09d}"
    assert os.readlink(run.checkpoints / "best") == best
    assert recorder.evaluations[0].is_best
    assert not all(evaluation.is_best for evaluation in recorder.evaluations) or gate == 0.5


def test_a_tie_is_not_better(tmp_path: Path) -> None:
    """Weights that do not move score exactly one half against themselves."""
    recorder = Recorder()
    run = train(
        tmp_path, "evaluation={every: 256, opponents: [random], games: 4, gate: 0.5}", "learner.learning_rate=1e-30",
        callbacks=[recorder],
    ).run  # fmt: skip
    assert [row.score for row in recorder.evaluations[-1].rows if row.against_checkpoint] == [0.5]
    assert [evaluation.is_best for evaluation in recorder.evaluations] == [True, False, False, False]
    assert os.readlink(run.checkpoints / "best") == "update-000000001"


def test_matches_against_the_best_have_one_name(tmp_path: Path) -> None:
    run = train(tmp_path, "evaluation={every: 256, opponents: [random], games: 2}").run
    board = EventAccumulator(str(run.tensorboard))
    board.Reload()
    scores = {name for name in board.Tags()["scalars"] if name.startswith("evaluation/")}
    assert scores == {"evaluation/random", "evaluation/best"}
    assert [event.step for event in board.Scalars("evaluation/best")] == [512, 768, 1024]


def test_a_damaged_best_gives_its_place_to_the_next(tmp_path: Path) -> None:
    settings = ("evaluation.opponents=[random]", "evaluation.gate=1.0", "run.keep=9")
    run = train(tmp_path, "run.steps=512", *settings).run
    assert os.readlink(run.checkpoints / "best") == "update-000000002"
    recorder = Recorder()
    spoil = After(lambda: (run.checkpoints / "best" / "model.safetensors").write_bytes(b"rot") and None, 3)
    train(tmp_path, *settings, callbacks=[recorder, spoil])
    assert any("the best checkpoint can't be loaded" in message for _, message in recorder.notes)
    assert os.readlink(run.checkpoints / "best") == "update-000000004"


def test_shogi_games_are_kept_as_records(tmp_path: Path) -> None:
    run = train(
        tmp_path, "env={game: shogi, options: {max_plies: 12}}", "parallel.games=4", "parallel.horizon=8",
        "run.steps=64",
        "evaluation={opponents: [random], games: 4, records: 3, opening_plies: 2}",
    ).run  # fmt: skip
    _, _, games = stored(run)
    assert len(games) == 3
    for row in games:
        record = kif.load(run.path / row.record)
        assert len(record.moves) == row.plies <= 12
        assert record.names == (row.first, row.second)
        assert {row.first, row.second} == {"update-000000001", "random"}
        moves = Board()
        for action in read_replay((run.path / row.record).with_suffix(SUFFIX)).actions:
            moves.push(moves.move_from_action(action))
        assert moves.move_stack == list(record.moves)
    assert len(os.listdir(run.games)) == 6


def test_a_score_may_end_the_run(tmp_path: Path) -> None:
    settings = ("evaluation={every: 256, opponents: [random], games: 20}", "run.stop_at={random: 0.01}")
    result = train(tmp_path, *settings)
    assert result.outcome.startswith("scored ")
    assert result.outcome.endswith(" against random, at least 1.0% was asked for")
    assert result.counters.update == 1
    assert result.run.status().state is RunState.FINISHED
    assert result.run.status().detail == result.outcome
    assert checkpoints(result.run) == [0, 1]


def test_a_goal_that_is_never_measured_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"run\.stop_at names greedy"):
        tiny("run.stop_at={greedy: 0.5}")


# Checkpoints


def test_the_last_ones_and_milestones_are_kept(tmp_path: Path) -> None:
    run = train(tmp_path, "run.keep=2", "run.milestone_every=3", "run.steps=2048").run
    assert checkpoints(run) == [0, 3, 6, 7, 8]
    assert os.readlink(run.checkpoints / "latest") == "update-000000008"


@pytest.mark.parametrize(
    ("setting", "saved"),
    [("run.checkpoint_every=3", [0, 3, 4]), ("run.checkpoint_minutes=0", [0, 1, 2, 3, 4])],
)
def test_checkpoints_come_on_schedule(tmp_path: Path, setting: str, saved: list[int]) -> None:
    recorder = Recorder()
    train(tmp_path, "run.checkpoint_every=null", setting, callbacks=[recorder])
    assert [event.update for event in recorder.saved] == saved
    assert all(event.path is not None and not event.problem for event in recorder.saved)


# Callbacks


def test_callbacks_are_told_in_order(tmp_path: Path) -> None:
    recorder = Recorder()
    train(tmp_path, "run.steps=768", "evaluation={every: 384, opponents: [random]}", callbacks=[recorder])
    assert recorder.order == [
        ("checkpoint", 0), ("start", 0),
        ("update", 1), ("checkpoint", 1),
        ("update", 2), ("checkpoint", 2), ("evaluation", 2),
        ("update", 3), ("checkpoint", 3), ("evaluation", 3), ("end", 3),
    ]  # fmt: skip
    assert recorder.started == [
        Started(
            run=tmp_path / "run", game="tictactoe", network="mlp", parameters=18 * 16 + 16 + 16 * 9 + 9 + 16 + 1,
            workers=2, backend="inline", threads=1, steps=768, minutes=None, mode="sync",
        )
    ]  # fmt: skip


@pytest.mark.parametrize("reason", ["", "enough of it"])
def test_callbacks_are_told_of_the_end_when_all_is_done(tmp_path: Path, reason: str) -> None:
    run = RunDirectory(tmp_path / "run")
    states: list[RunState] = []
    stop = After(raising(StopTraining(reason)), 2 if reason else 99)
    recorder = Recorder()
    result = train(tmp_path, callbacks=[stop, AtTheEnd(lambda: states.append(run.status().state)), recorder])
    assert recorder.ended == [Ended(result.outcome, result.counters)]
    assert recorder.ended[0].reason == reason
    assert recorder.order[-1] == ("end", 2 if reason else 4)
    assert states == [RunState.FINISHED]


def test_one_who_would_stop_a_run_that_has_ended_hinders_nobody(tmp_path: Path) -> None:
    recorder = Recorder()
    result = train(tmp_path, callbacks=[AtTheEnd(raising(StopTraining("too late"))), recorder])
    assert result.outcome == "finished"
    assert len(recorder.ended) == 1


def test_an_owner_that_cannot_learn_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = {2: {1: "its loss is nan"}, 3: {1: "its loss is nan"}, 4: {0: "no rows", 1: "its loss is inf"}}

    def failing(*arguments: Any) -> Iterator[Update]:
        for update in play_and_learn(*arguments):
            failed = failures.get(update.counters.update, {})
            yield replace(update, report=replace(update.report, failures=failed))

    regime = replace(regime_of(tiny()), loop=failing)
    monkeypatch.setattr("keisei.training.trainer.regime_of", lambda config: regime)
    recorder = Recorder()
    train(tmp_path, callbacks=[recorder])
    told = [f"agent {name}" for name in (
        "1 could not learn: its loss is nan", "0 could not learn: no rows", "1 could not learn: its loss is inf",
    )]  # fmt: skip
    assert recorder.notes == [("warning", message) for message in told]
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == told


def test_all_callbacks_are_told_each_in_its_turn(tmp_path: Path) -> None:
    told: list[str] = []
    train(
        tmp_path,
        "run.steps=512",
        callbacks=[After(lambda: told.append("first")), After(lambda: told.append("second"))],
    )
    assert told == ["first", "second"] * 2


def test_a_callback_may_end_the_run(tmp_path: Path) -> None:
    stop = After(raising(StopTraining("enough of it")), 2)
    result = train(tmp_path, "run.checkpoint_every=null", callbacks=[stop])
    assert result.outcome == "enough of it"
    assert result.counters.update == 2
    assert checkpoints(result.run) == [0, 2]
    assert result.run.status().state is RunState.FINISHED
    assert train(tmp_path).digest == train(tmp_path, name="undisturbed").digest


def test_a_callback_may_end_the_run_before_it_begins(tmp_path: Path) -> None:
    class NotToday(Callback):
        def on_start(self, started: Started) -> None:
            raise StopTraining

    result = train(tmp_path, callbacks=[NotToday()])
    assert result.outcome == "stopped by a callback"
    assert checkpoints(result.run) == [0]


class AtTheEnd(Callback):
    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do

    def on_end(self, ended: Ended) -> None:
        self._do()


class Noting(Callback):
    """Writes down who works, and fails after an update."""

    def __init__(self) -> None:
        self.workers: list[int] = []
        self.trainer: Trainer | None = None

    def on_update(self, update: Any) -> None:
        assert self.trainer is not None
        status = self.trainer.parts.manager.get_status()
        self.workers = [worker.process_id for worker in status.workers if worker.process_id is not None]
        if update.counters.update == 3:
            raise ZeroDivisionError("a slip in a callback")


def test_an_error_in_a_callback_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    config = tiny("run.checkpoint_every=null", "parallel.backend=process")
    run = RunDirectory.create(tmp_path, "run", config)
    noting = Noting()
    recorder = Recorder()
    noting.trainer = Trainer(run, config, [noting, recorder])
    with pytest.raises(ZeroDivisionError, match="a slip"):
        noting.trainer.train()
    assert run.status().state is RunState.FAILED
    assert run.status().detail == "ZeroDivisionError: a slip in a callback"
    assert recorder.ended == []
    assert checkpoints(run) == [0, 3]
    assert len(noting.workers) == 2
    assert not any(map(is_running, noting.workers))
    assert train(tmp_path).digest == train(tmp_path, name="undisturbed").digest


# How a run fails


def test_a_run_that_diverges_says_so_and_keeps_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PPOConfig, "learning_rate_at", lambda *_: 1e30)  # settings allow less
    with pytest.raises(DivergenceError, match=r"lower learner\.learning_rate"):
        train(tmp_path, "learner.max_grad_norm=1e12")
    run = RunDirectory.open(tmp_path / "run")
    assert run.status().state is RunState.FAILED
    assert "DivergenceError" in run.status().detail
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    assert found.skipped == ()


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.device = 'nowhere'.*take cpu or auto"):
        train(tmp_path, "run.device=nowhere")


def test_the_result_is_what_lies_on_disk(tmp_path: Path) -> None:
    result: TrainResult = train(tmp_path)
    saved = load_checkpoint(result.run.checkpoints / "latest").tensors["model"]
    assert all(bool((tensor == saved[name]).all()) for name, tensor in result.network.state_dict().items())
    assert len(result.digest) == 64
    assert result.digest != train(tmp_path, "run.seed=1", name="another").digest
