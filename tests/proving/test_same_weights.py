"""``verify_training``: all ways to train end with the same weights, and one that does not is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from training_for_tests import TINY, tiny

from keisei.config import apply_overrides, parse_settings
from keisei.errors import ConfigError, RunError
from keisei.proving import same_weights
from keisei.proving.same_weights import TrainedRun, TrainingReport, small_config, verify_training
from keisei.runs.directory import RunDirectory
from keisei.training.settings import TrainConfig

WAYS = ["inline", "inline", "thread", "thread", "process", "process"]
DISTURBED = ["workers killed", "crew changes", "stopped", "trainer killed"]


@pytest.mark.parametrize("league", [False, True])
def test_all_ways_come_to_the_same_weights(monkeypatch: pytest.MonkeyPatch, league: bool) -> None:
    monkeypatch.setattr(same_weights, "TRAINER_KILLS", 1)
    seen: dict[str, list[tuple[int, int]]] = {}
    config = small_config("tictactoe", games=4, league=league)
    report = verify_training(
        config,
        workers=(1, 3),
        updates=3,
        kills=2,
        observe=lambda name, done, total: seen.setdefault(name, []).append((done, total)),
    )
    assert report.same, report
    assert [run.name for run in report.runs] == WAYS + DISTURBED
    titles = [f"{run.name}, {run.workers}" for run in report.runs[: len(WAYS)]]
    assert titles == ["inline, 1", "inline, 3", "thread, 1", "thread, 3", "process, 1", "process, 3"]
    assert list(seen) == titles + DISTURBED
    assert {run.updates for run in report.runs} == {3}
    assert {run.transitions for run in report.runs} == {3 * config.rollout}
    assert len({run.digest for run in report.runs}) == 1
    times = {run.name: run.times for run in report.runs}
    assert times["inline"] == times["thread"] == times["process"] == 0
    assert times["stopped"] == 3
    assert times["trainer killed"] <= 1
    assert seen["inline, 1"] == seen["stopped"] == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.slow
def test_shogi_with_many_kills() -> None:
    report = verify_training(small_config("shogi"), updates=12, kills=12)
    assert report.same, report
    times = {run.name: run.times for run in report.runs}
    assert times["workers killed"] > 3
    assert times["trainer killed"] == same_weights.TRAINER_KILLS


def test_what_differs_is_named() -> None:
    first = TrainedRun("inline", "2", 4, 1024, 0.5, "aaaa")
    same = TrainingReport((first, replace(first, name="thread", seconds=9.0)))
    other = TrainingReport((first, replace(first, name="thread"), replace(first, name="stopped", digest="b")))
    assert same.same
    assert not other.same
    assert other.differences == ["stopped with 2"]


@pytest.mark.parametrize("setting", ["parallel.mode=async", "parallel.scaling=auto"])
def test_what_is_never_the_same_twice_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="only with mode sync and scaling fixed"):
        verify_training(tiny(setting))


def test_a_replay_that_fills_for_long_is_learned_from_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_weights, "TRAINER_KILLS", 0)
    reports = [
        verify_training(
            _pool("learner.replay.learning_starts=1500", f"learner.learning_rate={rate}"),
            backends=("inline",),
            workers=(1,),
            updates=2,
            kills=0,
        )
        for rate in (1e-3, 1e-1)
    ]
    assert all(report.same for report in reports)
    assert reports[0].runs[0].digest != reports[1].runs[0].digest


def test_equal_weights_that_nobody_has_trained_prove_nothing() -> None:
    with pytest.raises(ConfigError, match="after 2 updates the weights are still those of the start"):
        verify_training(
            _pool("learner.replay.sample_to_insert_ratio=1e-9"),
            backends=("inline",),
            workers=(1,),
            updates=2,
        )


def _pool(*overrides: str) -> TrainConfig:
    settings = {**TINY, "learner": {"regime": "dqn", "minibatch_size": 32}}
    return parse_settings(TrainConfig, apply_overrides(settings, overrides)).resolved()


def test_a_trainer_that_fails_by_itself_is_not_taken_for_a_killed_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory.create(tmp_path, "run", tiny("run.device=nowhere"))
    with pytest.raises(RunError, match="ended unexpectedly, with exit code 1"):
        same_weights._killed(run, 60)
    assert "nothing can be computed there" in capfd.readouterr().err
