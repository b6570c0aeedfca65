"""Who is in a league, by the rows of ``run.db``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keisei.runs.database import RunDatabase
from keisei.runs.league import ENOUGH_GAMES, LeagueView
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow

ONE = LeagueMemberRow(
    100, 9, 1.0, "one", "snapshot", 0, True, 60, 10, 30, 100, 0.65, 0.6, 0.7, 0.0, -5.0, 5.0, False
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    with RunDatabase(tmp_path / "run.db") as opened:
        yield opened


def view_of(
    database: RunDatabase, *members: LeagueMemberRow, results: tuple[LeagueResultRow, ...] = ()
) -> LeagueView:
    database.add_league(members, results)
    view = LeagueView.of(database)
    assert view is not None
    return view


def test_a_run_without_members_has_no_league(database: RunDatabase) -> None:
    assert LeagueView.of(database) is None


def test_only_rows_of_the_newest_update_are_members(database: RunDatabase) -> None:
    gone = replace(ONE, number=101, name="gone", update=8)
    leaves = replace(ONE, number=102, name="leaves", in_pool=False)
    view = view_of(database, ONE, gone, leaves)
    assert (view.members, view.former, view.pool) == ([ONE, leaves], [gone], [ONE])
    assert view.games == 300


def test_the_worst_member_is_known_by_enough_games(database: RunDatabase) -> None:
    few = replace(ONE, number=101, name="few", score=0.1, recent_games=ENOUGH_GAMES - 1)
    assert view_of(database, ONE, few).worst == ONE
    enough = replace(few, recent_games=ENOUGH_GAMES)
    assert view_of(database, enough).worst == enough
    assert view_of(database, replace(enough, in_pool=False)).worst == ONE


def test_forgotten_are_members_that_may_be_drawn(database: RunDatabase) -> None:
    lost = replace(ONE, number=101, name="lost", forgotten=True)
    view = view_of(database, ONE, lost, replace(lost, number=102, in_pool=False))
    assert view.forgotten == [lost]


def test_the_newest_rows_of_the_matrix_are_those_against_members(database: RunDatabase) -> None:
    def cell(learner: str, number: int) -> LeagueResultRow:
        return LeagueResultRow(learner, "one", 9, 1.0, 1, 0, 1, 0.5, 0.1, 0.9, number)

    cells = (
        cell("update-1", 100),
        cell("update-2", 100),
        cell("update-2", 101),
        cell("update-3", 101),
    )
    view = view_of(database, ONE, replace(ONE, number=101, update=8), results=cells)  # two of one name
    assert view.newest_results(1) == [cells[1]]
    assert view.newest_results(5) == [cells[0], cells[1]]
