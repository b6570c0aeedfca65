"""The benchmark of a league runs, and compares like with like."""

from __future__ import annotations

import io
import json

from rich.console import Console

from benchmarks import league


def test_a_small_measurement() -> None:
    settings = league.Settings(rounds=1, seconds=0.01, preset="tictactoe-ppo", members=3, swap_steps=1000)
    console = Console(file=io.StringIO())
    league.run(settings, as_json=True, console=console)
    assert isinstance(console.file, io.StringIO)
    report = json.loads(console.file.getvalue())
    assert report["members"] == 3
    assert report["ratio"] == report["league"] / report["self_play"] > 0, "of one pair of turns"
    assert report["members_at_once"] > 0
