"""``keisei tournament`` and ``keisei ladder`` as a person runs them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import EvaluationRow

RUNGS = ["update-000000010", "update-000000020", "update-000000030", "update-000000040"]


@pytest.fixture
def make_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDirectory]:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "training")
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


@pytest.fixture
def run(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> RunDirectory:
    return make_run(tmp_path, "a", (10, 20, 30, 40), best=20)


def invoke(run: RunDirectory, *arguments: str) -> Result:
    root = ["--root", str(run.path.parent)]
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, [*arguments, "--games", "10", *root])


def report_of(run: RunDirectory, *arguments: str) -> Any:
    result = invoke(run, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def met(report: Any) -> list[tuple[str, str]]:
    return [(pairing["first"], pairing["second"]) for pairing in report["pairings"]]


def test_a_run_alone_is_all_its_checkpoints_and_random(run: RunDirectory) -> None:
    report = report_of(run, "tournament", "a")
    assert met(report) == list(combinations(["random", *RUNGS], 2))
    assert report["anchor"] == "random"
    elos = [rating["elo"] for rating in report["ratings"]]
    assert elos == sorted(elos, reverse=True)
    assert {rating["games"] for rating in report["ratings"]} == {40}


def test_players_of_all_kinds(run: RunDirectory, make_run: Callable[..., RunDirectory]) -> None:
    make_run(run.path.parent, "b", (7,))
    report = report_of(run, "tournament", "search:9", "a", "a@latest", "b")
    assert {rating["player"] for rating in report["ratings"]} == {"search:9", "a@20", "a@40", "b@7"}
    assert report["ratings"][0]["player"] == report["anchor"] == "search:9"
    assert len(report["pairings"]) == 6


def test_the_table_of_a_tournament(run: RunDirectory) -> None:
    result = invoke(run, "tournament", "random", "a@10", "search:9")
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["Player", "Elo", "95", "%", "interval", "Games", "Score"]
    assert rows[0].split()[0] == "search:9"
    assert {row.split()[0] for row in rows} == {"search:9", "a@10", "random"}
    anchor = next(row for row in rows if row.startswith("random"))
    assert anchor.split()[1:4] == ["+0", "fixed", "20"]


def test_three_seats_have_tournaments_and_ladders(
    run: RunDirectory, make_run: Callable[..., RunDirectory]
) -> None:
    make_run(run.path.parent, "relay", (10, 20), game="games_for_tests:Relay")
    for report in (report_of(run, "tournament", "relay"), report_of(run, "ladder", "relay")):
        for pairing in report["pairings"]:
            assert pairing["comparisons_per_game"] == 2
            assert (
                pairing["wins"] + pairing["draws"] + pairing["losses"] == 2 * 24
            )  # 12 games with each alone
        assert {rating["games"] % 24 for rating in report["ratings"]} == {0}
    told = invoke(run, "tournament", "relay", "greedy")
    assert told.exit_code == 2
    assert "greedy plays games in turns" in told.stderr


@pytest.mark.parametrize(
    ("back", "pairs"),
    [(1, [(1, 0), (2, 1), (3, 2)]), (2, [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2)])],
)
def test_on_a_ladder_each_one_meets_those_before(
    run: RunDirectory, back: int, pairs: list[tuple[int, int]]
) -> None:
    report = report_of(run, "ladder", "a", "--back", str(back))
    assert met(report) == [(RUNGS[newer], RUNGS[older]) for newer, older in pairs]
    assert [rating["player"] for rating in report["ratings"]] == RUNGS
    assert report["anchor"] == RUNGS[0]
    for rating in report["ratings"][1:]:
        assert rating["low"] < rating["elo"] < rating["high"]


def test_a_ladder_writes_nothing_unless_it_is_asked_to(run: RunDirectory) -> None:
    before = sorted(os.walk(run.path))
    assert invoke(run, "ladder", "a").exit_code == 0
    assert sorted(os.walk(run.path)) == before


def test_ratings_are_saved_beside_those_of_the_trainer(run: RunDirectory) -> None:
    with RunDatabase(run.database) as database:
        database.add_evaluation(EvaluationRow(10, 512, 0.0, RUNGS[0], "random", 9, 0, 1, 0.9, 0.6, 1.0))
    result = invoke(run, "ladder", "a", "--save", "--json")
    assert result.exit_code == 0, result.output
    assert "Saved 5 ratings" in result.stderr
    printed = {rating["player"]: rating["elo"] for rating in json.loads(result.stdout)["ratings"]}
    with RunDatabase(run.database, read_only=True) as database:
        saved = {row.player: row.rating for row in database.ratings()}
        assert {row.update for row in database.ratings()} == {40}
    assert saved.keys() == {"random", *RUNGS}
    assert saved["random"] == 0 < saved[RUNGS[0]]
    for (
        rung
    ) in RUNGS:  # the same ladder, on the scale of the run; one player more moves the mean of all a little
        assert saved[rung] - saved[RUNGS[0]] == pytest.approx(printed[rung], rel=0.03)
    assert run.status().state.value == "created"  # the lock is free again


def test_a_run_that_is_being_trained_is_not_written_to(run: RunDirectory) -> None:
    with run.lock():
        refused = invoke(run, "ladder", "a", "--save")
        allowed = invoke(run, "ladder", "a")
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert "is being trained by process" in refused.stderr
    assert "leave out --save" in refused.stderr
    assert allowed.exit_code == 0, allowed.output
    assert not run.database.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tournament", "random", "greedy"], "the game is that of the first run"),
        (["tournament", "a@10"], "names one checkpoint"),
        (["tournament", "a", "a@best"], "'a@20' is there more than once"),
        (["tournament", "a", "four"], "trained on connect"),
        (["tournament", "empty"], "two players or more; got 1"),
        (["ladder", "four"], "a ladder has two checkpoints or more, and"),
        (["ladder", "a@10"], "names one checkpoint"),
        (["ladder", "aa"], "did you mean 'a'"),
    ],
)
def test_errors_are_one_message(
    run: RunDirectory, make_run: Callable[..., RunDirectory], arguments: list[str], message: str
) -> None:
    make_run(run.path.parent, "four", (1,), game="connect-four")
    make_run(run.path.parent, "empty", ())
    result = invoke(run, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_damaged_run_does_not_cost_the_others(
    run: RunDirectory, make_run: Callable[..., RunDirectory]
) -> None:
    make_run(run.path.parent, "b", (7,))
    make_run(run.path.parent, "c", (7,))
    (run.path.parent / "b" / "config.yaml").write_text("[")
    (weights,) = (run.path.parent / "c" / "checkpoints").glob("update-*/model.safetensors")
    weights.write_bytes(b"")
    result = invoke(run, "tournament", "b", "a", "c", "random", "--json")
    assert result.exit_code == 0, result.output
    assert {rating["player"] for rating in json.loads(result.stdout)["ratings"]} == {"a@20", "random"}
    told = result.stderr.replace("\n", "")
    assert "b is left out: " in told
    assert "c is left out: " in told
    assert invoke(run, "tournament", "a", "nobody", "random").exit_code == 2
    assert invoke(run, "tournament", "b", "random").exit_code == 2
