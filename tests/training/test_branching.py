"""Branches, warm starts and the way back after a divergence, on runs of a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from training_for_tests import TINY, Recorder, train
from typer.testing import CliRunner

import keisei
from keisei.cli.main import app
from keisei.config import apply_overrides
from keisei.errors import (
    CheckpointError,
    ConfigError,
    DivergenceError,
    RunError,
    RunExistsError,
    RunSettingsError,
)
from keisei.learners.ppo_config import PPOConfig
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.runs.origin import read_origin
from keisei.runs.state_tensors import weights_digest
from keisei.training.callbacks import Callback
from keisei.training.events import Started
from keisei.training.trainer import TrainResult

DQN: dict[str, Any] = apply_overrides(
    TINY,
    [
        "learner={regime: dqn, minibatch_size: 64, learning_rate: 3e-3}",
        "learner.replay={capacity: 2048, learning_starts: 256, save_replay: true}",
    ],
)
INDEPENDENT: dict[str, Any] = apply_overrides(
    TINY, ["learner={regime: independent, algorithm: ppo}", "learner.ppo={minibatch_size: 64, epochs: 1}"]
)
LEAGUE: dict[str, Any] = apply_overrides(
    TINY, ["league={window: 2, milestones: 0, save_steps: 256, swap_steps: 128, latest_ratio: 0.5}"]
)
KINDS = {"ppo": TINY, "dqn": DQN, "independent": INDEPENDENT, "league": LEAGUE}


def made(root: Path, settings: Any = TINY, name: str = "first", **options: Any) -> TrainResult:
    settings = apply_overrides(settings, ["run.keep=9"])
    return train(root, name=name, settings=settings, **options)


def branch(root: Path, target: str, name: str, *overrides: str, **options: Any) -> TrainResult:
    return keisei.train(target, name=name, root=root, overrides=overrides, **options)


def weights_at(run: RunDirectory, update: int) -> str:
    checkpoint = load_checkpoint(run.checkpoints / f"update-{update:09d}")
    return weights_digest(checkpoint.tensors["model"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_without_changes_learns_the_same_bits(tmp_path: Path, kind: str) -> None:
    whole = made(tmp_path, KINDS[kind])
    fork = branch(tmp_path, "first@2", "forks/one")
    assert fork.digest == whole.digest
    assert (fork.run.name, fork.counters.update) == ("forks/one", 4)
    for update in (2, 3, 4):
        assert weights_at(fork.run, update) == weights_at(whole.run, update)
    origin = read_origin(fork.run)
    assert origin is not None
    assert (origin.kind, origin.run, origin.update) == ("branch", str(whole.run.path), 2)
    assert (origin.id, origin.weights) == (whole.run.id(), weights_at(whole.run, 2))


def test_slabs_of_a_replay_are_shared_by_hard_links(tmp_path: Path) -> None:
    whole = made(tmp_path, DQN)
    fork = branch(tmp_path, "first@2", "fork")
    theirs, ours = (run.checkpoints / "update-000000002" for run in (whole.run, fork.run))
    names = [path.name for path in theirs.glob("*.piece")]
    assert names
    assert all((ours / name).samefile(theirs / name) for name in names)


def test_the_history_of_a_branch_is_whole(tmp_path: Path) -> None:
    settings = apply_overrides(TINY, ["evaluation={every: 256, games: 2, opponents: [random]}"])
    whole = made(tmp_path, settings)
    fork = branch(tmp_path, "first@2", "fork", "learner.learning_rate=1e-3")
    with (
        RunDatabase(whole.run.database, read_only=True) as first,
        RunDatabase(fork.run.database, read_only=True) as second,
    ):
        before, after = (database.metric("train/loss") for database in (first, second))
        assert before[:2] == after[:2]
        assert [point.update for point in after] == [1, 2, 3, 4]
        assert before[3].value != after[3].value
        (change,) = second.changes()
        assert (change.setting, change.update) == ("learner.learning_rate", 3)
        records = {game.record for game in second.games() if game.update <= 2}
    assert records
    assert all((fork.run.path / record).is_file() for record in records)
    theirs, ours = whole.run.games, fork.run.games
    shared = "update-000000002-random-0.replay.json"
    assert (ours / shared).samefile(theirs / shared)
    own = "update-000000004-random-0.replay.json"
    assert not (ours / own).samefile(theirs / own)


@pytest.mark.parametrize("kind", ["ppo", "dqn", "league"])
def test_a_branch_may_have_another_seed_and_other_tables(tmp_path: Path, kind: str) -> None:
    whole = made(tmp_path, KINDS[kind])
    recorder = Recorder()
    fork = branch(
        tmp_path, "first@2", "fork", "run.seed=7", "parallel.tables=1", "run.steps=1536", callbacks=[recorder]
    )
    assert fork.digest != whole.digest
    assert fork.counters.transitions == 1536
    assert any(
        "all games begin anew" in text and "run.seed is 7 (was 0)" in text for _, text in recorder.notes
    )
    with RunDatabase(fork.run.database, read_only=True) as database:
        assert [row.setting for row in database.changes()] == ["parallel.tables", "run.seed"]
    again = branch(tmp_path, "first@2", "fork", "run.steps=2048")
    assert again.counters.transitions == 2048


def test_what_weights_depend_on_stays(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(RunSettingsError, match=r"model.hidden_dim 16 → 32(.|\n)*--from .*first@2"):
        branch(tmp_path, "first@2", "fork", "model.hidden_dim=32")
    assert [run.name for run in list_runs(tmp_path)] == ["first"]


def test_a_branch_has_the_settings_of_its_checkpoint(tmp_path: Path) -> None:
    """The run has changed since, and a branch goes on as it was then."""
    whole = made(tmp_path)
    keisei.train("first", root=tmp_path, overrides=["learner.learning_rate=1e-4"], steps=1536)
    assert branch(tmp_path, "first@2", "fork").digest == whole.digest


def test_the_same_command_continues_a_branch(tmp_path: Path) -> None:
    whole = made(tmp_path)
    branch(tmp_path, "first@2", "fork", "run.steps=768")
    for path in CheckpointArchive(whole.run.checkpoints).paths()[:3]:  # as a run that goes on does
        path.rename(path.with_name(f"gone-{path.name}"))
    recorder = Recorder()
    fork = branch(tmp_path, "first@2", "fork", "run.steps=1024", callbacks=[recorder])
    assert (recorder.started[0].counters.update, fork.counters.update) == (3, 4)
    with pytest.raises(CheckpointError, match="has no checkpoint 1"):
        branch(tmp_path, "first@1", "fork")


def test_a_branch_needs_a_name_that_is_free(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(RunError, match=r"keisei train first@2 --name first-2.*--rewind 2"):
        keisei.train("first@2", root=tmp_path)
    with pytest.raises(RunExistsError):
        branch(tmp_path, "first@2", "first")
    with pytest.raises(CheckpointError, match="has no checkpoint 7: it has"):
        branch(tmp_path, "first@7", "fork")


class Failing(Callback):
    def attach(self, training: Any) -> None:
        raise OSError("no such device")

    def on_start(self, started: Started) -> None:
        raise AssertionError


def test_a_branch_whose_start_fails_leaves_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(OSError, match="no such device"):
        branch(tmp_path, "first@2", "a/fork", callbacks=[Failing()])
    assert [run.name for run in list_runs(tmp_path)] == ["first"]
    assert not (tmp_path / "a").exists()


def test_a_damaged_history_stays_behind_and_the_branch_says_so(tmp_path: Path) -> None:
    whole = made(tmp_path)
    whole.run.database.write_bytes(b"not a database" * 100)
    recorder = Recorder()
    fork = branch(tmp_path, "first@2", "fork", callbacks=[recorder])
    assert fork.digest == whole.digest
    assert any("its history stays behind" in text for _, text in recorder.notes)


# Warm starts


@pytest.mark.parametrize("kind", ["ppo", "dqn", "independent"])
def test_a_warm_start_takes_the_weights_alone(tmp_path: Path, kind: str) -> None:
    whole = made(tmp_path, KINDS[kind])
    other = apply_overrides(KINDS[kind], ["run.seed=5", "parallel.games=4", "run.keep=9"])
    fresh = keisei.train(other, name="warm", root=tmp_path, weights_from="first@3", steps=256)
    assert weights_at(fresh.run, 0) == weights_at(whole.run, 3)
    assert fresh.counters.transitions == 256
    origin = read_origin(fresh.run)
    assert origin is not None
    assert (origin.kind, origin.update) == ("weights", 3)
    again = keisei.train(other, name="warm", root=tmp_path, weights_from="first@3", steps=512)
    assert again.counters.transitions == 512
    if kind == "dqn":
        first = load_checkpoint(fresh.run.checkpoints / "update-000000000")
        assert weights_digest(first.tensors["target"]) == weights_at(whole.run, 3)


def test_weights_of_another_network_or_game_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    wider = apply_overrides(TINY, ["model.hidden_dim=32"])
    with pytest.raises(ConfigError, match=r"model.hidden_dim: there 16, here 32"):
        keisei.train(wider, name="warm", root=tmp_path, weights_from="first")
    with pytest.raises(ConfigError, match=r"model.outputs: there"):
        keisei.train(DQN, name="warm", root=tmp_path, weights_from="first")
    with pytest.raises(ConfigError, match="was trained on"):
        keisei.train("connect-four-ppo", name="warm", root=tmp_path, weights_from="first")
    assert [run.name for run in list_runs(tmp_path)] == ["first"]


def test_a_run_that_began_otherwise_is_not_continued_by_a_warm_start(tmp_path: Path) -> None:
    made(tmp_path)
    made(tmp_path, name="other")
    with pytest.raises(RunExistsError):
        keisei.train(TINY, name="other", root=tmp_path, weights_from="first")


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kind": "evil"}', '{"kind": "branch", "update": "x"}', "[" * 9999]
)
def test_a_damaged_origin_is_no_origin(tmp_path: Path, content: str) -> None:
    run = RunDirectory.create(tmp_path, "a", {"env": {"game": "tictactoe"}})
    (run.path / "origin.json").write_text(content)
    assert read_origin(run) is None


def test_a_run_tells_where_it_comes_from(tmp_path: Path) -> None:
    whole = made(tmp_path)
    branch(tmp_path, "first@2", "forks/one", "learner.learning_rate=1e-3")
    result = CliRunner().invoke(app, ["runs", "forks/one", "--root", str(tmp_path)])
    lines = result.stdout.splitlines()
    assert f"origin: branched from {whole.run.path}@2 (weights {weights_at(whole.run, 2)[:12]})" in lines
    assert "changed: learner.learning_rate 0.003 → 0.001 from update 3 on" in lines


# Divergence


class Diverges(Callback):
    """Breaks the weights after an update, as steps that are too large do."""

    def __init__(self, update: int) -> None:
        self._update = update

    def on_update(self, update: Any) -> None:
        if update.counters.update == self._update:
            with torch.no_grad():
                next(self.network.parameters()).fill_(float("nan"))


def test_after_a_divergence_the_way_back_is_named(tmp_path: Path) -> None:
    settings = apply_overrides(TINY, ["run.keep=9", "parallel.backend=inline"])
    with pytest.raises(Exception, match="diverged") as caught:
        keisei.train(settings, name="first", root=tmp_path, callbacks=[Diverges(3)])
    (note,) = [note for note in caught.value.__notes__ if "Go back" in note]
    assert note == (
        f"Go back and take smaller steps: keisei train first@2 --name first-1 --root {tmp_path} "
        f"--set learner.learning_rate=0.001"
    )
    assert RunDirectory.open(tmp_path / "first").status().state is RunState.FAILED
    fork = branch(tmp_path, "first@2", "first-1", "learner.learning_rate=0.001")
    assert fork.outcome == "finished"


def test_a_loss_that_is_no_number_is_a_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = made(tmp_path)
    assert result.outcome == "finished"
    monkeypatch.setattr(PPOConfig, "learning_rate_at", lambda *_: 1e38)  # settings allow less
    with pytest.raises(DivergenceError) as caught:
        keisei.train(TINY, name="hot", root=tmp_path, overrides=["learner.epochs=8"])
    assert any("keisei train hot@" in note for note in caught.value.__notes__)
