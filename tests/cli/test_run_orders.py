"""``keisei runs`` keeps order: labels, other names, the trash; and its table fits where it is shown."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.labels import Labels, read_labels
from keisei.runs.rows import EvaluationRow
from keisei.runs.summaries import find_runs

CONFIG: dict[str, Any] = {"env": {"game": "tictactoe"}}


def order(root: Path, *arguments: str, given: str = "") -> Result:
    runner = CliRunner(env={"COLUMNS": "300"})
    return runner.invoke(app, ["runs", "--root", str(root), *arguments], input=given)


def done(root: Path, *arguments: str, given: str = "") -> str:
    result = order(root, *arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(root: Path, *arguments: str) -> str:
    result = order(root, *arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


def listed(root: Path, *arguments: str) -> list[str]:
    return [run["name"] for run in json.loads(done(root, "--json", *arguments))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b", "lr/seed0", "lr/seed1"):
        RunDirectory.create(tmp_path, name, CONFIG)
    return tmp_path


def test_runs_are_tagged_and_found_by_their_tags(root: Path) -> None:
    assert done(root, "a", "lr", "--tag", "strong", "--tag", "#old").splitlines() == [
        f"{name}: #old #strong" for name in ("a", "lr/seed0", "lr/seed1")
    ]
    done(root, "lr/seed1", "--untag", "old")
    assert listed(root, "--tag", "strong") == ["a", "lr/seed0", "lr/seed1"]
    assert listed(root, "--tag", "strong", "--tag", "#old") == ["a", "lr/seed0"]
    assert listed(root, "--tag", "none") == []
    assert f"No run in {root} has none." in done(root, "--tag", "none")
    assert "#old #strong" in done(root)


def test_a_note_is_shown_with_its_run(root: Path) -> None:
    done(root, "a", "--note", "the one for the paper")
    assert "note: the one for the paper" in done(root, "a")
    assert "paper" not in done(root)
    done(root, "a", "--note", "")
    assert "note" not in done(root, "a")


def test_archived_runs_are_left_out_of_the_list(root: Path) -> None:
    done(root, "a", "b", "--archive")
    assert listed(root) == ["lr/seed0", "lr/seed1"]
    assert "2 archived runs not shown; --archived lists them too." in done(root)
    assert listed(root, "--archived") == ["a", "b", "lr/seed0", "lr/seed1"]
    assert listed(root, "a") == ["a"]
    done(root, "a", "--unarchive")
    assert listed(root) == ["a", "lr/seed0", "lr/seed1"]
    with RunDirectory(root / "b").lock():  # who trains it wants to see it
        assert "b" in listed(root)


def test_a_run_that_is_trained_may_only_be_labelled(root: Path) -> None:
    run = RunDirectory(root / "a")
    with run.lock():
        for arguments in (["--rename", "c"], ["--delete", "--yes"], ["--archive"]):
            assert "is being trained by process" in refused(root, "a", *arguments)
        done(root, "a", "--tag", "promising", "--note", "look at this one")
    assert read_labels(run) == Labels(("promising",), "look at this one")
    assert listed(root)[0] == "a"


def test_a_run_is_renamed(root: Path) -> None:
    assert f"lr/seed0 is best now: {root / 'best'}" in done(root, "lr/seed0", "--rename", "best")
    assert listed(root) == ["a", "b", "best", "lr/seed1"]
    assert "--rename gives one run another name, got 2 runs" in refused(root, "a", "b", "--rename", "c")
    assert "exists already" in refused(root, "a", "--rename", "b")


def test_deleting_asks_and_can_be_taken_back(root: Path) -> None:
    assert "Nothing is deleted." in done(root, "a", "--delete", given="n\n")
    assert "nobody has answered, so a stays; --yes" in refused(root, "a", "--delete")
    told = done(root, "a", "lr", "--delete", given="y\n")
    assert "Move 3 runs to the trash (a, lr/seed0, lr/seed1)? [y/N]" in told
    assert listed(root) == ["b"]
    assert not (root / "lr").exists()
    for way_back in re.findall(r"Take it back: (.*)", told):
        subprocess.run(way_back, shell=True, check=True)
    assert listed(root) == ["a", "b", "lr/seed0", "lr/seed1"]


def test_the_trash_is_emptied(root: Path) -> None:
    told = done(root, "a", "--delete", "--yes")
    command = shlex.split(told.rpartition("for good: keisei runs ")[2].strip())
    assert "The trash stays." in CliRunner().invoke(app, ["runs", *command], input="n\n").stdout
    assert len(list((root / ".trash").iterdir())) == 1
    assert "1 run of" in done(root, "--empty-trash", "--yes")
    assert not (root / ".trash").exists()
    assert "There is no trash" in done(root, "--empty-trash")


def test_orders_that_make_no_sense(root: Path) -> None:
    assert "name the runs to change" in refused(root, "--archive")
    assert "name the runs to change" in refused(root, "--delete", "--yes")
    assert "stands alone" in refused(root, "a", "--delete", "--yes", "--tag", "x")
    assert "stands alone" in refused(root, "a", "--empty-trash")
    assert "'two words' is no tag" in refused(root, "a", "--tag", "two words")
    assert "no run is named 'l'" in refused(root, "l", "--delete", "--yes")
    assert len(find_runs(root)) == 4


# The table.

LONG = "a-run-with-a-long-name/of-two-parts"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    root = tmp_path / "many"
    for number, name in enumerate(("first", LONG, "third")):
        run = RunDirectory.create(root, name, {"env": {"game": "a-game-of-some-length"}})
        run.record_state(
            RunState.FAILED if number else RunState.FINISHED, "the disk is on fire " * number * 20
        )
        with RunDatabase(run.database) as database:
            database.add_metrics(9, 123_456_789, {"time/time_elapsed": 9e5}, at=1.7e9)
            for opponent in ("random", "greedy", "heuristic"):
                row = EvaluationRow(9, 9, 0.0, "update-9", opponent, 1, 0, 1, 0.5, 0.0, 1.0)
                database.add_evaluation(row)
    done(root, "first", "--tag", "strong", "--tag", "baseline")
    return root


COMMAND = [sys.executable, "-c", "from keisei.cli.entry import main; main()", "runs", "--root"]
SCORES = "greedy 50%, heuristic 50%, random 50%"
CELLS = {"123,456,789", "10 day 10 h", "a-game-of-some-length", SCORES, "#baseline #strong"}


def on_terminal(root: Path, columns: int) -> list[str]:
    """The lines of the command on a terminal of this width."""
    ours, theirs = pty.openpty()
    subprocess.run(
        [*COMMAND, str(root)],
        stdout=theirs,
        env=os.environ | {"COLUMNS": str(columns), "TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    content = b""
    with suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 65536):
            content += piece
    os.close(ours)
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", content.decode()).splitlines()]


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 200])
def test_nothing_is_cut_at_any_width(many: Path, columns: int) -> None:
    lines = on_terminal(many, columns)
    end = lines.index("") if "" in lines else len(lines)
    table, below = lines[:end], "\n".join(lines[end:])
    assert all(len(line) <= columns for line in table), table
    assert not any("…" in line for line in table)
    assert sum(line.endswith("failed") or "  failed " in line for line in table) == 2
    numbers = re.findall(r"[\d,]+,\d*", "\n".join(table))
    assert numbers == (["123,456,789"] * 3 if columns >= 60 else [])
    assert (f"first: {SCORES}" in below) == ("Last scores" not in table[0])
    assert ("first: #baseline #strong" in below) == ("Tags" not in table[0])
    if columns == 200:
        assert set(re.split(r" {2,}", table[3])) >= CELLS


def test_a_pipe_gets_all_texts(many: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    found = subprocess.run([*COMMAND, str(many)], capture_output=True, text=True, env=environment, check=True)
    head, *lines = found.stdout.splitlines()
    assert re.split(r" {2,}", head.rstrip()) == [
        "Run", "Game", "State", "Transitions", "Trained", "Seen", "Tags", "Last scores",
    ]  # fmt: skip
    (first,) = [line for line in lines if line.startswith("first ")]
    assert set(re.split(r" {2,}", first.rstrip())) >= CELLS
    assert f"third: {'the disk is on fire ' * 40}".rstrip() in lines
