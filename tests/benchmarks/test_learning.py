"""The commands ``keisei bench learning…`` train, play and count. Runs take a second, so figures mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app

CONFIG = """
env: {game: tictactoe}
model: {network: mlp, hidden_dim: 16}
parallel: {num_workers: 1, tables: 1, games: 16, horizon: 16}
learner: {minibatch_size: 128}
run: {steps: 1024}
evaluation: {games: 4}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return str(path)


def bench(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bench", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_preset_is_trained_and_held_against_its_goals() -> None:
    (run,) = bench("learning", "--preset", "tictactoe-ppo", "--minutes", "0.01", "--games", "20")["runs"]
    assert (run["name"], run["seed"]) == ("tictactoe-ppo", 0)
    assert run["transitions"] >= 8192
    random, perfect = run["matches"]
    assert (random["opponent"], random["reached"]) == ("random", None)
    assert (perfect["opponent"], perfect["goal"]) == ("search:9", "no loss")
    assert perfect["reached"] is (perfect["losses"] == 0)
    for match in (random, perfect):
        assert match["wins"] + match["draws"] + match["losses"] == 20
        assert match["low"] <= match["score"] <= match["high"]


def test_seeds_learn_something_else_and_their_runs_can_be_kept(config: str, tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    first, second = bench(
        "learning", "--preset", config, "--seeds", "2", "--games", "40", "--keep", str(keep)
    )["runs"]
    assert [first["seed"], second["seed"]] == [0, 1]
    assert first["matches"] != second["matches"]
    assert sorted(run.name for run in keep.iterdir() if not run.name.startswith(".")) == ["small", "small.1"]


def test_goals() -> None:
    from benchmarks.learning import Goal, _verdict

    assert _verdict(Goal("random", 0.98), losses=3, score=0.98) == ("98%", True)
    assert _verdict(Goal("random", 0.98), losses=0, score=0.97) == ("98%", False)
    assert _verdict(Goal("search:9", unbeaten=True), losses=1, score=0.9) == ("no loss", False)
    assert _verdict(Goal("search:2"), losses=1, score=0.1) == ("", None)


def test_both_loops_learn_from_as_many_transitions(config: str) -> None:
    runs = bench("learning-modes", "--preset", config, "--steps", "1000", "--games", "4")["runs"]
    assert [(run["name"], run["transitions"]) for run in runs] == [("sync", 1024), ("async", 1024)]


def test_networks_learn_for_the_same_time(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import learning

    names = ("mlp 256", "slim 16x2")
    monkeypatch.setattr(learning, "NETWORKS", {name: learning.NETWORKS[name] for name in names})
    runs = bench("learning-networks", "--preset", config, "--minutes", "0.01", "--games", "4")["runs"]
    assert [run["name"] for run in runs] == list(names)
    assert [match["opponent"] for match in runs[0]["matches"]] == ["random", "greedy"]


def test_what_networks_take(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import networks

    monkeypatch.setattr(networks, "SECONDS", 0.001)
    report = bench("networks", "--game", "tictactoe", "--rounds", "1")
    times = report["microseconds_per_row"]
    assert set(times) == set(report["parameters"]) >= {"mlp 256", "gather 256", "slim 32x2", "residual 64x2"}
    for tasks in times.values():
        assert {"play 64", "play 256", "play 256, legal only", "learn, 1 thread"} <= set(tasks)
        assert all(time > 0 for time in tasks.values())
