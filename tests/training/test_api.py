"""``keisei.train``, also with runs that exist already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from training_for_tests import TINY, After, Recorder, raising, tiny

import keisei
from keisei.errors import ConfigError, RunError, RunLockedError
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.training.api import length_overrides, plan_run
from keisei.training.settings import TrainConfig

FIRST = (
    "parallel.tables=2",
    "parallel.games=16",
    "parallel.horizon=8",
    "learner.minibatch_size=128",
    "learner.epochs=1",
    "parallel.backend=inline",
    "run.learner_threads=1",
)
"""Of a preset, to make it quick."""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(dict(TINY)))
    return path


# What may be trained


def test_a_preset(tmp_path: Path) -> None:
    recorder = Recorder()
    result = keisei.train(
        "tictactoe-ppo",
        steps=512,
        root=tmp_path,
        overrides=[*FIRST, "evaluation.games=2"],
        callbacks=[recorder],
    )
    assert result.outcome == "finished"
    assert result.run.path == tmp_path / "tictactoe-ppo"
    assert result.counters.update == len(recorder.updates)
    assert result.evaluation is recorder.evaluations[-1]
    assert result.counters.transitions >= 512


def test_a_file_a_mapping_and_typed_settings_are_the_same(tmp_path: Path, settings: Path) -> None:
    digests = {
        keisei.train(settings, root=tmp_path).digest,
        keisei.train(str(settings), root=tmp_path, name="text").digest,
        keisei.train(TINY, root=tmp_path, name="mapping").digest,
        keisei.train(TrainConfig.model_validate(TINY), root=tmp_path, name="typed").digest,
    }
    assert len(digests) == 1
    assert [run.name for run in list_runs(tmp_path)] == ["mapping", "mine", "text", "typed"]


def test_settings_without_a_name_are_named_after_their_game(tmp_path: Path) -> None:
    assert plan_run(TINY, root=tmp_path).run.name == "tictactoe-ppo"
    game = {"game": "keisei.games.tictactoe:TicTacToe"}
    assert plan_run({**TINY, "env": game}, root=tmp_path).run.name == "keisei.games.tictactoe-TicTacToe-ppo"


def test_length_is_set_by_what_is_asked_for_alone() -> None:
    assert length_overrides(None, None) == []
    assert length_overrides(5, None) == ["run.steps=5", "run.minutes=null", "run.episodes=null"]
    assert length_overrides(None, 2.5) == ["run.steps=null", "run.minutes=2.5", "run.episodes=null"]
    assert length_overrides(5, 2.5) == ["run.steps=5", "run.minutes=2.5", "run.episodes=null"]


def test_wrong_settings_leave_no_run_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        keisei.train(TINY, root=tmp_path / "runs", overrides=["parallel.horizon=0"])
    assert not (tmp_path / "runs").exists()


def test_importing_keisei_brings_no_torch() -> None:
    code = "import sys, keisei; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert "train" in keisei.__all__
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        keisei.trian  # noqa: B018


# Runs that are there already


def test_the_same_settings_go_on_with_the_run(tmp_path: Path, settings: Path) -> None:
    first = plan_run(settings, root=tmp_path)
    again = plan_run(settings, root=tmp_path)
    assert (first.resumes, again.resumes) == (False, True)
    assert first.run == again.run
    assert first.config == again.config == tiny()


def test_a_plan_changes_nothing_of_a_run_yet(tmp_path: Path, settings: Path) -> None:
    run = plan_run(settings, root=tmp_path).run
    plan = plan_run("mine", root=tmp_path, overrides=["run.steps=4096"])
    assert plan.resumes
    assert plan.run == run
    assert plan.config.run.steps == 4096
    assert run.config()["run"]["steps"] == 1024
    assert plan_run("mine", root=tmp_path).config.run.steps == 1024


def test_changed_settings_are_kept_once_with_the_old_ones_beside(tmp_path: Path, settings: Path) -> None:
    run = keisei.train(settings, root=tmp_path, steps=256).run
    for _ in range(2):
        keisei.train("mine", root=tmp_path, steps=512)
    assert run.config()["run"]["steps"] == 512
    assert yaml.safe_load((run.path / "config.1.yaml").read_text())["run"]["steps"] == 256
    assert not (run.path / "config.2.yaml").exists()


# Starts that fail


def test_a_start_that_fails_leaves_no_run_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.device = 'cuuda'"):
        keisei.train(TINY, root=tmp_path, name="mine", overrides=["run.device=cuuda"])
    assert os.listdir(tmp_path) == []
    assert keisei.train(TINY, root=tmp_path, name="mine").outcome == "finished"


def test_a_start_without_memory_leaves_no_run_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.training.session.connect", lambda *arguments: raising(MemoryError())())  # type: ignore[arg-type]
    with pytest.raises(MemoryError):
        keisei.train(TINY, root=tmp_path, name="mine")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("existing", ["restart", "overwrite"])
def test_a_start_that_fails_gives_the_old_run_its_name_back(tmp_path: Path, existing: Any) -> None:
    keisei.train(TINY, root=tmp_path, name="mine", steps=256)
    with pytest.raises(ConfigError):
        keisei.train("mine", root=tmp_path, existing=existing, overrides=["run.device=cuuda"])
    assert os.listdir(tmp_path) == ["mine"]
    assert keisei.train("mine", root=tmp_path, steps=512).counters.update == 2
    keisei.train("mine", root=tmp_path, existing=existing, steps=256)
    assert sorted(os.listdir(tmp_path)) == ["mine"] + ["mine.1"] * (existing == "restart")


def test_a_run_that_has_saved_something_stays(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        keisei.train(TINY, root=tmp_path, name="mine", callbacks=[After(raising(ZeroDivisionError()), 1)])
    assert keisei.train("mine", root=tmp_path).counters.update == 4


def test_a_run_that_another_start_made_stays(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "mine", tiny())
    with pytest.raises(ConfigError):
        keisei.train("mine", root=tmp_path, overrides=["run.device=cuuda"])
    assert run.status().state is RunState.CREATED


@pytest.mark.parametrize("below", ["", "further/down"])
def test_a_root_that_is_a_file_is_told(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"file is a file, and runs need a folder|Not a directory"):
        keisei.train(TINY, root=tmp_path / "file" / below, name="mine")
    assert (tmp_path / "file").read_text() == "mine"


# Starting over


@pytest.mark.parametrize("existing", ["Resume", "refuse", "restart ", None])
def test_a_word_that_says_nothing_of_an_existing_run_leaves_it_alone(
    tmp_path: Path, settings: Path, existing: Any
) -> None:
    run = plan_run(settings, root=tmp_path).run
    (run.path / "mark").touch()
    with pytest.raises(ConfigError, match=r"it is resume, restart .* or overwrite"):
        plan_run(settings, root=tmp_path, existing=existing)
    assert (run.path / "mark").is_file()
    assert [run.name for run in list_runs(tmp_path)] == ["mine"]


def test_overrides_are_a_list(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"overrides = 'run\.seed=1': it is a list of assignments"):
        keisei.train(TINY, root=tmp_path, overrides="run.seed=1")
    assert not list(tmp_path.iterdir())


def test_restart_keeps_the_old_run_and_overwrite_does_not(tmp_path: Path, settings: Path) -> None:
    plan_run(settings, root=tmp_path)
    plan = plan_run(settings, root=tmp_path, overrides=["run.seed=1"], existing="restart")
    assert not plan.resumes
    assert [run.name for run in list_runs(tmp_path)] == ["mine", "mine.1"]
    assert RunDirectory.open(tmp_path / "mine.1").config()["run"]["seed"] == 0
    plan_run(settings, root=tmp_path, overrides=["run.seed=2"], existing="overwrite")
    assert [run.name for run in list_runs(tmp_path)] == ["mine", "mine.1"]
    assert RunDirectory.open(tmp_path / "mine").config()["run"]["seed"] == 2


def test_a_run_begins_anew_where_it_lies_with_its_own_settings(tmp_path: Path, settings: Path) -> None:
    run = plan_run(settings, root=tmp_path / "there", overrides=["run.seed=5"]).run
    plan = plan_run(str(run.path), root=tmp_path / "here", existing="overwrite")
    assert plan.run == run
    assert plan.config.run.seed == 5


def test_a_run_of_a_presets_name_begins_anew_with_the_preset(tmp_path: Path) -> None:
    plan_run("tictactoe-ppo", root=tmp_path, overrides=["run.seed=5"])
    plan = plan_run("tictactoe-ppo", root=tmp_path, existing="restart")
    assert plan.config.run.seed != 5


def test_a_preset_may_be_trained_twice_under_two_names(tmp_path: Path) -> None:
    plan_run("tictactoe-ppo", root=tmp_path)
    second = plan_run("tictactoe-ppo", root=tmp_path, name="second")
    assert not second.resumes
    assert second.run.path == tmp_path / "second"


def test_a_run_keeps_its_name(tmp_path: Path, settings: Path) -> None:
    run = plan_run(settings, root=tmp_path).run
    with pytest.raises(RunError, match=r"keeps its name.*config\.yaml --name other"):
        plan_run("mine", root=tmp_path, name="other")
    assert plan_run("mine", root=tmp_path, name="mine").run == run
    assert plan_run(run.path / "config.yaml", root=tmp_path, name="other").run.name == "other"


def test_a_run_that_is_being_trained_is_left_alone(tmp_path: Path, settings: Path) -> None:
    run = plan_run(settings, root=tmp_path).run
    with run.lock():
        with pytest.raises(RunLockedError, match="is being trained by process"):
            keisei.train("mine", root=tmp_path)
        with pytest.raises(RunLockedError):
            keisei.train("mine", root=tmp_path, overrides=["run.seed=3"])
        with pytest.raises(RunLockedError):
            plan_run("mine", root=tmp_path, existing="overwrite")
    assert run.config()["run"]["seed"] == 0
    assert keisei.train("mine", root=tmp_path).outcome == "finished"
