"""``keisei league`` as a person runs it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow

RANDOM = LeagueMemberRow(
    100, 9, 1.0, "random", "player", 0, True, 90, 0, 10, 100, 0.9, 0.82, 0.95, 0.0, 0.0, 0.0, False
)
FIRST = replace(
    RANDOM, number=101, name="update-000000000", kind="snapshot", wins=20, losses=80, score=0.2, low=0.13,
    high=0.29, rating=320.0, rating_low=250.0, rating_high=390.0, forgotten=True,
)  # fmt: skip
SEATED = replace(FIRST, number=102, name="update-000000003", in_pool=False, forgotten=False, recent_games=3)
LEFT = replace(SEATED, number=103, name="update-000000004", update=7)
RESULTS = [
    LeagueResultRow("update-000000000", "random", 3, 1.0, 6, 2, 2, 0.7, 0.4, 0.9, 100),
    LeagueResultRow("update-000000003", "random", 9, 1.0, 90, 0, 10, 0.9, 0.82, 0.95, 100),
    LeagueResultRow("update-000000003", "update-000000000", 9, 1.0, 20, 0, 80, 0.2, 0.13, 0.29, 101),
]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path, "run", {"env": {"game": "tictactoe"}})
    with RunDatabase(run.database) as database:
        database.add_league([RANDOM, FIRST, SEATED, LEFT], RESULTS)
    return run


def shown(*arguments: str, columns: int = 100) -> str:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["league", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_shows_members_ratings_and_the_matrix(run: RunDirectory) -> None:
    text = shown("run", "--root", str(run.path.parent))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "100 random player 100 90 % 82 … 95 +0 +0 … +0" in lines
    assert "101 update-000000000 100 20 % 13 … 29 +320 +250 … +390 forgotten" in lines
    assert any(line.startswith("102 ") and line.endswith("leaves") for line in lines)
    assert not any(line.startswith("103 ") for line in lines)
    assert "2 members may be drawn, 1 left, 400 games" in lines
    assert "worst: update-000000000 with 20.0 %" in lines
    assert "forgotten: 1 (update-000000000)" in lines
    matrix = lines[lines.index("Learner 100 101") :]
    assert matrix[1:5] == ["update-000000000 70±25", "10", "update-000000003 90±6 20±8", "100 100"]


def test_members_of_one_name_are_told_apart(run: RunDirectory) -> None:
    """As when a fixed member plays in another way from now on. Comparisons of one game are one game."""
    second = replace(RANDOM, number=104, wins=30, losses=30, per_game=3)
    cell = replace(RESULTS[1], number=104, wins=30, losses=30, per_game=3, score=0.5, low=0.3, high=0.7)
    with RunDatabase(run.database) as database:
        database.add_league([second], [cell])
    lines = [" ".join(line.split()) for line in shown(str(run.path)).splitlines()]
    assert "104 random player 20 90 % 82 … 95 +0 +0 … +0" in lines
    matrix = lines[lines.index("Learner 100 101 104") :]
    assert matrix[3:5] == ["update-000000003 90±6 20±8 50±20", "100 100 20"]


def test_it_fits_a_narrow_terminal(run: RunDirectory) -> None:
    for line in shown(str(run.path), columns=80).splitlines():
        assert len(line.rstrip()) <= 80 or line.startswith("The learner after")


def test_json_has_everything(run: RunDirectory) -> None:
    found = json.loads(shown(str(run.path), "--json"))
    assert (found["size"], found["worst"], found["forgotten"]) == (2, FIRST.name, [FIRST.name])
    assert [row["number"] for row in found["members"]] == [100, 101, 102]
    assert [row["number"] for row in found["former"]] == [103]
    assert found["results"][0] == {
        "learner": "update-000000000", "member": "random", "update": 3, "time": 1.0, "wins": 6, "draws": 2,
        "losses": 2, "score": 0.7, "low": 0.4, "high": 0.9, "number": 100, "per_game": 1,
    }  # fmt: skip


def test_a_run_without_a_league_says_how_to_get_one(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "run", {})
    result = CliRunner().invoke(app, ["league", str(run.path)])
    assert result.exit_code == 2
    assert "has no numbers yet" in result.stderr
    RunDatabase(run.database).close()
    result = CliRunner().invoke(app, ["league", str(run.path)])
    assert "has no league; start one with it: keisei train PRESET --set league.enabled=true" in result.stderr
