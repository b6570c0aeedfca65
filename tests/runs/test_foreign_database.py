"""``run.db`` of strangers: no query lasts, no program in it runs, no wrong value comes out, and it needs no room to
write."""

from __future__ import annotations

import os
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged_for_tests import DATABASES, in_database, with_numbers

from keisei.errors import ForeignFileError, RunDatabaseError, RunError
from keisei.runs import foreign_database
from keisei.runs.database import RunDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with_numbers(tmp_path / "run.db")
    return tmp_path / "run.db"


def read_all(path: Path) -> None:
    with RunDatabase(path, read_only=True) as database:
        database.metric_names()
        database.metric("train/loss")
        database.thinned_metric("train/loss", 10)
        database.latest_metrics()
        database.recent_metrics(0)
        database.progress()
        database.evaluations()
        database.last_evaluations()
        database.evaluated_step()
        database.games()
        database.ratings()
        database.changes()
        database.worker_events()
        database.league_members()
        database.league_results()


def test_all_of_a_whole_database_is_read(path: Path) -> None:
    read_all(path)


@pytest.mark.parametrize("damage", DATABASES.values(), ids=[*DATABASES])
def test_what_keisei_has_not_written_is_refused(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    with pytest.raises(RunDatabaseError, match=r"run\.db"):
        read_all(path)


@pytest.mark.parametrize("kind", ["a view that never ends", "a view that says it is a table", "a trigger"])
def test_a_trainer_does_not_write_into_a_program(path: Path, kind: str) -> None:
    DATABASES[kind](path)
    with pytest.raises(RunDatabaseError, match=r"no plain table|malformed"):
        RunDatabase(path)


def test_a_query_that_lasts_too_long_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunDatabase(path) as database, database.batch():
        for update in range(3, 3000):
            database.add_metrics(update, update, {"train/loss": 0.0, "train/kl": 0.0})
    monkeypatch.setattr("keisei.runs.database.QUERY_SECONDS", -1.0)
    with pytest.raises(RunDatabaseError, match=r"interrupted.*answer at once"):
        read_all(path)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("read_only", [True, False])
def test_only_plain_files_are_opened(path: Path, suffix: str, read_only: bool) -> None:
    beside = path.with_name(path.name + suffix)
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    with pytest.raises(ForeignFileError, match="not a plain file"):
        RunDatabase(path, read_only=read_only)


def test_a_number_that_no_text_can_be(path: Path) -> None:
    in_database("UPDATE evaluations SET wins = 'all'")(path)
    with pytest.raises(RunDatabaseError, match=r"column 'wins' holds 'all', and must hold int"):
        read_all(path)


def test_the_schema_of_every_version_is_known(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        statements = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql]
    connection.close()
    assert len(statements) >= 10
    assert all(map(foreign_database._OWN.match, statements))


def in_a_child(work: Callable[[], None]) -> int:
    """Runs something in a process that may write nowhere; root would write everywhere."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_numbers_are_read_where_nobody_may_write(path: Path) -> None:
    """SQLite makes files beside a database that it only reads. Where it cannot, the database never changes."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    for folder in (path.parent, *path.parent.parents[:3]):
        folder.chmod(0o755)
    assert not path.with_name("run.db-wal").exists()
    path.chmod(0o444)
    path.parent.chmod(0o555)

    def read() -> None:
        try:
            Path(path.parent / "probe").touch()
            raise AssertionError("the folder can be written to")
        except PermissionError:
            pass
        with RunDatabase(path, read_only=True) as database:
            progress = database.progress()
            assert progress is not None
            assert progress.step == 200
        assert [p.name for p in path.parent.iterdir()] == ["run.db"]

    assert in_a_child(read) == 0
    path.parent.chmod(0o755)


def test_a_missing_database_is_still_missing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="unable to open"):
        RunDatabase(tmp_path / "run.db", read_only=True)
