"""``keisei match`` as a person runs it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.games.shogi import csa, kif, read_records
from keisei.runs.directory import RunDirectory


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


def run_match(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(app, ["match", *arguments])


def test_two_players_by_name() -> None:
    result = run_match("search:9", "random", "--game=tictactoe", "--games=20")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("search:9 on tictactoe, seed 0, opening plies 1")
    for line in ("won-drawn-lost", "Elo difference", "95 % interval of it"):
        assert line in result.stdout


def test_runs_bring_their_game(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> None:
    make_run(tmp_path, "mine", game="connect-four")
    result = run_match("random", "mine@10", "--games=4", "--root", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["player"], report["game"]) == ("random", "connect-four")
    assert report["matches"][0]["opponent"] == "mine@10"
    assert report["matches"][0]["elo"].keys() == {"value", "low", "high"}


@pytest.mark.parametrize("form", [None, "csa", "sfen"])
def test_games_are_recorded_in_the_format_that_is_asked_for(tmp_path: Path, form: str | None) -> None:
    folder = tmp_path / "games"
    asked = [] if form is None else [f"--format={form}"]
    result = run_match("greedy", "random", "--games=2", "--records", str(folder), *asked)
    assert result.exit_code == 0, result.output
    suffix = form or "kif"
    assert sorted(path.name for path in folder.iterdir()) == [f"1-random-000{n}.{suffix}" for n in (1, 2)]
    for path in folder.iterdir():
        (record,) = read_records(path)
        assert len(record.moves) > 10
        if form != "sfen":
            assert {*record.names} == {"greedy", "random"}


def test_an_engine_of_another_program(tmp_path: Path) -> None:
    engine = import_module("engines_for_tests").keisei_usi(tmp_path)
    folder = tmp_path / "games"
    result = run_match(
        f"usi:{shlex.quote(str(engine))}",
        "random",
        "--games=2",
        "--byoyomi=60",
        "--first-option=Run=greedy",
        "--records",
        str(folder),
        "--format=csa",
        "--json",
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)["matches"][0]
    assert report["games"] == 2
    assert "crashed" not in report["endings"]
    assert len([csa.load(path) for path in folder.iterdir()]) == 2


def test_a_crash_loses_and_is_told(tmp_path: Path) -> None:
    engine = import_module("engines_for_tests").bad_engine(tmp_path, "crashes", "sys.exit(1)")
    result = run_match(
        "random", f"usi:{engine}", "--games=2", "--byoyomi=60", "--records", str(tmp_path / "games")
    )
    assert result.exit_code == 0, result.output
    assert "ended by crashed" in result.stdout
    assert "2-0-0" in result.stdout
    assert len([kif.load(path) for path in (tmp_path / "games").iterdir()]) == 2


def test_a_crash_before_the_first_move_has_no_record(tmp_path: Path) -> None:
    engine = import_module("engines_for_tests").bad_engine(tmp_path, "crashes", "sys.exit(1)")
    arguments = ("--games=2", "--byoyomi=60", "--opening-plies=0", "--records", str(tmp_path / "games"))
    result = run_match("random", f"usi:{engine}", *arguments)
    assert result.exit_code == 0, result.output
    assert len([*(tmp_path / "games").iterdir()]) == 1  # of the game that random began


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["random", "nobody"], "no run is named 'nobody'"),
        (["random", "greedy", "--games=3"], "games come in pairs"),
        (["random", "greedy", "--first-option=A=1"], "are for engines (usi:COMMAND)"),
        (["random", "usi:x", "--first-option=A=1"], "random is no engine and has no options"),
        (["random", "usi:x", "--second-option=A"], "an option of an engine is written NAME=VALUE"),
        (["random", "usi:x", "--byoyomi=0"], "a game with an engine needs time"),
        (
            ["random", "usi:x", "--byoyomi=2", "--increment=1"],
            "--byoyomi 2 and --increment 1: a clock has one",
        ),
        (["random", "usi:no-such-engine"], "the engine no-such-engine cannot be started"),
        (["random", "usi:x", "--game=ludo"], "engines that speak USI play Shogi"),
        (["random", "greedy", "--records=new", "--format=pgn"], "shogi has the formats kif, kifu, csa, sfen"),
        (["random", "greedy", "--game=ludo", "--records=new"], "ludo has no format for records"),
    ],
)
def test_what_cannot_be_played(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_match(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
