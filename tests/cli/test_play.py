"""``keisei play`` as a person uses it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.games.shogi import csa, kif
from keisei.runs.directory import RunDirectory


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    made: Callable[..., RunDirectory] = import_module("runs_for_tests").make_run
    return made


def run_play(words: str, *arguments: str) -> Result:
    """Each word is a line of the person."""
    lines = "".join(f"{word}\n" for word in words.split())
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["play", *arguments, "--seed=1"], input=lines)


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
        (["random", "--game", "tictactoe", "--record", "x.kif"], "tictactoe has no format at all"),
        (["random", "--record", "x.pgn"], "shogi has .kif, .kifu, .csa, .sfen"),
        (["random", "--record", "no-such-folder/x.kif"], "there is no folder"),
    ],
)
def test_what_cannot_be_played(arguments: list[str], message: str) -> None:
    result = run_play("", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
