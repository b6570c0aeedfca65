"""``keisei runs`` as a person runs it, on runs in every state."""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.rows import ChangeRow, EvaluationRow

CONFIG: dict[str, Any] = {"env": {"game": "tictactoe"}, "run": {"seed": 3}}


def list_runs(root: Path, *arguments: str, columns: int = 160) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["runs", "--root", str(root), *arguments])


def report_of(root: Path) -> dict[str, Any]:
    result = list_runs(root, "--json")
    assert result.exit_code == 0, result.output
    return {run["name"]: run for run in json.loads(result.stdout)}


def evaluation(update: int, opponent: str, score: float) -> EvaluationRow:
    return EvaluationRow(
        update, update * 512, 0.0, f"update-{update:09d}", opponent, 1, 0, 1, score, 0.0, 1.0
    )


def write_update(database: RunDatabase, update: int) -> None:
    database.add_metrics(
        update, update * 512, {"time/time_elapsed": update * 60.0, "train/loss": 0.5}, at=1.7e9 + update
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """One that has come to update 20."""
    run = RunDirectory.create(tmp_path / "runs", "a", CONFIG)
    with RunDatabase(run.database) as database:
        for update in (10, 20):
            write_update(database, update)
        database.add_evaluation(evaluation(10, "random", 0.7))
        database.add_evaluation(evaluation(20, "random", 0.9))
        database.add_evaluation(evaluation(10, "greedy", 0.25))
        database.add_evaluation(evaluation(15, "update-000000010", 0.6))
        database.add_evaluation(evaluation(20, "update-000000015", 0.5))
    return run


def test_a_run_in_one_line(run: RunDirectory) -> None:
    run.record_state(RunState.FINISHED, "finished")
    result = list_runs(run.path.parent)
    assert result.exit_code == 0, result.output
    head, row = (re.split(r" {2,}", line.rstrip()) for line in result.stdout.splitlines())
    assert head == ["Run", "Game", "State", "Transitions", "Trained", "Seen", "Last scores"]
    assert row[:5] == ["a", "tictactoe", "finished", "10,240", "20 min"]
    assert row[5].endswith(" ago")
    assert row[6] == "greedy 25%, random 90%, best 50%"


def test_scores_stand_below_the_table_where_it_is_narrow(run: RunDirectory) -> None:
    lines = list_runs(run.path.parent, columns=80).stdout.splitlines()
    assert lines[1].startswith("a    tictactoe  created")
    assert lines[2:] == ["", "a: greedy 25%, random 90%, best 50%"]
    assert all(len(line) <= 80 for line in lines)


def test_the_same_as_json(run: RunDirectory) -> None:
    report = report_of(run.path.parent)["a"]
    assert report["state"] == "created"
    assert (report["game"], report["updates"], report["transitions"]) == ("tictactoe", 20, 10240)
    assert report["training_seconds"] == 1200
    assert report["scores"] == {"random": 0.9, "greedy": 0.25, "best": 0.5}
    assert report["path"] == str(run.path)
    assert report["last_seen"] == "2023-11-14T22:13:40+00:00"


def test_one_run_with_the_settings_that_changed_on_the_way(run: RunDirectory) -> None:
    RunDirectory.create(run.path.parent, "b", CONFIG)
    with RunDatabase(run.database) as database:
        database.add_changes([ChangeRow(12, 0.0, "learner.learning_rate", "0.0003", "0.0005")])
    change = "learner.learning_rate 0.0003 → 0.0005 from update 12 on"
    for name in ("a", str(run.path)):
        lines = list_runs(run.path.parent, name).stdout.splitlines()
        assert lines[1].startswith("a  ")
        assert lines[2:] == [f"changed: {change}"]
    assert change not in list_runs(run.path.parent).stdout
    assert {name: report["changes"] for name, report in report_of(run.path.parent).items()} == {
        "a": [change], "b": [],
    }  # fmt: skip
    refused = list_runs(run.path.parent, "c")
    assert refused.exit_code == 2
    assert f"no run is named 'c'. Runs in {run.path.parent}: a, b" in refused.stderr


def test_every_state(tmp_path: Path) -> None:
    for state in (RunState.CREATED, RunState.FINISHED, RunState.FAILED, RunState.RUNNING):
        run = RunDirectory.create(tmp_path, state.value, CONFIG)
        if state is not RunState.CREATED:
            run.record_state(state, "the disk is on fire" if state is RunState.FAILED else "")
    locked = RunDirectory.create(tmp_path, "locked", CONFIG)
    with locked.lock():
        report = report_of(tmp_path)
    assert {name: run["state"] for name, run in report.items()} == {
        "created": "created",
        "finished": "finished",
        "failed": "failed",
        "running": "interrupted",  # nobody holds its lock any more
        "locked": "running",
    }
    assert report["failed"]["detail"] == "the disk is on fire"
    assert "process" in report["locked"]["detail"]
    assert report["created"]["updates"] is None


def test_damaged_runs_are_listed_with_the_reason(run: RunDirectory) -> None:
    root = run.path.parent
    damaged = {
        name: RunDirectory.create(root, name, CONFIG)
        for name in ("yaml", "list", "binary", "no-config", "state", "database", "foreign", "directory")
    }
    (damaged["yaml"].path / "config.yaml").write_text("env: {game: [")
    (damaged["list"].path / "config.yaml").write_text("- 1")
    (damaged["binary"].path / "config.yaml").write_bytes(b"\xff\xfe\x00")
    (damaged["no-config"].path / "config.yaml").unlink()
    (damaged["state"].path / "state.json").write_text('{"state": "asleep"}')
    damaged["database"].database.write_bytes(b"no database at all" * 100)
    damaged["foreign"].database.touch()
    damaged["directory"].database.mkdir()
    report = report_of(root)
    assert report.keys() == {"a", *damaged}
    unreadable = {name for name, summary in report.items() if summary["state"] == "unreadable"}
    assert unreadable == {"yaml", "list", "binary", "no-config", "state"}
    reasons = {name: report[name]["detail"] for name in damaged}
    assert all(str(damaged[name].path) in reason for name, reason in reasons.items())
    assert "config.yaml cannot be read" in reasons["no-config"]
    assert "It is damaged" in reasons["database"]
    assert "still empty" in reasons["foreign"]
    assert report["a"]["updates"] == 20
    shown = list_runs(root)
    assert shown.exit_code == 0
    assert all(f"\n{name}: " in shown.stdout for name in damaged)
    assert "Traceback" not in shown.output


def test_a_failure_takes_one_line(run: RunDirectory) -> None:
    traceback = (
        "NoWorkersError: all are gone\nTraceback (most recent call last):\n" + '  File "x.py", line 1\n' * 50
    )
    run.record_state(RunState.FAILED, traceback)
    (line,) = [line for line in list_runs(run.path.parent).stdout.splitlines() if line.startswith("a: ")]
    assert line.startswith("a: NoWorkersError: all are gone Traceback")
    assert line.endswith(" …")
    assert len(line) < 320
    assert "x.py" not in list_runs(run.path.parent).stdout.replace(line, "")
    assert report_of(run.path.parent)["a"]["detail"] == traceback


def test_what_is_not_known_is_left_open(run: RunDirectory) -> None:
    (run.path / "state.json").write_text('{"state": "finished", "since": "yesterday", "detail": ""}')
    with RunDatabase(run.database) as database:
        database.add_metrics(30, 512, {"time/time_elapsed": math.nan}, at=1.7e9)
    report = report_of(run.path.parent)["a"]
    assert (report["state"], report["updates"], report["training_seconds"]) == ("finished", 30, None)
    assert list_runs(run.path.parent).exit_code == 0


@pytest.mark.parametrize("config", [{}, {"env": 3}, {"env": {"game": None}}])
def test_a_configuration_without_a_game(tmp_path: Path, config: dict[str, Any]) -> None:
    RunDirectory.create(tmp_path, "a", config)
    assert report_of(tmp_path)["a"]["game"] is None


def test_it_reads_while_a_trainer_writes(run: RunDirectory) -> None:
    with run.lock(), RunDatabase(run.database) as database, database.batch():
        write_update(database, 21)
        report = report_of(run.path.parent)["a"]
    assert (report["state"], report["updates"]) == ("running", 20)  # an update counts when it is whole
    assert report_of(run.path.parent)["a"]["updates"] == 21


def test_no_runs(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for root in (tmp_path, tmp_path / "nowhere"):
        result = list_runs(root)
        assert result.exit_code == 0
        assert result.stdout == f"There are no runs in {root}.\n"
        assert report_of(root) == {}


def test_it_starts_without_torch(run: RunDirectory) -> None:
    code = (
        "import sys; from keisei.cli.main import app\n"
        "try: app()\n"
        "finally: sys.stderr.write(str('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", code, "runs", "--root", str(run.path.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "tictactoe" in done.stdout
    assert done.stderr == "False"


def test_all_numbers_of_a_run_go_into_a_file(run: RunDirectory, tmp_path: Path) -> None:
    with RunDatabase(run.database) as database:
        database.add_metrics(21, 21 * 512, {"train/loss": math.nan, "agent-1/return": 2.5}, at=1.7e9)
        updates = [point.update for point in database.metric("time/time_elapsed")]
    path = tmp_path / "numbers.csv"
    result = list_runs(run.path.parent, "a", "--csv", str(path))
    assert result.exit_code == 0, result.output
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["update"]) for row in rows] == [*updates, 21]
    assert (rows[0]["train/loss"], rows[0]["agent-1/return"]) == ("0.5", "")
    last = rows[-1]
    assert (last["step"], last["train/loss"], last["agent-1/return"]) == ("10752", "nan", "2.5")
    assert f"{len(rows)} updates of a" in result.output


def test_a_file_that_cannot_be_written_is_told(run: RunDirectory, tmp_path: Path) -> None:
    result = list_runs(run.path.parent, "a", "--csv", str(tmp_path / "nowhere" / "numbers.csv"))
    assert result.exit_code == 2
    assert "cannot write to" in result.stderr
    result = list_runs(run.path.parent, "--csv", str(tmp_path / "numbers.csv"))
    assert result.exit_code == 2
    assert "name it: keisei runs NAME --csv FILE" in result.stderr
