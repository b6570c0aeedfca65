"""``keisei play`` plays games and prints statistics."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app


def figures(*arguments: str) -> dict[str, str]:
    """The table that is printed, without the one line that depends on the machine."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["play", *arguments])
    assert result.exit_code == 0, result.output
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    table = {words[0]: words[1] for words in lines if len(words) == 2}
    assert float(table.pop("plies/s").replace(",", "")) > 0
    return table


@pytest.mark.parametrize("game", ["shogi", "ludo", "tictactoe"])
def test_the_figures_fit_together(game: str) -> None:
    table = figures("--game", game, "--games", "20", "--batch", "8")
    assert int(table["games"]) >= 20
    assert int(table["plies"].replace(",", "")) >= int(table["games"]) * 5
    shares = [float(value.rstrip("%")) for name, value in table.items() if name.startswith("ended by")]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_the_seed_decides_the_games() -> None:
    arguments = ("--game", "tictactoe", "--games", "50", "--batch", "5")
    assert figures(*arguments, "--seed", "3") == figures(*arguments, "--seed", "3")
    assert figures(*arguments, "--seed", "3") != figures(*arguments, "--seed", "4")


@pytest.mark.parametrize(
    ("option", "value"), [("--games", "0"), ("--batch", "0"), ("--seed", "-1"), ("--batch", "many")]
)
def test_bad_numbers_are_refused(option: str, value: str) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["play", option, value])
    assert result.exit_code == 2
    assert option in result.stderr
