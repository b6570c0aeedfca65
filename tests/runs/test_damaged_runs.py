"""One damaged run never costs the others: lists, charts and the dashboard show the rest, and say what is wrong."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from damaged_for_tests import FILES, damages, with_numbers
from runs_for_tests import make_run
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.summaries import RunSummary, find_runs, summarise

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from web_for_tests import serving

DAMAGES = damages()
WHOLE = ("a-whole", "z-whole")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All damaged runs in one folder, between two whole ones."""
    root = tmp_path_factory.mktemp("root") / "runs"
    model = make_run(tmp_path_factory.mktemp("model"), "model", updates=()).path
    with_numbers(model / "run.db")
    RunDirectory(model).record_state(RunState.FINISHED, "finished")
    (model / "live.json").write_text('{"time": 1.0}')
    (model / "lock").write_text("")
    for name in (*WHOLE, *map(name_of, range(len(DAMAGES)))):
        shutil.copytree(model, root / name)
    for number, (file, _, damage) in enumerate(DAMAGES):
        damage(root / name_of(number) / file)
    (root / os.fsdecode(b"m-\xff\xfe")).mkdir()  # bytes that are no letters
    shutil.copy(model / "config.yaml", root / os.fsdecode(b"m-\xff\xfe"))
    (root / "n-link").symlink_to("n-link")
    return root


def name_of(number: int) -> str:
    file, kind, _ = DAMAGES[number]
    return f"m-{number:03d}-{file}-{kind.replace(' ', '-')}"


@pytest.fixture(scope="module")
def summaries(root: Path) -> dict[str, RunSummary]:
    return {summary.name: summary for summary in map(summarise, find_runs(root))}


def test_there_are_many_damages() -> None:
    assert len(DAMAGES) >= 68
    assert {file for file, *_ in DAMAGES} == set(FILES)


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=name_of)
def test_a_damaged_run_says_what_is_wrong(summaries: dict[str, RunSummary], number: int) -> None:
    file, kind, _ = DAMAGES[number]
    summary = summaries[name_of(number)]
    if file == "live.json":  # a view that nobody needs
        assert summary.detail == "finished"
    elif file == "lock" and kind in _NO_LOCK:
        assert summary.state is RunState.FINISHED  # cut short by a power cut: nobody holds the run
    elif file == "config.yaml" and kind in _NO_OWNER:
        assert summary.game is None  # a table, in which nobody finds a game
    else:
        assert file in summary.detail
        assert summary.detail != "finished"
    assert "SECRET" not in repr(summary)


_NO_OWNER = ("numbers that are none", "wrong types", "half of a letter")
_NO_LOCK = ("empty", "null", "a list", "binary", "dashes", "a bomb", "nested deeply", *_NO_OWNER)


def is_whole(row: Any) -> bool:
    return (row["state"], row["updates"], row["scores"]) == ("finished", 2, {"random": 0.85})


def test_the_list_has_all_runs(root: Path, summaries: dict[str, RunSummary]) -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["runs", "--root", str(root), "--json"])
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout, parse_constant=refused)}
    assert rows.keys() == summaries.keys()
    assert all(is_whole(rows[name]) for name in WHOLE)
    assert "m-\\udcff\\udcfe" in rows
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["runs", "--root", str(root)])
    assert shown.exit_code == 0, shown.output
    assert all(name in shown.stdout for name in rows)


def refused(text: str) -> float:
    raise AssertionError(f"{text} is no JSON")


@pytest.fixture(scope="module")
def dashboard(root: Path) -> Iterator[Any]:
    with serving(root) as served:
        yield served


def test_the_dashboard_has_all_runs(dashboard: Any, summaries: dict[str, RunSummary]) -> None:
    answer = dashboard.get("/api/runs")
    assert answer.status == 200
    rows = {row["name"]: row for row in json.loads(answer.content, parse_constant=refused)["runs"]}
    assert rows.keys() == summaries.keys()
    assert all(is_whole(rows[name]) for name in WHOLE)
    assert b"SECRET" not in answer.content
    metrics = dashboard.get("/metrics")
    assert metrics.status == 200
    assert 'keisei_updates_total{run="z-whole"} 2.0' in metrics.text


def test_the_page_of_a_damaged_run_is_shown(dashboard: Any) -> None:
    for number, (file, kind, _) in enumerate(DAMAGES):
        answer = dashboard.get(f"/api/runs/{name_of(number).replace(' ', '%20')}")
        if file == "config.yaml" and kind in ("a fifo", "a folder", "a link to itself"):
            assert answer.status == 404  # without settings it is no run
            continue
        assert answer.status == 200, answer.text
        page = json.loads(answer.content, parse_constant=refused)
        assert page["summary"]["name"] == name_of(number)
        assert "SECRET" not in answer.text


def test_charts_leave_damaged_runs_out(root: Path, tmp_path: Path) -> None:
    bad = [
        name_of(n)
        for n, (file, kind, _) in enumerate(DAMAGES)
        if kind in ("a trigger", "a text for a number")
    ]
    out = tmp_path / "chart.svg"
    command = ["plot", WHOLE[0], *bad, WHOLE[1], "--root", str(root), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert out.stat().st_size > 1000
    for name in bad:
        assert f"{name} is left out: " in result.output.replace("\n", "")
    alone = CliRunner().invoke(app, ["plot", bad[0], "--root", str(root), "--out", str(out)])
    assert alone.exit_code == 2
    assert "Traceback" not in alone.output


def test_an_error_of_keisei_itself_costs_one_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [make_run(tmp_path, name, updates=()) for name in ("a", "b")]
    status = RunDirectory.status

    def failing(run: RunDirectory) -> Any:
        if run.name == "a":
            raise MemoryError("too much")
        return status(run)

    monkeypatch.setattr(RunDirectory, "status", failing)
    first, second = map(summarise, runs)
    assert (first.state, second.state) == (RunState.UNREADABLE, RunState.CREATED)
    assert first.detail.startswith("MemoryError: too much")


def test_last_times_have_dates(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", updates=())
    with_numbers(run.database)
    (run.path / "state.json").write_text(
        '{"state": "finished", "since": "0001-01-01T00:00:00", "detail": ""}'
    )
    summary = summarise(run)
    assert summary.last_seen is not None
    assert math.isclose(summary.last_seen, 1.7e9)
