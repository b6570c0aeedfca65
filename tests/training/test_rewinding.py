"""Setting a run back: it goes on from there with the same bits, and what came after stays whole beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from training_for_tests import TINY, train
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.config import apply_overrides
from keisei.errors import CheckpointError, RunLockedError, RunSettingsError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.training.presets import run_config
from keisei.training.rewinding import rewind
from keisei.training.trainer import TrainResult

SETTINGS = apply_overrides(TINY, ["run.keep=9", "evaluation={every: 256, opponents: [random]}"])


@pytest.fixture
def whole(tmp_path: Path) -> TrainResult:
    return train(tmp_path, name="first", settings=SETTINGS)


def updates(run: RunDirectory) -> list[int]:
    with RunDatabase(run.database, read_only=True) as database:
        return [point.update for point in database.metric("train/loss")]


def names(run: RunDirectory) -> list[str]:
    return sorted(path.name for path in run.checkpoints.iterdir() if not path.is_symlink())


def test_a_run_is_set_back_and_what_came_after_stays_beside_it(whole: TrainResult) -> None:
    run, before = whole.run, names(whole.run)
    rewound = rewind(run, "2", run_config(run))
    assert names(run) == [f"update-00000000{number}" for number in range(3)]
    assert updates(run) == [1, 2]
    assert run.status().state is RunState.INTERRUPTED
    assert run.status().seconds < rewound.beside.status().seconds
    beside = rewound.beside
    assert (beside.path, names(beside), updates(beside)) == (
        run.path.with_name("first.1"),
        before,
        [1, 2, 3, 4],
    )
    assert beside.id() not in ("", run.id())
    assert {path.name for path in beside.games.iterdir()} == {path.name for path in run.games.iterdir()}
    assert (beside.checkpoints / "latest").readlink() == Path("update-000000004")
    assert f"keisei train {beside.path}" in str(rewound)


def test_it_learns_the_same_bits_again_and_both_can_be_continued(whole: TrainResult, tmp_path: Path) -> None:
    rewind(whole.run, "2", run_config(whole.run))
    assert keisei.train("first", root=tmp_path).digest == whole.digest
    digests = {keisei.train(name, root=tmp_path, steps=1536).digest for name in ("first", "first.1")}
    assert len(digests) == 1


def test_nothing_is_set_back_that_could_not_go_on(whole: TrainResult) -> None:
    run = whole.run
    files = {path: path.stat().st_ino for path in run.path.rglob("*")}
    with pytest.raises(CheckpointError, match="has no checkpoint 9: it has 0, 1, 2, 3, 4"):
        rewind(run, "9", run_config(run))
    wider = run_config(run).model_copy(
        update={"model": run_config(run).model.model_copy(update={"hidden_dim": 32})}
    )
    with pytest.raises(RunSettingsError, match=r"model.hidden_dim"):
        rewind(run, "2", wider)
    with run.lock(), pytest.raises(RunLockedError, match=f"process {os.getpid()}"):
        rewind(run, "2", run_config(run))
    kept = {path: inode for path, inode in files.items() if path.name != "lock"}
    assert {path: path.stat().st_ino for path in run.path.rglob("*") if path.name != "lock"} == kept
    assert [one.name for one in list_runs(run.root)] == ["first"]


def test_links_in_a_run_are_copied_as_links(whole: TrainResult, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("private")
    (whole.run.games / "update-000000001-x.kif").symlink_to(secret)
    os.mkfifo(whole.run.path / "pipe")
    beside = rewind(whole.run, "2", run_config(whole.run)).beside
    assert (beside.games / "update-000000001-x.kif").is_symlink()
    assert not (beside.path / "pipe").exists()


def test_the_command_sets_back_and_goes_on(whole: TrainResult, tmp_path: Path) -> None:
    command = ["train", "first", "--root", str(tmp_path), "--rewind", "3", "--plain"]
    result = CliRunner().invoke(app, [*command, "--set", "learner.learning_rate=1e-3"])
    assert result.exit_code == 0, result.output
    assert f"the run is set back to update 3; as it was, it is now {tmp_path / 'first.1'}" in result.output
    assert updates(RunDirectory.open(tmp_path / "first")) == [1, 2, 3, 4]
    found = CheckpointArchive(tmp_path / "first" / "checkpoints", read_only=True).latest()
    assert found is not None
    assert found.checkpoint.update == 4


def test_a_run_that_is_none_yet_cannot_be_set_back(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", "tictactoe-ppo", "--root", str(tmp_path), "--rewind", "3"])
    assert result.exit_code == 2
    assert "is none yet" in result.output
    assert list_runs(tmp_path) == []
