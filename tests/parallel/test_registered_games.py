"""Games that a program registers by name are known to its worker processes too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import keisei
from keisei.errors import ConfigError
from keisei.games.registry import _REGISTERED, portable_name
from keisei.games.tictactoe import TicTacToe

PROGRAM = """
import keisei
from keisei.games.tictactoe import TicTacToe
from keisei.parallel import ParallelManager


class MyGame(TicTacToe):
    name = "my-game"


keisei.register_game("my-game", MyGame)

if __name__ == "__main__":
    with ParallelManager({"game": "my-game"}, None, {"num_workers": 1, "games_per_worker": 2}) as manager:
        print(len(manager.collect_experiences(64)))
"""


def test_a_game_of_the_main_program_is_played_in_processes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 64


def test_names_that_others_cannot_import_are_refused() -> None:
    assert portable_name("shogi") == "shogi"
    assert portable_name("openspiel:tic_tac_toe") == "openspiel:tic_tac_toe"

    class Local(TicTacToe):
        """Lives in a function, where no other process can find it."""

    keisei.register_game("local-game", Local)
    try:
        with pytest.raises(ConfigError, match="worker processes cannot import"):
            portable_name("local-game")
    finally:
        del _REGISTERED["localgame"]
