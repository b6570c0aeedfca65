"""``keisei verify`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app

SMALL = ["verify", "--game", "tictactoe", "--workers", "2", "--games", "4", "--rounds", "2"]

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


def test_equal_digests_are_exit_code_0() -> None:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, SMALL)
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()[:4]
    assert head.split() == ["Backend", "Rounds", "Transitions", "Seconds", "Digest"]
    assert [row.split()[0] for row in rows] == ["inline", "thread", "process"]
    assert len({row.split()[-1] for row in rows}) == 1
    assert "OK: all digests are equal." in result.stdout


def test_kills_and_json() -> None:
    result = CliRunner().invoke(app, [*SMALL, "--kills", "3", "--stops", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["same"] is True
    assert report["first_difference"] == {}
    disturbed = report["runs"][-1]
    assert disturbed["backend"] == "disturbed"
    assert disturbed["kills"] + disturbed["stops"] == 3
    assert {run["rounds"] for run in report["runs"]} == {disturbed["rounds"]}


def test_different_digests_are_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden_coin.py").write_text(COIN)
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*SMALL, "--game", "hidden_coin:Coin", "--random"])
    assert result.exit_code == 1, result.output
    assert "DIFFERENT: thread differs from inline from round 1 on" in result.stdout


def test_an_unknown_game_is_exit_code_2() -> None:
    result = CliRunner().invoke(app, ["verify", "--game", "shoggi"])
    assert result.exit_code == 2
    assert "did you mean 'shogi'" in result.stderr
