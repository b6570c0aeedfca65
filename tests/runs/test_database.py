"""``run.db`` shows whole updates to all readers, survives its writer, and removes what is done again."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keisei.errors import RunDatabaseError
from keisei.runs.database import SCHEMA_VERSION, RunDatabase
from keisei.runs.rows import (
    ChangeRow,
    EvaluationRow,
    GameRow,
    LeagueMemberRow,
    LeagueResultRow,
    Progress,
    RatingRow,
    WorkerEventRow,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    with RunDatabase(tmp_path / "run.db") as opened:
        yield opened


def evaluation(update: int, opponent: str = "random", elo: float | None = 190.8) -> EvaluationRow:
    return EvaluationRow(
        update, update * 10, 1.5, "learner", opponent, 7, 2, 1, 0.8, 0.6, 0.9, elo, 100.0, 300.0
    )


def fill(database: RunDatabase, update: int) -> None:
    with database.batch():
        database.add_metrics(
            update, update * 10, {"train/loss": update / 2, "perf/fps": 100.0}, at=float(update)
        )
        database.add_evaluation(evaluation(update))
        database.add_games(
            [GameRow(update, 1.0, "learner", "random", 1.0, 30, "mate", f"games/{update}.kif")]
        )
        database.add_ratings([RatingRow("learner", update, 1.0, 1500.0 + update, 1400.0, 1600.0, update)])
        database.add_changes([ChangeRow(update, 1.0, "learner.clip", "0.2", "0.3")])
        database.add_worker_event(WorkerEventRow(update, 1.0, 3, "restart", "signal 9"))


def _count(database: RunDatabase, table: str) -> int:
    return int(database._select(f"SELECT COUNT(*) FROM {table}")[0][0])


def rows(database: RunDatabase) -> dict[str, int]:
    return {
        "metrics": sum(len(database.metric(name)) for name in database.metric_names()),
        "evaluations": len(database.evaluations()),
        "games": len(database.games()),
        "ratings": _count(database, "ratings"),
        "changes": len(database.changes()),
        "worker_events": len(database.worker_events()),
    }


def test_what_is_added_is_read(database: RunDatabase) -> None:
    fill(database, 1)
    fill(database, 2)
    assert database.metric_names() == ["perf/fps", "train/loss"]
    assert [(p.update, p.step, p.time, p.value) for p in database.metric("train/loss")] == [
        (1, 10, 1.0, 0.5),
        (2, 20, 2.0, 1.0),
    ]
    assert [p.update for p in database.metric("train/loss", after_update=1)] == [2]
    assert database.latest_metrics() == {"train/loss": 1.0, "perf/fps": 100.0}
    assert database.progress() == Progress(2, 20, 2.0)
    assert database.evaluations() == [evaluation(1), evaluation(2)]
    assert database.evaluations()[0].games == 10
    assert [game.record for game in database.games()] == ["games/2.kif", "games/1.kif"]
    assert [game.update for game in database.games(limit=1)] == [2]
    assert database.ratings() == [RatingRow("learner", 2, 1.0, 1502.0, 1400.0, 1600.0, 2)]
    assert _count(database, "ratings") == 2
    assert database.changes() == [ChangeRow(update, 1.0, "learner.clip", "0.2", "0.3") for update in (1, 2)]
    assert str(database.changes()[1]) == "learner.clip 0.2 → 0.3 from update 2 on"
    assert database.worker_events(limit=1) == [WorkerEventRow(2, 1.0, 3, "restart", "signal 9")]


def test_matches_that_are_played_again_are_kept_once(database: RunDatabase) -> None:
    game = GameRow(1, 1.0, "update-1", "random", 1.0, 30, "mate", "games/1.kif")
    database.add_games([game])
    again = replace(game, time=2.0)
    database.add_games([again])
    assert database.games() == [again]


def test_ratings_and_evaluations_of_many_players(database: RunDatabase) -> None:
    database.add_ratings(
        RatingRow(name, 1, 1.0, rating, 0.0, 1.0, 5) for name, rating in [("a", 1.0), ("b", 3.0)]
    )
    database.add_ratings([RatingRow("a", 2, 1.0, 2.0, 0.0, 1.0, 9)])
    assert [(row.player, row.rating) for row in database.ratings()] == [("b", 3.0), ("a", 2.0)]
    database.add_evaluation(evaluation(1, "search:1", elo=None))
    database.add_evaluation(evaluation(1, "random"))
    assert [row.opponent for row in database.evaluations()] == ["random", "search:1"]
    assert database.evaluations("search:1") == [evaluation(1, "search:1", elo=None)]


def test_numbers_that_are_none(database: RunDatabase) -> None:
    database.add_metrics(1, 10, {"a/nan": math.nan, "a/inf": math.inf})
    assert math.isnan(database.metric("a/nan")[0].value)
    assert database.metric("a/inf")[0].value == math.inf
    assert math.isnan(database.latest_metrics()["a/nan"])


def test_an_empty_run_has_made_no_progress(database: RunDatabase) -> None:
    assert database.progress() is None
    assert database.latest_metrics() == {}
    assert database.metric("train/loss") == []


def test_a_resumed_run_has_no_doubles(tmp_path: Path) -> None:
    for first, last in [(1, 7), (5, 9), (9, 12)]:
        with RunDatabase(tmp_path / "run.db") as database:
            database.rewind(first - 1)
            for update in range(first, last + 1):
                fill(database, update)
    with RunDatabase(tmp_path / "run.db", read_only=True) as database:
        expected = dict.fromkeys(["evaluations", "games", "ratings", "changes", "worker_events"], 12)
        assert rows(database) == {"metrics": 24, **expected}
        assert [point.update for point in database.metric("train/loss")] == list(range(1, 13))


def test_rewinding_tells_how_much_it_took_back(database: RunDatabase) -> None:
    for update in (1, 2, 3):
        fill(database, update)
    assert database.rewind(1) == 14
    assert rows(database) == {
        "metrics": 2, "evaluations": 1, "games": 1, "ratings": 1, "changes": 1, "worker_events": 1,
    }  # fmt: skip
    assert database.rewind(1) == 0


def member(number: int, update: int, wins: int = 3) -> LeagueMemberRow:
    return LeagueMemberRow(
        number, update, 1.0, f"update-{number}", "snapshot", 1, True, wins, 2, 1, 6, 0.6, 0.3, 0.8,
        None, None, None, False,
    )  # fmt: skip


def result(learner: str, update: int, number: int = 100) -> LeagueResultRow:
    return LeagueResultRow(learner, "random", update, 1.0, 3, 2, 1, 0.6, 0.3, 0.8, number)


def test_the_league_is_known_as_it_was_last(database: RunDatabase) -> None:
    database.add_league([member(100, 1), member(101, 1)], [result("update-1", 1)])
    database.add_league([member(101, 2, wins=5)], [result("update-1", 2), result("update-2", 2)])
    assert database.league_members() == [member(100, 1), member(101, 2, wins=5)]
    assert database.league_results() == [result("update-1", 2), result("update-2", 2)]
    database.rewind(1)
    assert database.league_members() == [member(100, 1)]
    assert database.league_results() == []


def test_a_database_from_before_the_league_is_read_and_completed(tmp_path: Path) -> None:
    with RunDatabase(tmp_path / "run.db") as database:
        fill(database, 1)
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.executescript("DROP TABLE league_members; DROP TABLE league_results; PRAGMA user_version = 3")
    connection.close()
    with RunDatabase(tmp_path / "run.db", read_only=True) as reader:
        assert (reader.league_members(), reader.league_results()) == ([], [])
    with RunDatabase(tmp_path / "run.db") as database:
        database.add_league([member(100, 2)], [result("update-1", 2)])
        assert database.rewind(1) == 2
        assert database.progress() == Progress(1, 10, 1.0)
    RunDatabase(tmp_path / "run.db").close()


def of_the_fourth_schema(path: Path) -> None:
    """A database whose matrix has members by name. A second member has the name of the first, which left."""
    members = [
        replace(member(100, 5), name="random"),
        replace(member(101, 9), name="update-1"),
        replace(member(102, 9), name="random"),
    ]
    with RunDatabase(path) as database:
        database.add_league(members, ())
    connection = sqlite3.connect(path)
    connection.executescript("""
        ALTER TABLE league_members DROP COLUMN per_game;
        DROP TABLE league_results;
        CREATE TABLE league_results (
            learner TEXT NOT NULL, member TEXT NOT NULL, "update" INTEGER NOT NULL, time REAL NOT NULL,
            wins INTEGER NOT NULL, draws INTEGER NOT NULL, losses INTEGER NOT NULL, score REAL NOT NULL,
            low REAL NOT NULL, high REAL NOT NULL, PRIMARY KEY (learner, member)
        ) WITHOUT ROWID;
        INSERT INTO league_results VALUES ('update-1', 'random', 4, 1.0, 3, 2, 1, 0.6, 0.3, 0.8);
        INSERT INTO league_results VALUES ('update-2', 'random', 9, 1.0, 3, 2, 1, 0.6, 0.3, 0.8);
        INSERT INTO league_results VALUES ('update-2', 'update-1', 9, 1.0, 3, 2, 1, 0.6, 0.3, 0.8);
        PRAGMA user_version = 4;
    """)
    connection.close()


def test_a_matrix_by_name_is_read_and_then_kept_by_number(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    of_the_fourth_schema(path)
    with RunDatabase(path, read_only=True) as reader:
        assert [(row.learner, row.number) for row in reader.league_results()] == [
            ("update-1", 100), ("update-2", 102), ("update-2", 101),
        ]  # fmt: skip
        assert reader.league_members()[0].games == 6
    with RunDatabase(path) as database:
        before = [result("update-1", 4, 100), result("update-2", 9, 102)]
        assert [row for row in database.league_results() if row.member == "random"] == before
        assert {row.number for row in database.league_results()} == {100, 101, 102}
        database.add_league([], [result("update-2", 9, 100)])
        assert len(database.league_results()) == 4, "the cell of the other member of that name stays"


def half_an_update(database: RunDatabase, failure: Callable[[], object]) -> None:
    with database.batch():
        fill(database, 2)
        failure()


def test_an_update_that_fails_leaves_nothing(database: RunDatabase) -> None:
    fill(database, 1)
    with pytest.raises(ZeroDivisionError):
        half_an_update(database, lambda: 1 / 0)
    nameless = WorkerEventRow(2, 1.0, 0, None)  # type: ignore[arg-type]
    with pytest.raises(RunDatabaseError, match=r"run\.db: NOT NULL"):
        half_an_update(database, lambda: database.add_worker_event(nameless))
    assert database.progress() == Progress(1, 10, 1.0)
    fill(database, 2)
    assert database.progress() == Progress(2, 20, 2.0)


# Other processes

WRITER = """
import sys
from pathlib import Path
from keisei.runs.database import RunDatabase
database = RunDatabase(Path(sys.argv[1]))
last = database.progress()
update = last.update if last else 0
while True:
    update += 1
    with database.batch():
        database.add_metrics(update, update, {f"a/{name}": update for name in range(20)})
    print(update, flush=True)
"""


def writer(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)


def test_readers_see_whole_updates_while_another_process_writes(tmp_path: Path) -> None:
    process = writer(tmp_path / "run.db")
    try:
        assert process.stdout is not None
        process.stdout.readline()
        seen = set()
        with RunDatabase(tmp_path / "run.db", read_only=True) as reader:
            for look in range(100_000):
                if look >= 100 and len(seen) > 10:
                    break  # on a busy machine it takes more looks until so many updates have come by
                latest = reader.latest_metrics()
                assert len(latest) == 20
                assert len(set(latest.values())) == 1
                seen.add(latest["a/0"])
                process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    assert len(seen) > 10


def test_kill_9_of_the_writer_loses_no_update_that_it_told_of(tmp_path: Path) -> None:
    told = 0
    for _ in range(5):
        process = writer(tmp_path / "run.db")
        try:
            assert process.stdout is not None
            for _ in range(7):
                told = int(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
        told = int(rest.split(b"\n")[-2]) if b"\n" in rest else told
        with RunDatabase(tmp_path / "run.db", read_only=True) as reader:
            progress = reader.progress()
            assert progress is not None
            assert told <= progress.update <= told + 1
            assert [p.update for p in reader.metric("a/7")] == list(range(1, progress.update + 1))


def test_a_reader_cannot_write(database: RunDatabase) -> None:
    with (
        RunDatabase(database.path, read_only=True) as reader,
        pytest.raises(RunDatabaseError, match="opened to read; only the trainer"),
    ):
        reader.add_metrics(1, 1, {"a/b": 1.0})


# Files that are not what they should be


def test_a_newer_schema_is_told(tmp_path: Path) -> None:
    RunDatabase(tmp_path / "run.db").close()
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for read_only in (False, True):
        told = rf"run\.db has schema {SCHEMA_VERSION + 1}, .* knows up to {SCHEMA_VERSION}\. Use the version"
        with pytest.raises(RunDatabaseError, match=told):
            RunDatabase(tmp_path / "run.db", read_only=read_only)


def of_the_first_schema(path: Path) -> None:
    """A database as the first version of Keisei left it, with one match and one number."""
    with RunDatabase(path) as database:
        database.add_metrics(1, 10, {"train/loss": 1.0})
    connection = sqlite3.connect(path)
    for column in ("seats", "mean_return", "return_low", "return_high", "opponent_return"):
        connection.execute(f"ALTER TABLE evaluations DROP COLUMN {column}")
    for table in ("changes", "league_members", "league_results"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute(
        "INSERT INTO evaluations VALUES (1, 10, 1.5, 'learner', 'random', 7, 2, 1, 0.8, 0.6, 0.9, 190.8, 100, 300)"
    )
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def test_an_older_database_is_read_as_it_is_and_brought_up_to_date_by_the_trainer(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    of_the_first_schema(path)
    before = path.read_bytes()
    with RunDatabase(path, read_only=True) as reader:
        assert reader.evaluations() == [evaluation(1)]
        assert (reader.changes(), reader.metric_names()) == ([], ["train/loss"])
    assert path.read_bytes() == before
    by_returns = replace(evaluation(2), seats=3, mean_return=1.5, return_low=1.0, return_high=2.0)
    with RunDatabase(path) as database:
        database.add_evaluation(by_returns)
        assert database.evaluations() == [evaluation(1), by_returns]
    with RunDatabase(path, read_only=True) as reader:
        assert reader.evaluations()[1].mean_return == 1.5


def test_an_upgraded_database_is_rewound_like_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    of_the_first_schema(path)
    with RunDatabase(path) as database:
        fill(database, 2)
        assert database.rewind(1) == 7
        fill(database, 3)
    with RunDatabase(path, read_only=True) as database:
        assert [row.update for row in database.changes()] == [3]
        assert len(database.metric("train/loss")) == 2


def test_a_match_of_three_seats_counts_games_and_ranks(database: RunDatabase) -> None:
    row = replace(evaluation(1), wins=9, draws=2, losses=7, score=10 / 18, seats=3, mean_return=0.5)
    database.add_evaluation(row)
    assert database.evaluations() == [row]
    assert row.games == 9
    assert row.mean_rank == pytest.approx(1 + 2 * 8 / 18)


def test_a_foreign_database_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "run.db")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(RunDatabaseError, match="not one of Keisei's"):
        RunDatabase(tmp_path / "run.db")


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_bytes(os.urandom(4096))
    with pytest.raises(RunDatabaseError, match=r"It is damaged: move it aside"):
        RunDatabase(tmp_path / "run.db")


def test_a_database_that_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(RunDatabaseError, match="There is no such file"):
        RunDatabase(tmp_path / "run.db", read_only=True)
    assert not (tmp_path / "run.db").exists()
    (tmp_path / "run.db").write_bytes(b"")
    with pytest.raises(RunDatabaseError, match="still empty"):
        RunDatabase(tmp_path / "run.db", read_only=True)
    RunDatabase(tmp_path / "run.db").close()
    RunDatabase(tmp_path / "run.db", read_only=True).close()


def test_a_path_with_signs_of_an_address(tmp_path: Path) -> None:
    path = tmp_path / "what? #1 100%.db"
    RunDatabase(path).close()
    assert path.exists()


def test_a_long_curve_is_thinned_and_keeps_its_ends(database: RunDatabase) -> None:
    with database.batch():
        for update in range(1, 1001):
            database.add_metrics(update, update * 10, {"train/loss": float(update)})
    points = database.thinned_metric("train/loss", 50)
    assert 45 <= len(points) <= 51
    assert points[-1].step == 10_000
    assert points[-1].value == points[-1].low == points[-1].high == 1000.0
    assert points[0].low == 1.0
    assert [point.step for point in points] == sorted(point.step for point in points)
    assert all(point.low <= point.value <= point.high for point in points)


def test_a_short_curve_is_given_whole(database: RunDatabase) -> None:
    for update in (1, 2, 5):
        database.add_metrics(update, update * 10, {"train/loss": update, "other/x": math.nan})
    assert [(p.step, p.value) for p in database.thinned_metric("train/loss", 50)] == [
        (10, 1),
        (20, 2),
        (50, 5),
    ]
    assert [point.value for point in database.thinned_metric("other/x", 50)] == [None] * 3
    assert database.thinned_metric("no/such", 50) == []


def test_the_newest_numbers_are_read_alone(database: RunDatabase) -> None:
    for update in (1, 2, 3):
        database.add_metrics(update, update * 10, {"train/loss": update})
        database.add_evaluation(evaluation(update))
    assert {name: [p.update for p in points] for name, points in database.recent_metrics(1).items()} == {
        "train/loss": [2, 3]
    }
    assert [row.update for row in database.last_evaluations()] == [3]


def test_a_game_is_found_by_its_record(database: RunDatabase) -> None:
    row = GameRow(1, 1.0, "a", "b", 1.0, 9, "line", "games/x.kif")
    database.add_games([row])
    assert database.game("games/x.kif") == row
    assert database.game("games/y.kif") is None
