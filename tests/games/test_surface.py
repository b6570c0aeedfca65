"""The public surface of ``keisei``, and that importing it stays light."""

from __future__ import annotations

import subprocess
import sys

import keisei


def test_the_public_names_are_these() -> None:
    """A change here is a change for everybody who uses Keisei: note it in the change log."""
    assert sorted(keisei.__all__) == [
        "DQN",
        "GameSpec",
        "KeiseiError",
        "ObservationSpec",
        "PPO",
        "ParallelEnvironment",
        "Rows",
        "SingleGame",
        "Step",
        "__version__",
        "batched",
        "check_game",
        "load",
        "make_game",
        "register_game",
        "registered_games",
        "train",
        "train_dqn",
    ]
    assert all(hasattr(keisei, name) for name in keisei.__all__)


def test_the_names_are_listed_before_they_are_used() -> None:
    assert set(keisei.__all__) <= set(dir(keisei))


def test_importing_keisei_alone_loads_no_library() -> None:
    code = "import sys, keisei; sys.exit(bool({'numpy', 'pydantic', 'torch', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_keisei_and_making_a_game_loads_nothing_heavy() -> None:
    heavy = ["torch", "pettingzoo", "gymnasium", "pyspiel", "pygame", "ray", "keisei.games.shogi"]
    code = (
        f"import sys, keisei; keisei.make_game('tictactoe'); print([m for m in {heavy} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
