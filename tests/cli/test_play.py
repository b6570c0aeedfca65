"""``keisei play`` as a person uses it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.cli.play import Session
from keisei.games.shogi import Board, csa, kif, read_records
from keisei.runs.directory import RunDirectory


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


def run_play(words: str, *arguments: str) -> Result:
    """Each word is a line of the person."""
    lines = "".join(f"{word}\n" for word in words.split())
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["play", *arguments, "--seed=1"], input=lines)


KEISEI = "from keisei.cli.entry import main; main()"


def play_lines(lines: list[str], *arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(
        app, ["play", *arguments, "--seed=1"], input="".join(f"{line}\n" for line in lines)
    )


@pytest.mark.parametrize(
    ("game", "words"),
    [("tictactoe", " ".join("123456789" * 2)), ("connect-four", " ".join("1234567" * 40))],
)
def test_a_game_to_its_end(game: str, words: str) -> None:
    """Every square and every column is tried in turn, so the game ends in any case."""
    result = run_play(words, "random", "--game", game, "--seat=1")
    assert result.exit_code == 0, result.output
    assert f"You play {game} in seat 1 of 2 against random." in result.stdout
    last = result.stdout.strip().splitlines()[-1]
    assert last.startswith(("You win after", "You lose after", "It is a draw after"))


def test_a_perfect_opponent_is_not_beaten() -> None:
    result = run_play(" ".join("123456789" * 2), "search:9", "--game", "tictactoe", "--seat=2")
    assert "You win" not in result.stdout
    assert "search:9 plays" in result.stdout


def test_ludo_is_played_with_tokens_and_dice() -> None:
    result = run_play("moves resign", "heuristic", "--game", "ludo", "--seat=1")
    assert result.exit_code == 0, result.output
    assert "0-6" in result.stdout
    assert "You lose" in result.stdout


def test_a_run_is_an_opponent_and_gives_hints(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> None:
    make_run(tmp_path, "mine")
    result = run_play("hint 5 undo moves resign", "mine@10", "--root", str(tmp_path), "--seat=1")
    assert result.exit_code == 0, result.output
    assert "against mine@10" in result.stdout
    assert "; it expects you to score " in result.stdout
    assert "1 2 3 4 5 6 7 8 9\n" in result.stdout  # all of them, after the undo
    assert "You lose after 0 plies: resignation." in result.stdout


def test_moves_are_typed_as_people_write_them() -> None:
    """Each of the first lines is one move of white, whose board is seen from below."""
    lines = ["8c8d", "P-34", "９四歩", "4A3B", "resign"]
    result = play_lines(lines, "greedy", "--seat=2")
    assert result.exit_code == 0, result.output
    assert "is no" not in result.stdout
    assert "You lose after 9 plies: resignation." in result.stdout
    boards = result.stdout.split("White is below, v marks Black; White (後手) to move")
    assert len(boards) == 6
    assert "|香 桂 銀 金 玉 金 銀 桂 香|一 a".replace("|香", "| 香") in boards[0]
    assert "(such as 9c9d, P-94 or 9四歩): " in boards[1]


def test_what_may_be_several_moves_is_asked_for() -> None:
    result = play_lines(["G-58", "G49-58", "resign"], "greedy", "--seat=1")
    assert (
        "'G-58' may be any of these; write the one that you mean as it stands here:\n"
        "  4i5h  G49-58  5八金(49)\n"
        "  6i5h  G69-58  5八金(69)\n"
    ) in result.stdout
    assert "You lose after 2 plies" in result.stdout


def test_what_is_no_move_is_told_the_rule() -> None:
    result = play_lines(["7g7e", "hello", "resign"], "greedy", "--seat=1")
    assert "'7g7e' is not possible: a pawn on 7g does not reach 7e; write `moves` to see" in result.stdout
    assert "'hello' is no move; moves are written like 7g7f, P-76" in result.stdout
    assert "after 0 plies" in result.stdout


def test_the_prompt_shows_a_move_of_this_position() -> None:
    result = play_lines(["", "1", "resign"], "search:1", "--game=tictactoe", "--seat=1")
    prompts = [line for line in result.stdout.splitlines() if line.startswith("your move")]
    assert prompts[0].count("your move (such as 1): ") == 2  # nothing is said about an empty line
    assert "your move (such as 2): " in prompts[1]


@pytest.mark.parametrize(
    ("view", "below"),
    [([], "White is below, v marks Black"), (["--view=1"], "Black is below, v marks White")],
)
def test_a_side_is_below(view: list[str], below: str) -> None:
    assert below in play_lines(["resign"], "random", "--seat=2", *view).stdout


def test_adapted_games_are_seen_and_named() -> None:
    result = play_lines(["moves", "PASS", "resign"], "random", "--game=openspiel:kuhn_poker", "--seat=1")
    assert result.exit_code == 0, result.output
    assert "Pass Bet\n" in result.stdout
    assert "'PASS' is" not in result.stdout
    assert "define __str__" not in result.stdout


def test_long_lists_of_moves_are_wrapped_between_words() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(
        app, ["play", "random", "--seat=1"], input="moves\nresign\n"
    )
    listed = result.stdout.partition("1六歩): ")[2].partition("your move")[0]
    assert sorted(listed.split()) == sorted(map(str, Board().legal_moves))
    assert len(listed.splitlines()) == 2


@pytest.fixture
def playing(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command in a process of its own, which reads lines from a pipe."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", KEISEI, "play", *arguments, "--seed=1"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("suffix", [".kif", ".csa", ".sfen"])
def test_ctrl_c_keeps_the_game(
    playing: Callable[..., subprocess.Popen[str]], tmp_path: Path, suffix: str
) -> None:
    process = playing("greedy", "--seat=1", "--record", f"mine{suffix}")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("7g7f\n")
    process.stdin.flush()
    boards = (line for line in process.stdout if line.startswith("Black is below"))
    assert next(boards) == next(boards)  # the second is drawn after both moves
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors == ""
    assert "The game is interrupted after 2 plies.\n" in rest
    assert f"Record: mine{suffix}" in rest
    (found,) = read_records(tmp_path / f"mine{suffix}")
    first, _ = found.moves
    assert first.usi() == "7g7f"
    if suffix != ".sfen":
        assert found.outcome is not None
        assert (found.outcome.termination.value, found.outcome.winner) == ("interrupted", None)


def test_a_game_is_kept_when_the_opponent_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.cli.play.Session._decide", fails_after(1))
    result = run_play("7g7f", "random", "--seat=1", "--record", str(tmp_path / "mine.sfen"))
    assert isinstance(result.exception, ZeroDivisionError)
    assert (tmp_path / "mine.sfen").read_text() == "startpos moves 1g1f\n"


def fails_after(plies: int) -> Callable[[Session], int]:
    """Plays the first legal action, until an error comes."""

    def decide(session: Session) -> int:
        if len(session._actions) == plies:
            raise ZeroDivisionError
        return int(np.flatnonzero(session._situation.legal[0])[0])

    return decide


def test_words_that_are_no_moves() -> None:
    result = run_play("help undo 77 hint", "greedy", "--game", "tictactoe", "--seat=1")
    assert "take your last move back" in result.stdout
    assert "there is no move of yours to take back" in result.stdout
    assert "'77' is no legal move here; write `moves` to see them all" in result.stdout
    assert "You lose" in result.stdout  # the end of the input is the end of the game


@pytest.mark.parametrize("suffix", [".kif", ".csa", ".sfen"])
def test_a_game_of_shogi_is_recorded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"game{suffix}"
    result = run_play("7g7f resign", "random", "--seat=1", "--record", str(path))
    assert result.exit_code == 0, result.output
    assert f"Record: {path}" in result.stdout
    if suffix == ".sfen":
        assert path.read_text().startswith("startpos moves 7g7f ")
        return
    record = (csa if suffix == ".csa" else kif).load(path)
    assert record.names == ("You", "random")
    assert record.moves[0].usi() == "7g7f"
    assert record.outcome is not None
    assert (record.outcome.termination.value, record.outcome.winner) == ("resignation", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no run is named 'nobody'"),
        (["heuristic", "--game", "tictactoe"], "tictactoe has no heuristic of its own"),
        (["random", "--game", "tictactoe", "--seat=3"], "tictactoe has the seats 1 to 2"),
        (["random", "--game", "tictactoe", "--view=3"], "--view 3: tictactoe has the seats 1 to 2"),
        (["random", "--game", "pettingzoo:hanabi_v5"], "needs the package"),
        (["random", "--game", "tictactoe", "--record", "x.kif"], "tictactoe has no format at all"),
        (["random", "--record", "x.pgn"], "shogi has .kif, .kifu, .csa, .sfen"),
        (["random", "--record", "no-such-folder/x.kif"], "there is no folder"),
    ],
)
def test_what_cannot_be_played(arguments: list[str], message: str) -> None:
    result = run_play("", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
