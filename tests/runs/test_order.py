"""Runs get other names, go into the trash, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from keisei.errors import RunError, RunLockedError
from keisei.runs.directory import RunDirectory
from keisei.runs.order import TRASH, delete_run, empty_trash, in_trash, move_run
from keisei.runs.summaries import find_runs


def make(root: Path, name: str) -> RunDirectory:
    return RunDirectory.create(root, name, {"made": name})


def names(root: Path) -> list[str]:
    return [run.name for run in find_runs(root)]


@pytest.mark.parametrize(
    ("old", "new"), [("a", "b"), ("lr/seed0", "best"), ("a", "x/y/z"), ("lr/s/0", "lr/t/0")]
)
def test_a_run_gets_another_name(tmp_path: Path, old: str, new: str) -> None:
    moved = move_run(make(tmp_path, old), new)
    assert (moved.name, moved.config()) == (new, {"made": old})
    assert names(tmp_path) == [new]
    assert [path.name for path in tmp_path.iterdir()] == [new.split("/")[0]]  # no empty folder is left


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("b", "exists already"),
        ("a", "exists already"),
        ("notes", "exists already"),
        ("b/c", "is a run, and a run holds no other runs"),
        ("a/c", "is a run, and a run holds no other runs"),
        ("../c", "cannot name a run"),
        ("c/d/e/f", "cannot name a run"),
        (".trash", "cannot name a run"),
        ("away/c", "behind a link"),
    ],
)
def test_a_name_that_cannot_be_given(tmp_path: Path, new: str, told: str) -> None:
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    run = make(root, "a")
    make(root, "b")
    (root / "notes").write_text("mine")
    elsewhere.mkdir()
    (root / "away").symlink_to(elsewhere)
    before = sorted(root.rglob("*"))
    with pytest.raises(RunError, match=told):
        move_run(run, new)
    assert sorted(root.rglob("*")) == before
    assert not list(elsewhere.iterdir())


def test_a_run_that_is_trained_stays(tmp_path: Path) -> None:
    run = make(tmp_path, "lr/a")
    with run.lock():
        for act in (lambda: move_run(run, "x/b"), lambda: delete_run(run)):
            with pytest.raises(RunLockedError, match="is being trained"):
                act()
    assert names(tmp_path) == ["lr/a"]
    assert [path.name for path in tmp_path.iterdir()] == ["lr"]


def test_a_deleted_run_can_be_taken_back(tmp_path: Path) -> None:
    run = make(tmp_path, "lr/seed0")
    make(tmp_path, "other")
    place = delete_run(run)
    assert place.parent == tmp_path / TRASH
    assert place.name.startswith("lr--seed0-")
    assert names(tmp_path) == ["other"]
    assert not (tmp_path / "lr").exists()
    place.rename(tmp_path / "again")
    assert RunDirectory.open(tmp_path / "again").config() == {"made": "lr/seed0"}


def test_runs_of_one_name_do_not_meet_in_the_trash(tmp_path: Path) -> None:
    places = {delete_run(make(tmp_path, "a")) for _ in range(3)}
    assert len(places) == 3
    assert {*in_trash(tmp_path)} == places


def test_the_trash_is_emptied_and_links_are_not_followed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "runs", make(tmp_path, "elsewhere")
    delete_run(make(root, "a"))
    (root / "linked").symlink_to(elsewhere.path)
    delete_run(next(run for run in find_runs(root) if run.name == "linked"))
    assert empty_trash(root) == 2
    assert not (root / TRASH).exists()
    assert elsewhere.config() == {"made": "elsewhere"}
    assert empty_trash(root) == 0
    assert not in_trash(root)


def test_a_damaged_run_can_be_thrown_away(tmp_path: Path) -> None:
    run = make(tmp_path, "a")
    (run.path / "config.yaml").unlink()
    (found,) = find_runs(tmp_path)
    delete_run(found)
    assert not find_runs(tmp_path)
