"""``keisei sweep`` as a person runs it: real runs, stops, and plans that are not its own."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, list_runs

TINY: dict[str, Any] = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 16, "num_layers": 1},
    "learner": {"minibatch_size": 64, "epochs": 1},
    "parallel": {"backend": "inline", "tables": 2, "games": 8, "horizon": 16},
    "evaluation": {"every": 0, "games": 4, "records": 0},
    "run": {"steps": 512},
}
RATES = ("--set", "learner.learning_rate=1e-4,1e-2")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("settings") / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return str(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny: str) -> Path:
    """The folder of a sweep over ``RATES`` that has ended."""
    root = tmp_path_factory.mktemp("finished")
    assert sweep(root, tiny, *RATES).exit_code == 0
    return root


@pytest.fixture
def swept(tmp_path: Path, finished: Path) -> Path:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path


def sweep(root: Path, *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["sweep", *arguments, "--root", str(root)])


def states(root: Path) -> dict[str, RunState]:
    return {run.name: run.status().state for run in list_runs(root)}


def score(run: RunDirectory) -> float:
    with RunDatabase(run.database, read_only=True) as database:
        return database.evaluations("random")[-1].score


def test_every_combination_is_trained_with_every_seed(tmp_path: Path, tiny: str) -> None:
    result = sweep(tmp_path, tiny, *RATES, "--set", "learner.epochs=2", "--seeds", "0,1")
    assert result.exit_code == 0, result.output
    keys = ("learning_rate-1e-2", "learning_rate-1e-4")
    names = [f"tiny-sweep/{key}/seed{seed}" for key in keys for seed in (0, 1)]
    assert states(tmp_path) == dict.fromkeys(names, RunState.FINISHED)
    for run in list_runs(tmp_path):
        learner, seed = run.config()["learner"], run.config()["run"]["seed"]
        rate = {0.01: "1e-2", 0.0001: "1e-4"}[learner["learning_rate"]]
        assert learner["epochs"] == 2
        assert run.name == f"tiny-sweep/learning_rate-{rate}/seed{seed}"
    means = {
        key: sum(score(RunDirectory(tmp_path / "tiny-sweep" / key / f"seed{seed}")) for seed in (0, 1)) / 2
        for key in keys
    }
    best = max(means, key=lambda key: means[key])
    for mean in means.values():
        assert f"{mean:.1%}" in result.stdout
    if len(set(means.values())) == 2:
        rate = best.removeprefix("learning_rate-")
        assert (
            f"Best: keisei train {tiny} --set learner.epochs=2 --set learner.learning_rate={rate}"
            in result.stdout
        )


def test_the_same_command_goes_on_with_more_seeds(swept: Path, tiny: str) -> None:
    logs = {run.name: run.log.read_bytes() for run in list_runs(swept)}
    result = sweep(swept, tiny, *RATES, "--seeds", "0,1")
    assert result.exit_code == 0, result.output
    assert "4 runs, 2 of which have ended before" in result.stdout
    assert len(list_runs(swept)) == 4
    assert all(run.log.read_bytes() == logs[run.name] for run in list_runs(swept) if run.name in logs)


@pytest.mark.slow
def test_ctrl_c_and_the_same_command(tmp_path: Path, tiny: str) -> None:
    code = "from keisei.cli.entry import main; main()"
    command = [sys.executable, "-c", code, "sweep", tiny, *RATES, "--root", str(tmp_path), "--at-once", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while RunState.RUNNING not in states(tmp_path).values():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Continue it: the same command" in output
    assert len(states(tmp_path)) == 1
    result = sweep(tmp_path, tiny, *RATES)
    assert result.exit_code == 0, result.output
    assert list(states(tmp_path).values()) == [RunState.FINISHED] * 2


@pytest.mark.slow
def test_the_worse_half_stops_early_and_can_be_continued(tmp_path: Path, tiny: str) -> None:
    choices = ("--set", "learner.learning_rate=1e-5,1e-4,1e-3,1e-2")
    command = (tiny, *choices, "--halving", "--steps", "8192", "--at-once", "2")
    result = sweep(tmp_path, *command)
    assert result.exit_code == 0, result.output
    found = list(states(tmp_path).values())
    assert found.count(RunState.FINISHED) == 1
    assert found.count(RunState.INTERRUPTED) == 3
    for run in list_runs(tmp_path):
        with RunDatabase(run.database, read_only=True) as database:
            progress = database.progress()
        assert progress is not None
        assert progress.step >= 2048
    assert result.stdout.count("(stopped early)") == 3
    assert "after 25% of the length, 2 of 4 go on" in result.stdout
    again = sweep(tmp_path, *command)
    assert list(states(tmp_path).values()) == found
    assert again.stdout.count("(stopped early)") == 3
    stopped = next(name for name, state in states(tmp_path).items() if state is RunState.INTERRUPTED)
    done = CliRunner().invoke(app, ["train", stopped, "--root", str(tmp_path), "--quiet"])
    assert done.exit_code == 0, done.output
    assert states(tmp_path)[stopped] is RunState.FINISHED


@pytest.mark.slow
def test_random_combinations_are_within_their_ranges(tmp_path: Path, tiny: str) -> None:
    choices = ("--set", "learner.learning_rate=1e-5..1e-2", "--set", "learner.epochs=1..3")
    result = sweep(tmp_path, tiny, *choices, "--random", "2", "--name", "drawn")
    assert result.exit_code == 0, result.output
    first = set(states(tmp_path))
    for run in list_runs(tmp_path):
        learner = run.config()["learner"]
        assert 1e-5 <= learner["learning_rate"] <= 1e-2
        assert learner["epochs"] in (1, 2, 3)
    sweep(tmp_path, tiny, *choices, "--random", "3", "--name", "drawn")
    assert first < set(states(tmp_path))
    assert len(states(tmp_path)) == 3


@pytest.mark.slow
def test_optuna_goes_on_from_the_runs_on_the_disk(tmp_path: Path, tiny: str) -> None:
    pytest.importorskip("optuna")
    choices = ("--set", "learner.learning_rate=1e-5..1e-2", "--set", "learner.epochs=1,2")
    result = sweep(tmp_path, tiny, *choices, "--optuna", "2", "--at-once", "1")
    assert result.exit_code == 0, result.output
    first = set(states(tmp_path))
    assert len(first) == 2
    result = sweep(tmp_path, tiny, *choices, "--optuna", "3", "--at-once", "1")
    assert result.exit_code == 0, result.output
    assert first < set(states(tmp_path))
    assert len(states(tmp_path)) == 3


def test_a_metric_is_compared_instead(tmp_path: Path, tiny: str) -> None:
    compared = ("--metric", "train/value_loss", "--lower-is-better")
    result = sweep(tmp_path, tiny, *RATES, "--set", "evaluation.opponents=[]", *compared)
    assert result.exit_code == 0, result.output
    losses = {}
    for run in list_runs(tmp_path):
        with RunDatabase(run.database, read_only=True) as database:
            losses[run.config()["learner"]["learning_rate"]] = database.metric("train/value_loss")[-1].value
    assert all(math.isfinite(loss) for loss in losses.values())
    lowest = {0.01: "1e-2", 0.0001: "1e-4"}[min(losses, key=lambda rate: losses[rate])]
    best = next(line for line in result.stdout.splitlines() if line.startswith("Best: "))
    assert best.endswith(f"--set learner.learning_rate={lowest}")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--set", "learner.epochs=3"], "give one of them several"),
        (["--set", "learner.epochs=1,1"], "each value is given once"),
        (["--set", "learner.epochs=1..3"], "a range has no end of values"),
        (["--set", "learner.epochs=3..1", "--random", "2"], "from a smaller number to a larger one"),
        (["--set", "learner.epochs=[1,2"], "] is missing"),
        (["--set", "learner.epochs"], "write it as part.setting=value,value"),
        (["--set", "learner.epochs=1,2", "--set", "learner.epochs=3"], "is given twice"),
        (["--set", "learner.epochs=1,x"], "learner.epochs = 'x'"),
        (["--set", "learner.epochz=1,2"], "did you mean epochs"),
        ([*RATES, "--random", "2", "--optuna", "2"], "give only one of them"),
        ([*RATES, "--halving", "--minutes", "1"], "give their length with --steps alone"),
        ([*RATES, "--set", "evaluation.opponents=[]"], "no score to compare"),
        ([*RATES, "--name", "a/b"], "at most 3 parts"),
        ([*RATES, "--seeds", "x"], "whole numbers"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    tmp_path: Path, tiny: str, arguments: list[str], problem: str
) -> None:
    result = sweep(tmp_path / "runs", tiny, *arguments)
    assert result.exit_code == 2, result.output
    assert problem in result.output
    assert list_runs(tmp_path / "runs") == []


def test_a_plan_of_another_question_is_left_alone(swept: Path, tiny: str) -> None:
    before = (swept / "tiny-sweep" / "sweep.json").read_bytes()
    result = sweep(swept, tiny, "--set", "learner.epochs=1,2")
    assert result.exit_code == 2
    assert "another question (settings)" in result.output
    assert (swept / "tiny-sweep" / "sweep.json").read_bytes() == before


@pytest.mark.parametrize(
    "settings",
    [
        {"learner.learning_rate": "1e-3"},
        {"learner.learning_rate": "1e-4", "env.game": "evil:Game"},
        {"env.game": "evil:Game"},
    ],
)
def test_a_plan_of_a_stranger_trains_nothing_that_was_not_asked_for(
    swept: Path, tiny: str, settings: dict[str, str]
) -> None:
    path = swept / "tiny-sweep" / "sweep.json"
    document = json.loads(path.read_text())
    document["trials"].append({"key": "evil", "settings": settings})
    path.write_text(json.dumps(document))
    result = sweep(swept, tiny, *RATES)
    assert result.exit_code == 2
    assert "none of the choices given now" in result.output
    assert len(list_runs(swept)) == 2


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "x"}', "[" * 99999, '{"format": 1e999}'])
def test_a_damaged_plan_is_named(tmp_path: Path, tiny: str, content: str) -> None:
    (tmp_path / "tiny-sweep").mkdir()
    (tmp_path / "tiny-sweep" / "sweep.json").write_text(content)
    result = sweep(tmp_path, tiny, *RATES)
    assert result.exit_code == 2
    assert "is not the plan of a sweep" in result.output


@pytest.mark.parametrize("key", ["../evil", "a/b", ".x", ""])
def test_a_key_leads_nowhere(swept: Path, tiny: str, key: str) -> None:
    path = swept / "tiny-sweep" / "sweep.json"
    document = json.loads(path.read_text())
    document["trials"][0]["key"] = key
    path.write_text(json.dumps(document))
    result = sweep(swept, tiny, *RATES)
    assert result.exit_code == 2
    assert "is not the plan of a sweep" in result.output
