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
from keisei.cli.views.wording import likelihood
from keisei.games.shogi import csa, kif, read_records
from keisei.runs.directory import RunDirectory


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "no command follows; write usi:COMMAND, such as usi:./engine"),
        ("   ", "no command follows"),
        ('""', 'usi:"": no command follows'),
        ('"x"', "the engine x cannot be started: No such file or directory; give the path of a program"),
        ("'x", "usi:'x: No closing quotation; write usi:COMMAND, with quotes in pairs"),
        ("x\\", "No escaped character"),
        ("folder", "the engine folder cannot be started: No such file"),
        ("./folder", "./folder cannot be started: Permission denied: it is a folder; name the program in it"),
        ("./plain", "Permission denied; if it is a program, let it run: chmod +x ./plain"),
        ("./noise", "Exec format error: it is no program for this machine; a script needs a first line"),
        ("./orphan", "No such file or directory: its first line names a program that is not there"),
        ("./plain/below", "Not a directory; give the path of a program"),
        ("x" * 5000, "File name too long"),
        ("/dev/null", "Permission denied; give the path of a program"),
    ],
)
def test_what_is_no_engine(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, content in {"plain": "x", "noise": "\x01\x02", "orphan": "#!/no/such/shell\n"}.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o644 if name == "plain" else 0o755)
    result = run_match("random", f"usi:{command}", "--games=2")
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def run_match(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(app, ["match", *arguments])


def test_two_players_by_name() -> None:
    result = run_match("search:9", "random", "--game=tictactoe", "--games=20")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("search:9 on tictactoe, seed 0, opening plies 1")
    for line in ("won-drawn-lost", "Elo difference", "95 % interval of it"):
        assert line in result.stdout


@pytest.mark.parametrize(
    ("players", "told"), [(("search:9", "random"), "> 99.9 %"), (("random", "search:9"), "< 0.1 %")]
)
def test_no_match_makes_certain_who_is_better(players: tuple[str, str], told: str) -> None:
    result = run_match(*players, "--game=tictactoe", "--games=60")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("is the better one"))
    assert line.removeprefix("is the better one").strip() == told


@pytest.mark.parametrize(
    ("probability", "digits", "told"),
    [
        (1.0, 1, "> 99.9 %"),
        (0.99951, 1, "> 99.9 %"),
        (0.9994, 1, "99.9 %"),
        (0.5, 1, "50.0 %"),
        (0.0006, 1, "0.1 %"),
        (0.0004, 1, "< 0.1 %"),
        (0.0, 1, "< 0.1 %"),
        (0.996, 0, "> 99 %"),
        (0.99, 0, "99 %"),
    ],
)
def test_a_likelihood_is_never_rounded_to_certainty(probability: float, digits: int, told: str) -> None:
    assert likelihood(probability, digits) == told


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
