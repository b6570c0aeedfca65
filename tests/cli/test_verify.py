"""``keisei verify`` as a person runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.proving import same_weights

SMALL = [
    "verify",
    "--game",
    "tictactoe",
    "--workers",
    "1,2",
    "--tables",
    "3",
    "--games",
    "4",
    "--rounds",
    "3",
]
RUNS = [
    *((backend, workers) for backend in ("inline", "thread", "process") for workers in ("1", "2")),
    ("crew changes", "2, 3, 2"),
]

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
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, SMALL)
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()[: len(RUNS) + 1]
    assert head.split() == ["Backend", "Workers", "Rounds", "Transitions", "Seconds", "Digest"]
    assert [tuple(re.split(r"\s{2,}", row)[:2]) for row in rows] == RUNS
    (digest,) = {row.split()[-1] for row in rows}
    assert re.fullmatch("[0-9a-f]{16}", digest)
    assert "OK: all digests are equal." in result.stdout


def test_the_disturbed_run_says_what_happened_to_it() -> None:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*SMALL, "--kills", "3"])
    assert result.exit_code == 0, result.output
    told = re.search(r"(\d+) workers were killed and 0 stopped, (\d+) of them just after", result.stdout)
    assert told is not None, result.stdout
    assert int(told[1]) == 3 >= int(told[2])


def test_kills_and_json() -> None:
    result = CliRunner().invoke(app, [*SMALL, "--kills", "3", "--stops", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["same"] is True
    assert report["first_difference"] == {}
    disturbed = report["runs"][-1]
    assert disturbed["backend"] == "process, disturbed"
    assert disturbed["kills"] + disturbed["stops"] == 3 >= disturbed["heirs"]
    assert [(run["backend"], run["workers"]) for run in report["runs"]] == [
        *RUNS,
        ("process, disturbed", "2"),
    ]
    assert {run["rounds"] for run in report["runs"]} == {disturbed["rounds"]}


def test_different_digests_are_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden_coin.py").write_text(COIN)
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*SMALL, "--game", "hidden_coin:Coin", "--random"])
    assert result.exit_code == 1, result.output
    assert "DIFFERENT: inline with 2 differs from inline with 1 from round 1 on" in result.stdout


@pytest.mark.parametrize("workers", ["0", "1,", "two", "1,65", "", "1.5", "1;2"])
def test_numbers_of_workers_are_read_or_refused(workers: str) -> None:
    result = CliRunner().invoke(app, ["verify", "--workers", workers])
    assert result.exit_code == 2
    assert "--workers takes numbers from 1 to 64, such as 1,2,3" in result.stderr


def test_an_unknown_game_is_exit_code_2() -> None:
    result = CliRunner().invoke(app, ["verify", "--game", "shoggi"])
    assert result.exit_code == 2
    assert "did you mean 'shogi'" in result.stderr


# Training

TRAINING = ["verify", "--training", "--workers", "1,2", "--rounds", "2", "--kills", "0"]
WAYS = [
    *RUNS[:-1],
    ("workers killed", "2"),
    ("crew changes", "2, 3, 2"),
    ("stopped", "1, 2"),
    ("trainer killed", "2"),
]


@pytest.fixture
def nobody_kills_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kill takes seconds."""
    monkeypatch.setattr(same_weights, "TRAINER_KILLS", 0)


@pytest.mark.usefixtures("nobody_kills_the_trainer")
def test_equal_weights_are_exit_code_0() -> None:
    result = CliRunner().invoke(app, [*TRAINING, "--game", "tictactoe", "--games", "4"])
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()[: len(WAYS) + 1]
    assert head.split() == ["Run", "Workers", "Times", "Updates", "Transitions", "Seconds", "Digest"]
    assert [tuple(re.split(r"\s{2,}", row)[:2]) for row in rows] == WAYS
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
    assert report["differences"] == [f"{name} with {workers}" for name, workers in WAYS[1:]]
    assert {run["updates"] for run in report["runs"]} == {2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--training", "--central"], "--central has no effect with --training"),
        (
            ["--training", "--config", "tictactoe-ppo", "--tables", "3"],
            "--tables has no effect with --config",
        ),
        (["--config", "tictactoe-ppo"], "--config has no effect without --training"),
        (["--training", "--config", "tictactoe-pop"], "did you mean 'tictactoe-ppo'"),
    ],
)
def test_options_without_a_meaning_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["verify", *options])
    assert result.exit_code == 2
    assert message in result.stderr
