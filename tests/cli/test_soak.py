"""``keisei soak`` as a person runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app

COIN = '''
"""Tic-tac-toe in which a coin that nobody knows of decides who begins."""
import random

from keisei.games.tictactoe import TicTacToe


class Coin(TicTacToe):
    name = "coin"

    def reset(self, rng):
        super().reset(rng)
        self.to_move = random.SystemRandom().randrange(2)
'''
SMALL = ["soak", "--game", "connect-four", "--tables", "3", "--workers", "2", "--games", "4"]


def test_a_short_soak_reports_zeros() -> None:
    result = CliRunner().invoke(app, [*SMALL, "--duration", "3", "--kill-every", "0.2", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert (report["lost"], report["duplicated"], report["corrupted"]) == (0, 0, 0)
    assert report["left"] == {"processes": 0, "shared_blocks": 0, "open_files": 0}
    assert report["kills"] + report["stops"] >= report["heirs"] >= 0
    assert report["kills"] + report["stops"] > 0
    assert report["transitions_checked"] > 0


def test_slabs_that_differ_are_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_coin.py").write_text(COIN)
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ["soak", "--game", "loaded_coin:Coin", "--workers", "1", "--games", "4", "--duration", "1"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*arguments, "--mode", "sync"])
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    figures = {line[:20].strip(): line[20:].strip() for line in lines if line[20:].strip()}
    assert figures["lost"] == figures["duplicated"] == "0"
    assert int(figures["corrupted"]) == int(figures["slabs checked"]) > 0
    assert "is not what it is undisturbed" in result.stdout
    assert lines[-1] == "FAILED"


def children_of(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_ctrl_c_ends_it_with_the_report_so_far() -> None:
    program = "from keisei.cli.main import app; app()"
    soak = subprocess.Popen(
        [sys.executable, "-c", program, *SMALL, "--duration", "600", "--mode", "async", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        # Once it has started a process of its own, it is past its imports and listens.
        while soak.poll() is None and not children_of(soak.pid):
            time.sleep(0.05)
        soak.send_signal(signal.SIGINT)
        output, _ = soak.communicate(timeout=60)
    finally:
        soak.kill()
    report = json.loads(output)
    assert soak.returncode == 0
    assert report["interrupted"] is True
    assert report["ok"] is True
