"""What ``module:Class`` names is found in the current directory, and what cannot be imported is explained."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import keisei
from keisei.errors import GameError, UnknownGameError
from keisei.machine import safe_path

GAME = """
from keisei.games.tictactoe import TicTacToe

class Mine(TicTacToe):
    name = "mine"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory that is not on the path yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    keisei.make_game("tictactoe")  # numpy cannot be imported twice
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_current_directory_is_searched(here: Path) -> None:
    (here / "game_right_here.py").write_text(GAME)
    assert keisei.make_game("game_right_here:Mine").spec.name == "mine"
    assert sys.path[0] == str(here), "first, as python -m does"
    keisei.make_game("game_right_here:Mine")
    assert sys.path.count(str(here)) == 1


def test_a_module_finds_its_neighbours_later(here: Path) -> None:
    (here / "neighbour_of_game.py").write_text("LINES = 8\n")
    lazy = (
        GAME + "\n    def reset(self, rng):\n        import neighbour_of_game\n        super().reset(rng)\n"
    )
    (here / "game_with_neighbour.py").write_text(lazy)
    assert keisei.make_game("game_with_neighbour:Mine").batch == 1


def test_python_can_be_told_not_to_look_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -P`` and PYTHONSAFEPATH keep the current directory out."""
    monkeypatch.setattr(safe_path, "sys", SimpleNamespace(flags=SimpleNamespace(safe_path=True)))
    (here / "game_out_of_reach.py").write_text(GAME)
    with pytest.raises(UnknownGameError, match="no module 'game_out_of_reach'"):
        keisei.make_game("game_out_of_reach:Mine")


def test_a_current_directory_that_is_gone_is_no_obstacle(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    (here / "game_elsewhere.py").write_text(GAME)
    monkeypatch.syspath_prepend(str(here))
    assert keisei.make_game("game_elsewhere:Mine").spec.name == "mine"
    with pytest.raises(UnknownGameError, match="no module 'game_that_is_nowhere'"):
        keisei.make_game("game_that_is_nowhere:Mine")


def test_names_of_our_own_leave_the_path_alone(here: Path) -> None:
    before = list(sys.path)
    keisei.make_game("tictactoe")
    keisei.make_game("keisei.games.tictactoe:TicTacToe")
    assert sys.path == before


def test_a_missing_module_is_told_with_the_places_that_were_searched(here: Path) -> None:
    with pytest.raises(
        UnknownGameError, match="in the current directory, on PYTHONPATH and among the installed"
    ):
        keisei.make_game("game_that_is_nowhere:Mine")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Mine(\n", r"'broken_game' cannot be imported: SyntaxError: .*broken_game\.py, line 1"),
        ("x = 1\ny = x / 0\n", r"ZeroDivisionError: division by zero \(broken_game\.py:2\)"),
    ],
)
def test_a_module_that_fails_is_told_in_one_line(here: Path, code: str, message: str) -> None:
    (here / "broken_game.py").write_text(code)
    with pytest.raises(GameError, match=message) as caught:
        keisei.make_game("broken_game:Mine")
    assert "\n" not in str(caught.value)
