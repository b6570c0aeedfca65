"""Workers start quickly also where somebody else had a fork server first."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

from keisei.parallel import ParallelManager
from keisei.parallel.backends.process import PRELOAD

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")


def parent_of(process_id: int | None) -> int:
    return int(Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_workers_come_from_a_fork_server_of_our_own() -> None:
    other = multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(0,))
    other.start()  # the program's shared fork server runs now, without our imports
    other.join()
    settings = {"num_workers": 1, "games": 2, "horizon": 8}
    with ParallelManager({"game": "tictactoe"}, None, settings) as manager:
        handle = manager.workers[0].handle
        assert handle is not None
        server = parent_of(handle.process_id)
    assert server != forkserver._forkserver._forkserver_pid
    # It has imported what is heavy, so that a new worker need not.
    assert "libtorch" in Path(f"/proc/{server}/maps").read_text()


def test_what_a_fork_server_imports_has_the_games_in_it() -> None:
    code = f"import sys, {PRELOAD[0]}; print('keisei.games.shogi.game' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
