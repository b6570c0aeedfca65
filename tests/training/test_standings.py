"""Ratings of a run from the matches in its database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from runs_for_tests import make_run

from keisei.errors import RunLockedError
from keisei.evaluation import Pairing, Tally, rate
from keisei.runs.database import RunDatabase
from keisei.runs.rows import EvaluationRow
from keisei.training.standings import pairings_of, rate_run, save_ratings


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    with RunDatabase(tmp_path / "run.db") as database:
        yield database


def add(
    database: RunDatabase, update: int, opponent: str, tally: Tally, player: str | None = None
) -> Pairing:
    name = player or f"update-{update:09d}"
    row = EvaluationRow(
        update, update * 512, 0.0, name, opponent, tally.wins, tally.draws, tally.losses, 0.5, 0.0, 1.0
    )
    database.add_evaluation(row)
    return Pairing(name, opponent, tally)


def test_matches_become_pairings_in_their_order(database: RunDatabase) -> None:
    later = add(database, 20, "random", Tally(9, 1, 0))
    first = add(database, 10, "random", Tally(5, 1, 4))
    assert pairings_of(database) == [first, later]


def test_the_random_player_has_rating_0(database: RunDatabase) -> None:
    pairings = [
        add(database, 10, "greedy", Tally(2, 0, 8)),
        add(database, 10, "random", Tally(7, 1, 2)),
        add(database, 20, "update-000000010", Tally(8, 0, 2)),
    ]
    rows = rate_run(database, 20)
    expected = rate(pairings, "random")
    assert [(row.player, row.rating, row.low, row.high, row.games) for row in rows] == [
        (rating.player, rating.elo, rating.low, rating.high, rating.games) for rating in expected
    ]
    assert {row.update for row in rows} == {20}
    ratings = {row.player: row.rating for row in rows}
    assert ratings["random"] == 0
    assert ratings["update-000000020"] > ratings["update-000000010"] > 0
    assert ratings["greedy"] > ratings["update-000000010"]


def test_without_it_the_first_opponent_has(database: RunDatabase) -> None:
    add(database, 10, "greedy", Tally(2, 0, 8))
    add(database, 20, "greedy", Tally(5, 0, 5))
    add(database, 20, "search:1", Tally(3, 0, 7))
    assert {row.player: row.rating for row in rate_run(database, 20)}["greedy"] == 0


def test_players_that_nothing_connects_are_left_out_until_they_meet(database: RunDatabase) -> None:
    add(database, 10, "random", Tally(7, 1, 2))
    add(database, 20, "greedy", Tally(7, 1, 2), player="b")
    add(database, 30, "b", Tally(7, 1, 2), player="c")
    assert {row.player for row in rate_run(database, 30)} == {"random", "update-000000010"}
    add(database, 40, "c", Tally(5, 0, 5), player="random")
    assert {row.player for row in rate_run(database, 40)} == {
        "random",
        "update-000000010",
        "b",
        "c",
        "greedy",
    }


def test_what_tells_nothing_is_no_error(database: RunDatabase) -> None:
    assert rate_run(database, 0) == []
    add(database, 10, "update-000000010", Tally(5, 0, 5))
    add(database, 20, "random", Tally())
    assert rate_run(database, 20) == []
    add(database, 30, "random", Tally(1, 0, 0))
    assert [row.player for row in rate_run(database, 30)] == ["update-000000030", "random"]


def test_ratings_are_saved_with_further_games(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    with RunDatabase(run.database) as database:
        add(database, 10, "random", Tally(7, 1, 2))
    rows = save_ratings(run, 20, [Pairing("update-000000020", "update-000000010", Tally(6, 0, 4))])
    with RunDatabase(run.database, read_only=True) as database:
        assert database.ratings() == rows
        assert len(pairings_of(database)) == 1
    assert [row.player for row in rows] == ["update-000000020", "update-000000010", "random"]


def test_a_run_that_is_being_trained_is_left_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    with run.lock(), pytest.raises(RunLockedError, match="is being trained by process"):
        save_ratings(run, 20, [Pairing("b", "a", Tally(6, 0, 4))])
    assert not run.database.exists()
