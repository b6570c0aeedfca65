"""``keisei verify`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.proving import same_weights

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


# Training

TRAINING = ["verify", "--training", "--rounds", "2", "--kills", "0"]


@pytest.fixture
def nobody_kills_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kill takes seconds."""
    monkeypatch.setattr(same_weights, "TRAINER_KILLS", 0)


@pytest.mark.usefixtures("nobody_kills_the_trainer")
def test_equal_weights_are_exit_code_0() -> None:
    result = CliRunner().invoke(app, [*TRAINING, "--game", "tictactoe", "--games", "4"])
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()[:7]
    assert head.split() == ["Run", "Times", "Updates", "Transitions", "Seconds", "Digest"]
    names = ["inline", "thread", "process", "workers killed", "stopped", "trainer killed"]
    assert all(row.startswith(name) for row, name in zip(rows, names, strict=True))
    assert len({row.split()[-1] for row in rows}) == 1
    assert all(len(row) <= 80 for row in rows)
    assert "OK: all digests are equal." in result.stdout


@pytest.mark.usefixtures("nobody_kills_the_trainer")
def test_different_weights_are_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coin_for_training.py").write_text(COIN)
    monkeypatch.syspath_prepend(tmp_path)
    config = tmp_path / "coin.yaml"
    settings = {
        "env": {"game": "coin_for_training:Coin"},
        "model": {"hidden_dim": 8},
        "learner": {"minibatch_size": 64},
        "parallel": {"tables": 2, "games": 4, "horizon": 8},
        "run": {"learner_threads": 1},
    }
    config.write_text(yaml.safe_dump(settings))
    result = CliRunner().invoke(app, [*TRAINING, "--config", str(config), "--json"])
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    assert report["same"] is False
    assert report["differences"] == ["thread", "process", "workers killed", "stopped", "trainer killed"]
    assert {run["updates"] for run in report["runs"]} == {2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--training", "--central"], "--central means nothing with --training"),
        (
            ["--training", "--config", "tictactoe-ppo", "--workers", "3"],
            "--workers means nothing with --config",
        ),
        (["--config", "tictactoe-ppo"], "--config means nothing without --training"),
        (["--training", "--config", "tictactoe-pop"], "did you mean 'tictactoe-ppo'"),
    ],
)
def test_options_without_a_meaning_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["verify", *options])
    assert result.exit_code == 2
    assert message in result.stderr
