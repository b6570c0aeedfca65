"""``keisei profile`` as a person runs it, on runs of a few updates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import app

SMALL = (
    "--set=parallel.tables=2",
    "--set=parallel.horizon=8",
    "--set=run.learner_threads=1",
    "--set=learner.epochs=4",
    "--set=learner.minibatch_size=64",
    "--set=parallel.num_workers=2",
    "--set=parallel.games=8",
    "--set=parallel.seating.opening_plies=0",
)


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["profile", *arguments])


def figures(*arguments: str) -> dict[str, Any]:
    result = run("tictactoe-ppo", *SMALL, "--json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_both_modes_do_the_same_work(tmp_path: Path) -> None:
    serial, parallel = (figures("--mode", mode, "--steps", "256") for mode in ("serial", "parallel"))
    for name in ("digest", "updates", "transitions", "gradient_steps", "workers", "learner_threads"):
        assert serial[name] == parallel[name], name
    assert (serial["mode"], serial["placement"]) == ("serial", "inline")
    assert (parallel["mode"], parallel["placement"]) == ("parallel", "process")
    assert serial["transitions"] == 256
    seconds = serial["seconds"]
    whole = sum(seconds[name] for name in ("collecting", "preparing", "learning", "publishing", "rest"))
    assert whole == pytest.approx(seconds["in_all"])
    assert serial["transitions_per_second"] == pytest.approx(256 / seconds["in_all"])
    assert set(seconds["in_workers"]) == {"games", "policy", "transport", "waiting"}


def test_a_table_of_where_the_time_goes() -> None:
    result = run("tictactoe-ppo", *SMALL, "--mode", "serial", "--steps", "256")
    assert result.exit_code == 0, result.output
    shares = dict(re.findall(r"^ *(.+?) +[\d.]+ +[\d.,]+ ms +([\d.]+)%$", result.stdout, re.MULTILINE))
    assert list(shares) == [
        "collecting",
        "games",
        "policy",
        "transport",
        "waiting",
        "preparing (advantages, merging)",
        "learning",
        "unpacking positions",
        "forward",
        "losses",
        "backward",
        "optimiser step",
        "reporting",
        "publishing weights",
        "counting games, the loop itself",
        "in all",
    ]
    assert shares["in all"] == "100.0"
    assert "2 updates, 256 transitions, 16 gradient steps in " in result.stdout
    assert "serial, workers: 2 (inline, sync), learner threads: 1" in result.stdout
    assert re.search(r"^Weights: [0-9a-f]{64}$", result.stdout, re.MULTILINE)


def test_asynchronous_workers_come_after_the_rest() -> None:
    result = run("tictactoe-ppo", *SMALL, "--set=parallel.mode=async", "--steps", "256")
    assert result.exit_code == 0, result.output
    assert (
        result.stdout.index("in all")
        < result.stdout.index("each worker meanwhile")
        < result.stdout.index("games ")
    )


def test_four_updates_unless_told_otherwise() -> None:
    assert figures("--mode", "serial")["updates"] == 4
    assert figures("--mode", "serial", "--set=run.steps=128")["updates"] == 1


def test_the_trace_is_one_that_perfetto_opens(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    figures("--mode", "serial", "--steps", "256", "--trace", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    lanes = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert lanes == {"learner", "worker 0", "worker 1"}
    names = {event["name"] for event in events}
    assert {"collect", "prepare", "learn", "publish", "forward", "backward", "table 0", "table 1"} <= names


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    early = run("tictactoe-ppo", *SMALL, "--trace", str(tmp_path / "nowhere" / "trace.json"))
    assert early.exit_code == 2
    assert "there is no folder" in early.stderr
    assert early.stdout == "", "before any work is done"
    late = run("tictactoe-ppo", *SMALL, "--mode", "serial", "--steps", "128", "--trace", str(tmp_path))
    assert late.exit_code == 2
    assert "the trace cannot be written" in late.stderr
    assert "Weights: " in late.stdout, "what was measured is shown all the same"


def test_a_serial_profile_of_asynchronous_training_is_refused() -> None:
    result = run("tictactoe-ppo", "--mode", "serial", "--set=parallel.mode=async")
    assert result.exit_code == 2
    assert "parallel.mode=sync" in result.stderr


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    figures("--mode", "serial", "--steps", "128")
    assert list(tmp_path.iterdir()) == []
