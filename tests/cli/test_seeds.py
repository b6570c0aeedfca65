"""``keisei train --seeds`` as a person runs it: real processes, Ctrl-C, and a run that fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.cli.side_by_side import shares
from keisei.errors import ConfigError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.runs.state_tensors import weights_digest
from keisei.training.experiments.seeds import parse_seeds

TINY: dict[str, Any] = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 16, "num_layers": 1},
    "learner": {"minibatch_size": 64, "epochs": 1},
    "parallel": {"backend": "inline", "tables": 2, "games": 8, "horizon": 16},
    "evaluation": {"every": 0, "opponents": []},
    "run": {"steps": 1024},
}


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return str(path)


def train(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", "--root", str(root), *arguments])


def digest_of(run: RunDirectory) -> str:
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    return weights_digest(found.checkpoint.tensors["model"])


def update_of(run: RunDirectory) -> int:
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    return found.checkpoint.update


def states(root: Path) -> dict[str, RunState]:
    return {run.name: run.status().state for run in list_runs(root)}


def test_seeds_are_ordinary_runs_in_one_folder(tmp_path: Path, tiny: str) -> None:
    result = train(tmp_path, tiny, "--seeds", "0,3", "--set", "learner.learning_rate=1e-3")
    assert result.exit_code == 0, result.output
    assert states(tmp_path) == dict.fromkeys(["tiny-seeds/seed0", "tiny-seeds/seed3"], RunState.FINISHED)
    assert f"keisei plot {tmp_path / 'tiny-seeds'} --mean" in result.output
    for run in list_runs(tmp_path):
        seed = str(run.config()["run"]["seed"])
        alone = train(tmp_path / "alone", tiny, "--name", run.path.name, "--set", f"run.seed={seed}",
                      "--set", "learner.learning_rate=1e-3", "--deterministic-digest", "--quiet")  # fmt: skip
        assert alone.stdout.strip() == digest_of(run)


def test_one_that_fails_does_not_end_the_others(tmp_path: Path, tiny: str) -> None:
    (tmp_path / "many" / "seed0").mkdir(parents=True)
    (tmp_path / "many" / "seed0" / "thesis.txt").write_text("years of work")
    result = train(tmp_path, tiny, "--seeds", "0,1", "--name", "many")
    assert result.exit_code == 1
    assert "many/seed0 failed: error: " in result.output
    assert "is not a run of Keisei" in result.output
    assert states(tmp_path) == {"many/seed1": RunState.FINISHED}


@pytest.mark.slow
def test_ctrl_c_ends_all_and_the_same_command_continues(tmp_path: Path, tiny: str) -> None:
    command = [sys.executable, "-c", "from keisei.cli.entry import main; main()", "train", tiny, "--root"]
    command += [str(tmp_path), "--seeds", "0,1", "--name", "many", "--at-once", "2"]
    long = [*command, "--steps", "100000000"]
    with subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while [run.status().state for run in list_runs(tmp_path)] != [RunState.RUNNING] * 2:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Continue them: the same command" in output
    assert set(states(tmp_path).values()) == {RunState.INTERRUPTED}
    updates = {run.name: update_of(run) for run in list_runs(tmp_path)}
    again = subprocess.run([*command, "--steps", str(256 * (max(updates.values()) + 2))], check=False,
                           capture_output=True, text=True, timeout=120)  # fmt: skip
    assert again.returncode == 0, again.stdout + again.stderr
    assert set(states(tmp_path).values()) == {RunState.FINISHED}
    assert {run.name: update_of(run) for run in list_runs(tmp_path)} == dict.fromkeys(
        updates, max(updates.values()) + 2
    )


@pytest.mark.slow
def test_what_has_ended_is_not_started_again(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny, "--seeds", "0", "--name", "many")
    (run,) = list_runs(tmp_path)
    before = run.log.read_bytes()
    result = train(tmp_path, tiny, "--seeds", "0", "--name", "many")
    assert result.exit_code == 0
    assert "1 run, 1 of which have ended before" in result.output
    assert run.log.read_bytes() == before
    train(tmp_path, tiny, "--seeds", "0", "--name", "many", "--steps", "1536")
    assert run.config()["run"]["steps"] == 1536
    assert run.log.read_bytes() != before


def test_seeds_of_a_branch(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny, "--name", "first", "--set", "run.checkpoint_every=1")
    result = train(tmp_path, "first@2", "--seeds", "0,1", "--name", "forks")
    assert result.exit_code == 0, result.output
    first, *forks = (
        digest_of(RunDirectory.open(tmp_path / name)) for name in ("first", "forks/seed0", "forks/seed1")
    )
    assert forks[0] == first
    assert forks[1] != first


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--seeds", "0,0"], "each seed is given once"),
        (["--seeds", "a"], "whole numbers with commas"),
        (["--seeds", "-1"], "from 0 to"),
        (["--seeds", "0", "--name", "a/b/c"], "at most 3 parts"),
        (["--seeds", "0", "--name", "../x"], "cannot name a run"),
        (["--seeds", "0", "--set", "run.setps=3"], "did you mean steps"),
        (["--seeds", "0", "--rewind", "3"], "leave out --seeds"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    tmp_path: Path, tiny: str, arguments: list[str], problem: str
) -> None:
    result = train(tmp_path / "runs", tiny, *arguments)
    assert result.exit_code == 2
    assert problem in result.output
    assert not (tmp_path / "runs").exists()


def test_a_run_has_its_seed(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny)
    result = train(tmp_path, "tiny", "--seeds", "0,1")
    assert "is a run and has its seed" in result.output
    result = train(tmp_path, tiny, "--seeds", "0,1", "--name", "tiny")
    assert "a run holds no other runs" in result.output


def test_seeds_are_read() -> None:
    assert parse_seeds("0,1, 7") == (0, 1, 7)
    with pytest.raises(ConfigError):
        parse_seeds("")


@given(st.integers(1, 64), st.integers(1, 100), st.none() | st.integers(1, 100))
def test_cores_are_dealt_out(cores: int, runs: int, at_once: int | None) -> None:
    dealt = shares(range(cores), runs, at_once)
    assert len(dealt) == min(runs, cores if at_once is None else at_once)
    assert all(dealt)
    if len(dealt) <= cores:
        assert sorted(core for share in dealt for core in share) == list(range(cores))
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
