"""The benchmark of a cluster runs, and its forecast is of what it measured."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from benchmarks import cluster


@pytest.mark.slow
def test_a_small_measurement() -> None:
    settings = cluster.Settings(rounds=1, seconds=0.5, preset="tictactoe-ppo", actors=(1,), nodes=(1,))
    console = Console(file=io.StringIO())
    cluster.run(settings, as_json=True, console=console)
    assert isinstance(console.file, io.StringIO)
    report = json.loads(console.file.getvalue())
    assert report["ratio"] == report["ray"] / report["process"] > 0, "of one pair of turns"
    assert report["slab_bytes"] > 0
    assert report["slab_milliseconds"] > 0
    assert [each["actors"] for each in report["idle"]] == [1]
    (one,) = report["scaling"]
    assert one["measured"] == pytest.approx(one["forecast"], rel=0.5)
