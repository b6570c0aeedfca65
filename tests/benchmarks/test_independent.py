"""The benchmark of independent agents runs, and compares equal work."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from benchmarks import independent

SMALL = independent.Settings(
    agents=(2, 3), rounds=1, seconds=0.01, decisions=1, least_epochs=2, max_turns=4, train_steps=2, batch_size=4,
    hidden_dim=8, trainings=("sequential", "stacked", "threads"),
)  # fmt: skip


def test_a_small_measurement() -> None:
    console = Console(file=io.StringIO())
    independent.run(SMALL, as_json=True, console=console)
    assert isinstance(console.file, io.StringIO)
    report = json.loads(console.file.getvalue())
    for result in report["results"]:
        assert {*result["gradient_steps"].values()} == {2 * 2 * result["agents"]}
        assert set(result["experiment"]) == set(independent.EXPERIMENTS)
        assert all(ratio > 0 for ratio in result["ratios"].values())
        assert "experiment, asynchronous" in result["ratios"]


def test_tables_are_printed() -> None:
    console = Console(file=io.StringIO(), width=200)
    independent.run(replace(SMALL, agents=(2,)), as_json=False, console=console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "training: gradient steps/s" in text
    assert "cost of a turn" in text
