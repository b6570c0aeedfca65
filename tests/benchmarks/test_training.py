"""``keisei bench training`` compares equal work, and says so where it was not. Tiny runs: figures mean nothing."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from keisei.errors import KeiseiError
from keisei.machine.cores import usable_cores

TINY = (
    "parallel.tables=2",
    "parallel.horizon=8",
    "run.learner_threads=1",
    "learner.epochs=2",
    "learner.minibatch_size=64",
    "parallel.seating.opening_plies=0",
    "parallel.games=8",
)


def measured(as_json: bool) -> str:
    from benchmarks import training

    output = io.StringIO()
    settings = training.Settings(rounds=2, updates=2, presets=("tictactoe-ppo",), overrides=TINY)
    training.run(settings, as_json=as_json, console=Console(file=output))
    return output.getvalue()


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(measured(as_json=True))
    return found


def test_all_contenders_do_the_same_work(report: dict[str, Any]) -> None:
    found = {(result["mode"], result["learner_threads"]) for result in report["results"]}
    assert found == {("serial", 1), ("parallel", 1), ("parallel", usable_cores())}
    for result in report["results"]:
        assert (result["updates"], result["transitions"], result["gradient_steps"]) == (2, 256, 8)
        assert len(result["digests"]) == 1, "both rounds alike"
        assert result["collecting"] + result["learning"] < result["seconds"]
        assert result["learner_cores"] > 0
    serial, parallel = report["results"][:2]
    assert (serial["mode"], parallel["mode"]) == ("serial", "parallel")
    assert serial["digests"] == parallel["digests"]
    assert report["same_weights"] == {"tictactoe-ppo": True}


def test_speedups_are_ratios_of_the_times(report: dict[str, Any]) -> None:
    serial, parallel = report["results"][:2]
    speedups = report["speedups"]["tictactoe-ppo"]
    for what, field in (("in all", "seconds"), ("collecting", "collecting"), ("learning", "learning")):
        assert speedups[f"serial to parallel, {what}"] == pytest.approx(serial[field] / parallel[field])
    cores = usable_cores()
    if cores > 1:
        all_cores = next(result for result in report["results"] if result["learner_threads"] == cores)
        ratio = parallel["learning"] / all_cores["learning"]
        assert speedups[f"learning, 1 thread to {cores}"] == pytest.approx(ratio)


def test_a_table_for_people() -> None:
    text = measured(as_json=False)
    assert "tictactoe-ppo: 2 updates, 256 transitions, 8 gradient steps" in text
    assert "weights: same bits" in text


def test_different_weights_are_an_error(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import training

    results = [training.Result(**result) for result in report["results"]]
    results[1] = replace(results[1], digests=["0" * 64])
    monkeypatch.setattr(training, "_race", lambda *arguments: results)
    with pytest.raises(KeiseiError, match="different weights"):
        measured(as_json=True)
