"""Options of commands that are numbers: each has both bounds, and what is outside is refused with the range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from keisei.cli.main import COMMANDS, _imported, app


def numeric_parameters() -> Iterator[tuple[str, Any]]:
    for name in sorted(COMMANDS):
        if name != "usi":  # it reads its own words
            yield from _numeric(name, _imported(name))


def _numeric(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _numeric(f"{path} {name}", inner)
    for parameter in command.params:
        annotation = getattr(parameter, "type_descriptor", None)
        if annotation is not None and annotation.annotation in (int, float, list[int]):
            yield f"{path} {parameter.name}", parameter


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)


def test_every_number_of_every_command_has_both_bounds() -> None:
    found = dict(numeric_parameters())
    assert len(found) > 60
    assert {"evaluate temperature", "bench ray seconds", "match byoyomi", "train steps"} <= found.keys()
    for path, parameter in found.items():
        assert parameter.min is not None, path
        assert parameter.max is not None, path


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["evaluate", "x", "--temperature=1e-300"], "must be 0 (the best action), or from 1e-06 to 1000000"),
        (["evaluate", "x", "--temperature=1e300"], "less than or equal to 1000000"),
        (["evaluate", "x", "--temperature=nan"], "less than or equal to 1000000"),
        (["play", "random", "--temperature=1e-300"], "must be 0 (the best action)"),
        (["evaluate", "x", "--games=1000000000000"], "less than or equal to 1000000"),
        (["match", "random", "random", "--games=1000000000000"], "less than or equal to 1000000"),
        (["evaluate", "x", "--opening-plies=1000000000000"], "less than or equal to 1000"),
        (
            ["tournament", "random", "greedy", "--seed=9223372036854775808"],
            "less than or equal to 9223372036854775807",
        ),
        (
            ["train", "tictactoe-ppo", "--steps=1000000000000000000000"],
            "less than or equal to 1000000000000000000",
        ),
        (["train", "tictactoe-ppo", "--minutes=nan"], "less than or equal to 1000000000"),
        (["train", "tictactoe-ppo", "--minutes=inf"], "less than or equal to 1000000000"),
        (["match", "random", "usi:x", "--time=inf"], "less than or equal to 1000000"),
        (["match", "random", "usi:x", "--byoyomi=nan"], "less than or equal to 1000000"),
        (["picture", "x", "--out=x.gif", "--turns=99999999999"], "less than or equal to 1000000"),
        (["picture", "x.kif", "--out=x.gif", "--seconds=1e9"], "less than or equal to 600"),
        (["soak", "--duration=inf"], "less than or equal to 1000000"),
        (["simulate", "--slab-ms=nan"], "less than or equal to 1000000"),
        (["perft", "9" * 30], "a whole number from 0 to 20"),
    ],
    ids=lambda each: " ".join(each)[:60] if isinstance(each, list) else "",
)
def test_what_is_out_of_range(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert told in " ".join(result.stderr.replace("│", "").split())
    assert list(tmp_path.iterdir()) == []


LONG = "a" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", LONG],
        ["train", f"{LONG}.yaml"],
        ["train", "tictactoe-ppo", "--name", LONG],
        ["train", "tictactoe-ppo", "--root", LONG],
        ["train", "tictactoe-ppo", "--set", f"env.game={LONG}"],
        ["train", "tictactoe-ppo", "--set", f"evaluation.opponents=[{LONG}]"],
        ["train", "tictactoe-ppo", "--set", f"league.members=[{LONG}]"],
        ["train", "tictactoe-ppo", "--set", f"run.stop_at.{LONG}=0.5"],
        ["train", "tictactoe-ppo", "--set", f"run.device={LONG}"],
        ["pretrain", "x.kif", "--run", LONG],
        ["config", LONG],
        ["evaluate", LONG],
        ["evaluate", f"a@{LONG}"],
        ["play", LONG],
        ["match", LONG, "random"],
        ["tournament", LONG, "random"],
        ["ladder", LONG],
        ["league", LONG],
        ["plot", LONG, "--out", "x.png"],
        ["export", LONG, "--out", "x.onnx"],
        ["picture", LONG, "--out", "x.gif"],
        ["schelling", LONG],
    ],
    ids=lambda each: " ".join(each)[:40],
)
def test_a_name_of_300_letters(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, type(result.exception)) == (2, SystemExit), result.output
    assert "error: " in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a/b/c/d", "../b", "/tmp/b", "b/", "..", "", "a\x1bb"])
def test_a_name_leads_nowhere_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["train", "tictactoe-ppo", "--name", name], ["pretrain", "x.kif", "--run", name]):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert f"error: {name!r} cannot name a run" in result.stderr
        assert "--root gives another folder of runs" in result.stderr
    assert list(tmp_path.iterdir()) == []
