"""A run ends with the same weights wherever its workers run, and however often it is stopped and resumed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from logs_for_tests import read_log
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_for_tests import (
    UPDATES,
    After,
    Recorder,
    checkpoints,
    curve,
    curves,
    kill_workers,
    raising,
    tiny,
    train,
)

from keisei.errors import CheckpointError, ConfigError, RunSettingsError
from keisei.evaluation.matches import MatchResult
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.training import examiner
from keisei.training.callbacks import StopTraining
from keisei.training.interruption import Interruption, UpdateAbandoned
from keisei.training.presets import run_config
from keisei.training.regimes.publishing import MOVED_ENOUGH
from keisei.training.trainer import Trainer, TrainResult


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    return train(tmp_path_factory.mktemp("undisturbed"))


# Places


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_every_backend_comes_to_the_same_weights(
    tmp_path: Path, undisturbed: TrainResult, backend: str
) -> None:
    result = train(tmp_path, f"parallel.backend={backend}")
    assert result.digest == undisturbed.digest
    assert curves(result.run) == curves(undisturbed.run)


def test_killed_workers_change_nothing(tmp_path: Path, undisturbed: TrainResult) -> None:
    config = tiny("parallel.backend=process")
    run = RunDirectory.create(tmp_path, "run", config)
    recorder = Recorder()
    trainer = Trainer(run, config, [recorder, After(lambda: kill_workers(trainer) and None)])
    assert trainer.train().digest == undisturbed.digest
    assert recorder.updates[-1].collection.restarts == 2 * (UPDATES - 1)
    with RunDatabase(run.database, read_only=True) as database:
        events = database.worker_events()
    assert {(event.update, event.worker, event.event) for event in events} == {
        (update, worker, "restarted") for update in (2, 3, 4) for worker in (0, 1)
    }
    assert all("SIGKILL" in event.detail for event in events)
    told = [message for level, message in recorder.notes if level == "warning"]
    assert len(told) == len(events)
    assert all(message.startswith("worker ") and "SIGKILL" in message for message in told)


# Stopped and resumed


def stopped_after_each_update(root: Path, *overrides: str) -> tuple[TrainResult, int]:
    """Train with as many trainers as there are updates, and one that finds nothing more to do."""
    for trainers in range(1, 20):
        interruption = Interruption()
        result = train(root, *overrides, callbacks=[After(interruption.request)], interruption=interruption)
        if result.outcome == "finished":
            return result, trainers
        assert result.outcome == "interrupted"
        assert result.counters.update == trainers
        assert result.run.status().state is RunState.INTERRUPTED
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("backend", ["inline", "process"])
def test_stopped_and_resumed_after_each_update(
    tmp_path: Path, undisturbed: TrainResult, backend: str
) -> None:
    result, trainers = stopped_after_each_update(
        tmp_path, f"parallel.backend={backend}", "run.checkpoint_every=null"
    )
    assert trainers == UPDATES + 1
    assert result.digest == undisturbed.digest
    assert curves(result.run) == curves(undisturbed.run)
    assert result.counters.games == undisturbed.counters.games
    assert result.counters.transitions == undisturbed.counters.transitions


def test_a_stop_does_not_shift_the_resets(tmp_path: Path) -> None:
    """One update has 256 transitions, so games start over in the third and fifth update."""
    settings = ("parallel.worker_reset_interval=400", "run.steps=1536")
    whole = train(tmp_path / "whole", *settings)
    result, _ = stopped_after_each_update(tmp_path / "stopped", *settings)
    assert result.digest == whole.digest
    assert result.digest != train(tmp_path / "without", "run.steps=1536").digest


def test_a_stop_does_not_shift_the_evaluations(tmp_path: Path) -> None:
    settings = ("run.steps=1536", "evaluation={every: 512, games: 2, opponents: [random]}")
    result, _ = stopped_after_each_update(tmp_path, *settings)
    with RunDatabase(result.run.database, read_only=True) as database:
        rows = [(row.update, row.score) for row in database.evaluations("random")]
    assert [update for update, _ in rows] == [2, 4, 6]
    undisturbed = train(tmp_path, *settings, name="undisturbed")
    with RunDatabase(undisturbed.run.database, read_only=True) as database:
        assert rows == [(row.update, row.score) for row in database.evaluations("random")]


def test_an_evaluation_that_was_cut_short_is_made_up_for(tmp_path: Path) -> None:
    settings = ("evaluation={every: 512, games: 2, opponents: [random]}",)
    interruption = Interruption()
    recorder = Recorder()
    result = train(
        tmp_path, *settings, callbacks=[recorder, After(interruption.request, 2)], interruption=interruption
    )
    assert result.counters.update == 2
    assert recorder.evaluations == []
    assert ("info", "the evaluation is abandoned") in recorder.notes
    resumed = Recorder()
    train(tmp_path, *settings, callbacks=[resumed])
    assert [evaluation.update for evaluation in resumed.evaluations] == [2, 4]


def test_the_last_evaluation_is_made_up_for_and_made_once(tmp_path: Path) -> None:
    settings = ("run.steps=512", "evaluation={every: 0, games: 2, opponents: [random]}")
    interruption = Interruption()
    train(tmp_path, *settings, callbacks=[After(interruption.request, 2)], interruption=interruption)
    evaluated = []
    for _ in range(2):
        recorder = Recorder()
        assert train(tmp_path, *settings, callbacks=[recorder]).outcome == "finished"
        evaluated.append([evaluation.update for evaluation in recorder.evaluations])
    assert evaluated == [[2], []]
    assert any("has already ended" in message for _, message in recorder.notes)


def test_a_finished_run_may_go_on_for_longer(tmp_path: Path) -> None:
    first = train(tmp_path)
    recorder = Recorder()
    longer = train(tmp_path, "run.steps=1536", callbacks=[recorder])
    assert [update.counters.update for update in recorder.updates] == [5, 6]
    assert recorder.started[0].counters == first.counters
    assert longer.counters.seconds > first.counters.seconds
    again = train(tmp_path, "run.steps=1536")
    assert (again.outcome, again.digest) == ("finished", longer.digest)


def test_the_clock_counts_evaluations_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """The last checkpoint was written before the last evaluation, whose time counts too."""
    first = train(tmp_path, "evaluation={every: 0, games: 2, opponents: [random]}")
    found = CheckpointArchive(first.run.checkpoints, read_only=True).latest()
    assert found is not None
    assert first.counters.seconds > found.checkpoint.counters["seconds"]
    recorder = Recorder()
    train(tmp_path, "run.steps=1536", callbacks=[recorder])
    assert recorder.started[0].counters.seconds == first.counters.seconds
    seconds = [value for _, value in curve(first.run, "time/time_elapsed")]
    assert seconds == sorted(seconds)
    assert seconds[UPDATES] > first.counters.seconds


def test_a_start_that_fails_does_not_set_the_clock_back(tmp_path: Path) -> None:
    seconds = train(tmp_path).counters.seconds
    with pytest.raises(ConfigError):
        train(tmp_path, "run.device=cuuda", "run.steps=1536")
    assert RunDirectory.open(tmp_path / "run").status().seconds == seconds


def test_a_resumed_run_starts_new_games_where_old_ones_do_not_fit(tmp_path: Path) -> None:
    train(tmp_path, "run.steps=512")
    recorder = Recorder()
    result = train(tmp_path, "env.discount=0.9", callbacks=[recorder])
    assert result.outcome == "finished"
    told = [line["message"] for line in read_log(result.run.log) if line["event"] == "log"]
    assert any("all games start over" in message for message in told)


def test_what_came_after_the_checkpoint_is_taken_back(tmp_path: Path, undisturbed: TrainResult) -> None:
    """The numbers of update 3 are there, its checkpoint is not: they are taken back, and come again."""
    stop = After(raising(StopTraining("for now")), 3)
    run = train(tmp_path, callbacks=[stop]).run
    shutil.rmtree(run.checkpoints / "update-000000003")
    assert [update for update, _ in curve(run, "train/loss")] == [1, 2, 3]
    recorder = Recorder()
    result = train(tmp_path, callbacks=[recorder])
    assert recorder.order[0] == ("start", 2)
    assert result.digest == undisturbed.digest
    assert curves(run) == curves(undisturbed.run)
    board = EventAccumulator(str(run.tensorboard))
    board.Reload()
    assert [event.step for event in board.Scalars("train/loss")] == [256, 512, 768, 1024]


# Damage


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def bit_flipped(content: bytes) -> bytes:
    place = random.Random(3).randrange(len(content))
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


@pytest.mark.parametrize(
    "file", ["manifest.json", "model.safetensors", "optimizer.safetensors", "blobs.safetensors"]
)
@pytest.mark.parametrize("damage", [truncated, bit_flipped])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    tmp_path: Path, undisturbed: TrainResult, file: str, damage: Callable[[bytes], bytes]
) -> None:
    stop = After(raising(StopTraining("for now")), 3)
    run = train(tmp_path, callbacks=[stop]).run
    victim = run.checkpoints / "update-000000003" / file
    victim.write_bytes(damage(victim.read_bytes()))
    recorder = Recorder()
    result = train(tmp_path, callbacks=[recorder])
    assert recorder.started[0].counters.update == 2
    warnings = [message for level, message in recorder.notes if level == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith("checkpoint update-000000003 is skipped: ")
    assert f"update-000000003/{file} is damaged" in warnings[0]
    assert result.digest == undisturbed.digest
    assert (run.checkpoints / "set-aside-update-000000003").is_dir()
    assert checkpoints(run)[-2:] == [3, 4]


def test_a_run_without_a_whole_checkpoint_is_not_begun_anew(tmp_path: Path) -> None:
    run = train(tmp_path, "run.steps=512").run
    for manifest in run.checkpoints.glob("update-*/manifest.json"):
        manifest.write_text("{}")
    with pytest.raises(CheckpointError, match="none of the 3 checkpoints"):
        train(tmp_path)
    assert run.status().state is RunState.FAILED


def test_a_checkpoint_of_other_weights_is_refused(tmp_path: Path) -> None:
    run = train(tmp_path, "run.steps=512").run
    other = train(tmp_path, "model.hidden_dim=17", "run.steps=768", name="other").run
    shutil.copytree(other.checkpoints / "update-000000003", run.checkpoints / "update-000000003")
    with pytest.raises(RunSettingsError, match=r"hidden_dim 17 → 16"):
        train(tmp_path)


def test_a_checkpoint_without_a_learner_is_refused(tmp_path: Path) -> None:
    from runs_for_tests import make_run

    run = make_run(tmp_path, "bare", updates=[3])
    with pytest.raises(CheckpointError, match="no state of a PPO learner"):
        Trainer(run, run_config(run).resolved()).train()


# Asynchronous runs


ASYNC = (
    "parallel={backend: process, num_workers: 1, tables: 1, games: 8, horizon: 8, mode: async}",
    "run.steps=2048",
)


def test_asynchronous_training_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    recorder = Recorder()
    stop = After(raising(StopTraining("for now")), 3)
    first = train(tmp_path, *ASYNC, callbacks=[recorder, stop])
    assert first.counters.update == 3
    resumed = Recorder()
    result = train(tmp_path, *ASYNC, callbacks=[resumed])
    assert result.outcome == "finished"
    assert resumed.started[0].counters == first.counters
    assert result.counters.transitions >= 2048
    updates = recorder.updates + resumed.updates
    assert [update.counters.update for update in updates] == list(range(1, len(updates) + 1))
    lags = [value for _, value in curve(result.run, "perf/policy_lag")]
    assert lags == [update.collection.policy_lag for update in updates]
    assert max(lags) > 0
    assert min(lags) >= 0


def test_weights_may_be_sent_only_when_the_policy_has_moved(tmp_path: Path) -> None:
    """A policy that hardly moves: weights are sent after every eighth update alone."""
    config = tiny(*ASYNC, "run.sync=adaptive", "learner.learning_rate=1e-12", "run.steps=4096")
    run = RunDirectory.create(tmp_path, "run", config)
    versions: list[int] = []
    trainer = Trainer(run, config, [After(lambda: versions.append(trainer.parts.manager.version))])
    trainer.train()
    assert len(versions) > 8
    assert versions == [1 + update // 8 for update in range(1, len(versions) + 1)]


def test_a_policy_that_moves_is_sent_at_once(tmp_path: Path) -> None:
    config = tiny(*ASYNC, "run.sync=adaptive", "learner.learning_rate=0.1", "learner.schedule=constant")
    run = RunDirectory.create(tmp_path, "run", config)
    recorder, versions = Recorder(), [1]
    trainer = Trainer(run, config, [recorder, After(lambda: versions.append(trainer.parts.manager.version))])
    trainer.train()
    moved = [
        after - before
        for before, after, update in zip(versions[:-1], versions[1:], recorder.updates, strict=True)
        if update.numbers["train/approx_kl"] >= MOVED_ENOUGH
    ]
    assert moved
    assert set(moved) == {1}


# Evaluations that were cut short


def test_an_evaluation_that_was_cut_short_is_finished_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between two opponents: the matches are played again, and the best is judged."""
    settings = ("evaluation={every: 512, games: 2, opponents: [random, greedy]}", "run.steps=1024")
    interruption, play, matches = Interruption(), examiner.play_match, [0]

    def play_one(*arguments: Any, **options: Any) -> MatchResult:
        matches[0] += 1
        if matches[0] == 2:
            interruption.request()
            raise UpdateAbandoned
        return play(*arguments, **options)

    monkeypatch.setattr(examiner, "play_match", play_one)
    cut = train(tmp_path, *settings, interruption=interruption)
    assert cut.outcome == "interrupted"
    archive = CheckpointArchive(cut.run.checkpoints, read_only=True)
    assert archive.best_path() is None
    monkeypatch.setattr(examiner, "play_match", play)
    recorder = Recorder()
    resumed = train(tmp_path, *settings, callbacks=[recorder])
    assert [evaluation.update for evaluation in recorder.evaluations] == [2, 4]
    assert [row.opponent for row in recorder.evaluations[0].rows] == ["random", "greedy"]
    assert recorder.evaluations[0].is_best
    assert archive.best_path() is not None
    assert resumed.digest == train(tmp_path, *settings, name="whole").digest
    again = Recorder()
    train(tmp_path, *settings, callbacks=[again])
    assert again.evaluations == [], "a run that is done is not examined again"
