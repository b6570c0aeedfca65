"""A run directory is made as a whole, never overwritten silently, and trained by one process at a time."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from keisei.config import Settings
from keisei.errors import ForeignFileError, RunError, RunExistsError, RunLockedError
from keisei.runs import directory, durable_files
from keisei.runs.directory import NewRun, RunDirectory, RunState, config_digest, list_runs, run_at

CONFIG: dict[str, Any] = {
    "game": {"name": "shogi"},
    "learner": {"learning_rate": 3e-05, "clip": None},
    "text": "将棋",
}


class Example(Settings):
    rate: float = 3e-05
    path: Path = Path("a/b")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "runs", "first", CONFIG)


def test_a_new_run_has_its_places_and_its_configuration(run: RunDirectory) -> None:
    assert sorted(os.listdir(run.path)) == [
        "checkpoints",
        "config.yaml",
        "games",
        "id",
        "lock",
        "tensorboard",
    ]
    assert RunDirectory.open(run.path).config() == CONFIG
    assert run.status().state is RunState.CREATED
    assert os.listdir(run.path.parent) == ["first"]


def test_settings_are_written_as_they_read(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "typed", Example())
    assert Example.model_validate(run.config()) == Example()
    assert config_digest(Example()) == config_digest({"path": "a/b", "rate": 3e-05})
    assert config_digest(Example()) != config_digest(Example(rate=1.0))


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../a",
        "/a",
        "a/",
        "a//b",
        "a/../b",
        "a/.b",
        "a/b/c/d",
        "-x",
        ".h",
        "a b",
        "a\n",
        "x" * 101,
        "é",
    ],
)
def test_bad_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="cannot name a run"):
        RunDirectory.create(tmp_path / "runs", name, CONFIG)
    assert not (tmp_path / "runs").exists()


def test_runs_lie_in_folders_and_have_their_names_below_the_root(tmp_path: Path) -> None:
    for name in ("b", "lr/seed0", "lr/seed1", "lr/deep/seed0"):
        made = RunDirectory.create(tmp_path, name, CONFIG)
        assert (made.name, made.path, made.root) == (name, tmp_path / name, tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "b" / "inner").mkdir()
    (tmp_path / "b" / "inner" / "config.yaml").write_text("{}")
    assert [run.name for run in list_runs(tmp_path)] == ["b", "lr/deep/seed0", "lr/seed0", "lr/seed1"]
    assert [run.name for run in list_runs(tmp_path / "lr", parts=1)] == ["seed0", "seed1"]


def test_a_run_is_found_by_its_name_and_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "runs"
    RunDirectory.create(root, "lr/seed0", CONFIG)
    monkeypatch.chdir(tmp_path)
    for text in ("lr/seed0", "runs/lr/seed0", "./runs/lr/seed0", str(root / "lr" / "seed0")):
        found = run_at(text, Path("runs"))
        assert found is not None
        assert (found.name, found.root) == ("lr/seed0", Path("runs"))
    elsewhere = run_at(str(root / "lr" / "seed0"), Path("others"))
    assert elsewhere is not None
    assert (elsewhere.name, elsewhere.root) == ("seed0", root / "lr")
    assert run_at("lr", Path("runs")) is run_at("", Path("runs")) is None


def test_no_run_lies_in_another_and_no_run_replaces_a_folder_of_runs(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "lr/seed0", CONFIG)
    with pytest.raises(RunError, match="a run holds no other runs"):
        RunDirectory.create(tmp_path, "lr/seed0/more", CONFIG)
    with pytest.raises(RunError, match=r"is a folder of runs \(seed0 …\)"):
        RunDirectory.create(tmp_path, "lr", CONFIG, "overwrite")
    assert [run.name for run in list_runs(tmp_path)] == ["lr/seed0"]


def test_a_run_that_is_undone_leaves_no_empty_folders(tmp_path: Path) -> None:
    new = NewRun.create(tmp_path, "a/b/c", CONFIG)
    RunDirectory.create(tmp_path, "a/d", CONFIG)
    new.undo()
    assert [path.name for path in tmp_path.rglob("*") if path.is_dir() and path.parent.name == "a"] == ["d"]
    with pytest.raises(RunError, match="YAML"):
        RunDirectory.create(tmp_path, "x/y", {"a": (1, 2)})
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("config", [{"a": (1, 2)}, {"a": object()}])
def test_a_configuration_that_yaml_would_change_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(RunError, match="YAML"):
        RunDirectory.create(tmp_path, "a", config)
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_taken_names_the_choices(run: RunDirectory) -> None:
    (run.games / "game.kif").write_text("kept")
    with pytest.raises(RunExistsError) as caught:
        RunDirectory.create(run.path.parent, "first", {"other": 1})
    for choice in (f"keisei train {run.path}", "--restart", "--overwrite", "--name"):
        assert choice in str(caught.value)
    assert run.config() == CONFIG
    assert (run.games / "game.kif").read_text() == "kept"


def test_restart_moves_the_old_run_aside(run: RunDirectory) -> None:
    root = run.path.parent
    for number in (1, 2):
        (run.games / "game.kif").write_text(f"run {number}")
        again = RunDirectory.create(root, "first", {"number": number}, existing="restart")
        assert again.config() == {"number": number}
        assert os.listdir(again.games) == []
    assert [old.name for old in list_runs(root)] == ["first", "first.1", "first.2"]
    assert (root / "first.1" / "games" / "game.kif").read_text() == "run 1"
    assert RunDirectory.open(root / "first.1").status().state is RunState.CREATED
    RunDirectory.open(root / "first.1").lock().release()


def test_overwrite_deletes_the_old_run(run: RunDirectory) -> None:
    (run.games / "game.kif").write_text("gone")
    again = RunDirectory.create(run.path.parent, "first", {"new": 1}, existing="overwrite")
    assert os.listdir(again.games) == []
    assert os.listdir(run.path.parent) == ["first"]


@pytest.mark.parametrize("existing", ["refuse", "restart", "overwrite"])
def test_what_is_no_run_is_left_alone(tmp_path: Path, existing: Any) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    with pytest.raises(RunError, match="is not a run of Keisei"):
        RunDirectory.create(tmp_path, "thesis", CONFIG, existing)
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert RunDirectory.create(tmp_path, "empty", CONFIG, existing).config() == CONFIG


@pytest.mark.parametrize("existing", ["restart", "overwrite"])
def test_a_run_that_is_being_trained_is_not_moved(run: RunDirectory, existing: Any) -> None:
    with run.lock(), pytest.raises(RunLockedError, match=f"process {os.getpid()}"):
        RunDirectory.create(run.path.parent, "first", CONFIG, existing)
    assert os.listdir(run.path.parent) == ["first"]


@pytest.mark.parametrize("existing", ["restart", "overwrite"])
def test_a_new_run_can_be_undone_until_it_is_kept(run: RunDirectory, existing: Any) -> None:
    (run.games / "game.kif").write_text("kept")
    new = NewRun.create(run.path.parent, "first", {"new": 1}, existing)
    assert new.run.config() == {"new": 1}
    new.undo()
    assert os.listdir(run.path.parent) == ["first"]
    assert run.config() == CONFIG
    assert (run.games / "game.kif").read_text() == "kept"
    new = NewRun.create(run.path.parent, "first", {"new": 1}, existing)
    new.keep()
    assert sorted(os.listdir(run.path.parent)) == ["first"] + ["first.1"] * (existing == "restart")


@pytest.mark.parametrize("existing", ["restart", "overwrite"])
def test_where_a_run_cannot_be_made_the_old_one_stays(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, existing: Any
) -> None:
    root = run.path.parent

    def full(path: Path, *content: bytes) -> None:
        if path == root or content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for broken in ("write_new", "sync_directory"):
        monkeypatch.setattr(directory, broken, full)
        with pytest.raises(RunError, match=r"cannot make run .*: No space left on device"):
            RunDirectory.create(run.path.parent, "first", {"new": 1}, existing)
        monkeypatch.undo()
        assert os.listdir(run.path.parent) == ["first"]
        assert run.config() == CONFIG


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"file is a file, and runs need a folder; choose another --root"):
        RunDirectory.create(tmp_path / "file", "first", CONFIG)


def test_what_is_no_run_cannot_be_opened(run: RunDirectory) -> None:
    with pytest.raises(RunError, match=r"second is not a run: .* the runs in .* are first"):
        RunDirectory.open(run.path.parent / "second")


def test_a_changed_configuration_keeps_the_old_one(run: RunDirectory) -> None:
    run.change_config(CONFIG)
    assert not (run.path / "config.1.yaml").exists()
    run.change_config({"a": 1})
    run.change_config({"a": 2})
    assert run.config() == {"a": 2}
    assert (run.path / "config.2.yaml").read_text() == "a: 1\n"


@pytest.mark.parametrize("text", ["a: [", "just a text", "\x00"])
def test_a_damaged_configuration_is_named(run: RunDirectory, text: str) -> None:
    (run.path / "config.yaml").write_text(text)
    with pytest.raises(RunError, match=r"config\.yaml"):
        run.config()


# How a run stands


def test_states_are_recorded_and_listed(run: RunDirectory) -> None:
    RunDirectory.create(run.path.parent, "second", CONFIG).record_state(RunState.FAILED, "the loss is nan")
    run.record_state(RunState.FINISHED)
    (run.path.parent / "stray").mkdir()
    states = {one.name: one.status() for one in list_runs(run.path.parent)}
    assert {name: status.state for name, status in states.items()} == {
        "first": RunState.FINISHED,
        "second": RunState.FAILED,
    }
    assert states["second"].detail == "the loss is nan"
    assert list_runs(run.path / "nowhere") == []


def test_a_state_that_cannot_be_read_does_not_hide_the_other_runs(run: RunDirectory) -> None:
    (run.path / "state.json").write_text('{"state": "dreaming"}')
    status = list_runs(run.path.parent)[0].status()
    assert status.state is RunState.UNREADABLE
    assert "state.json" in status.detail


def test_the_clock_of_a_run_is_part_of_its_state(run: RunDirectory) -> None:
    assert run.status().seconds == 0
    run.record_state(RunState.RUNNING, seconds=0.1 + 0.2)
    with run.lock():
        assert run.status().seconds == 0.1 + 0.2
    assert run.status().seconds == 0.1 + 0.2
    assert run.status().state is RunState.INTERRUPTED


def test_a_state_is_written_over_where_there_is_no_room_for_a_second_file(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run.record_state(RunState.RUNNING, "x" * 500)
    monkeypatch.setattr(durable_files, "write_new", full)
    run.record_state(RunState.FAILED, "the disk is full")
    assert run.status().state is RunState.FAILED
    assert run.status().detail == "the disk is full"
    (run.path / "state.json").unlink()
    with pytest.raises(RunError, match=r"cannot write to .*/first: .*make room on the disk"):
        run.record_state(RunState.FAILED)


def test_running_means_that_somebody_is_there(run: RunDirectory) -> None:
    with run.lock():
        run.record_state(RunState.RUNNING)
        assert run.status().state is RunState.RUNNING
        assert str(os.getpid()) in run.status().detail
    assert run.status().state is RunState.INTERRUPTED


@pytest.mark.parametrize(
    "name", ["checkpoints", "tensorboard", "games", "league", "control", "lock", "log.jsonl"]
)
def test_nobody_writes_through_a_link_of_a_run(run: RunDirectory, tmp_path: Path, name: str) -> None:
    """A trainer that resumes a run of a stranger would empty, fill or delete what the link leads to."""
    mine = tmp_path / "mine"
    mine.mkdir() if "." not in name and name != "lock" else mine.write_text("mine")
    if (run.path / name).is_dir():
        (run.path / name).rmdir()
    else:
        (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(mine)
    with pytest.raises(ForeignFileError, match=name):
        run.lock()
    assert mine.is_dir() or mine.read_text() == "mine"


def test_settings_have_no_aliases(tmp_path: Path) -> None:
    """A part that is there twice is written twice, so that it can be read again."""
    shared = {"games": 2}
    run = RunDirectory.create(tmp_path, "a", {"x": shared, "y": shared})
    assert run.config() == {"x": shared, "y": shared}
    (run.path / "config.yaml").write_text("x: &one {games: 2}\ny: *one\n")
    with pytest.raises(RunError, match="alias"):
        run.config()


def test_an_owner_of_wrong_types_is_another_process(run: RunDirectory) -> None:
    with run.lock():
        owner = json.loads((run.path / "lock").read_text())
        (run.path / "lock").write_text(json.dumps({**owner, "since": [1]}))
        status = run.status()
    assert (status.state, status.detail) == (RunState.RUNNING, "another process")
