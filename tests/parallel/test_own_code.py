"""Worker processes find games and networks in the current directory too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GAME = """
from keisei.games.tictactoe import TicTacToe

class Mine(TicTacToe):
    name = "mine"
"""
NETWORK = """
from torch import nn
from keisei.policies import ActorCritic

class Net(ActorCritic):
    def __init__(self, config, spec):
        super().__init__(spec.observation)
        self.layer = nn.Linear(spec.observation.size, spec.num_actions + 1)

    def heads(self, inputs):
        outputs = self.layer(inputs.flatten(1))
        return outputs[:, 1:], outputs[:, 0]
"""
PROGRAM = """
import sys
from keisei.parallel import ParallelManager

for method in ("forkserver", "spawn"):
    settings = {"num_workers": 1, "tables": 1, "games": 2, "horizon": 4, "start_method": method}
    with ParallelManager({"game": "right_here:Mine"}, {"network": "right_here:Net"}, settings) as manager:
        print(method, len(manager.collect_experiences()))
"""


def test_workers_find_what_the_current_directory_holds(tmp_path: Path) -> None:
    """The program itself lies elsewhere, as the ``keisei`` command does."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "right_here.py").write_text(GAME + NETWORK)
    (there / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(there / "program.py")]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["forkserver", "8", "spawn", "8"]
