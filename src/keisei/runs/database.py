"""``run.db``: the history of a run in SQLite.

One process writes, in one transaction for each update. Any number of processes read meanwhile (write-ahead log), and
each reader sees only whole updates. Every row has its update, so ``rewind`` can delete what a resumed run repeats.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, fields
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from keisei.errors import RunDatabaseError
from keisei.runs.foreign_database import QUERY_SECONDS, WAIT_SECONDS, Watch, check_schema, connect, way_out
from keisei.runs.metric_names import EVALUATION
from keisei.runs.rows import (
    Bounds,
    ChangeRow,
    EvaluationRow,
    GameRow,
    LeagueMemberRow,
    LeagueResultRow,
    MetricName,
    MetricPoint,
    NamedValue,
    Progress,
    RatingRow,
    ThinnedPoint,
    WorkerEventRow,
    checked_row,
)
from keisei.runs.schema import (
    APPLICATION_ID,
    RESULTS_BY_NAME,
    SCHEMA,
    SCHEMA_VERSION,
    TABLES,
    UPGRADES,
)

AnyRow = TypeVar("AnyRow")
Row = TypeVar(
    "Row", EvaluationRow, GameRow, RatingRow, ChangeRow, WorkerEventRow, LeagueMemberRow, LeagueResultRow
)
_TABLE_OF = {
    EvaluationRow: "evaluations",
    GameRow: "games",
    RatingRow: "ratings",
    ChangeRow: "changes",
    WorkerEventRow: "worker_events",
    LeagueMemberRow: "league_members",
    LeagueResultRow: "league_results",
}
_MOST_ROWS = 5_000_000


class RunDatabase:
    """A run's database. All but the trainer open it with ``read_only``. Close it, or use it in a ``with``."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        with self._errors():
            self._connection = connect(path, read_only)
        try:
            self._watch = Watch(self._connection, QUERY_SECONDS if read_only else WAIT_SECONDS)
            self._prepare(read_only)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Writes all that is added inside in one transaction, or not at all. Batches may be nested."""
        if self._in_batch():
            yield
            return
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._errors():
                self._connection.execute("COMMIT")
        except BaseException:
            if self._in_batch():  # SQLite rolls back by itself after some errors, such as a full disk
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            raise

    def add_metrics(
        self, update: int, step: int, values: Mapping[str, float], at: float | None = None
    ) -> None:
        """Adds the numbers of one update. Existing numbers are replaced, and NaN is stored as NULL."""
        now = time.time() if at is None else at
        rows = [(name, update, step, now, float(value)) for name, value in values.items()]
        self._write_many("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?)", rows)

    def add_evaluation(self, row: EvaluationRow) -> None:
        self._add(EvaluationRow, [row])

    def add_games(self, rows: Iterable[GameRow]) -> None:
        self._add(GameRow, rows)

    def add_ratings(self, rows: Iterable[RatingRow]) -> None:
        self._add(RatingRow, rows)

    def add_changes(self, rows: Iterable[ChangeRow]) -> None:
        self._add(ChangeRow, rows)

    def add_worker_event(self, row: WorkerEventRow) -> None:
        self._add(WorkerEventRow, [row])

    def add_league(self, members: Iterable[LeagueMemberRow], results: Iterable[LeagueResultRow]) -> None:
        """Replaces what is known of these members and these cells of the matrix."""
        with self.batch():
            self._add(LeagueMemberRow, members)
            self._add(LeagueResultRow, results)

    def copy(self, path: Path) -> None:
        """Copies the whole database to a new file. The trainer may write meanwhile."""
        with self._errors(), closing(sqlite3.connect(path)) as copied:
            self._connection.backup(copied)

    def rewind(self, update: int) -> int:
        """Deletes everything after ``update``, since a resumed run repeats it. Returns the number of rows."""
        with self.batch(), self._errors():
            deletions = [
                self._connection.execute(f'DELETE FROM {table} WHERE "update" > ?', (update,))
                for table in TABLES
            ]
        return sum(deletion.rowcount for deletion in deletions)

    def metric_names(self) -> list[str]:
        found = self._select("SELECT DISTINCT name FROM metrics ORDER BY name")
        return [row.name for row in self._checked(MetricName, found)]

    def metric(self, name: str, after_update: int = -1) -> list[MetricPoint]:
        """Reads one curve in the order of updates, only those after ``after_update``."""
        query = 'SELECT "update", step, time, value FROM metrics WHERE name = ? AND "update" > ? ORDER BY "update"'
        return self._checked(MetricPoint, self._select(query, name, after_update))

    def thinned_metric(self, name: str, most: int) -> list[ThinnedPoint]:
        """Reads one curve with at most about ``most`` points. Each has the mean of an equal part of the updates, and
        its smallest and largest number. The last update is always a point of its own. SQLite does the work, so that a
        run of 50,000 updates is read in milliseconds."""
        query = 'SELECT MIN("update"), MAX("update") FROM metrics WHERE name = ? HAVING COUNT(*)'
        bounds = self._checked(Bounds, self._select(query, name))
        if not bounds:
            return []
        first, last = bounds[0].first, bounds[0].last
        width = max(1, -(-(last - first) // max(1, most - 1)))
        query = (
            'SELECT AVG("update"), AVG(step), AVG(value), MIN(value), MAX(value) FROM metrics WHERE name = ? '
            'GROUP BY CASE WHEN "update" = ? THEN -1 ELSE ("update" - ?) / ? END ORDER BY 1'
        )
        return self._checked(ThinnedPoint, self._select(query, name, last, first, width))

    def latest_metrics(self) -> dict[str, float]:
        """Reads all numbers of the last update."""
        query = 'SELECT name, value FROM metrics WHERE "update" = (SELECT MAX("update") FROM metrics)'
        return {row.name: row.value for row in self._checked(NamedValue, self._select(query))}

    def recent_metrics(self, after_update: int) -> dict[str, list[MetricPoint]]:
        """Reads all numbers after an update, by name."""
        query = 'SELECT name, "update", step, time, value FROM metrics WHERE "update" > ? ORDER BY "update"'
        found = self._select(query, after_update)
        names = self._checked(MetricName, [row[:1] for row in found])
        points: dict[str, list[MetricPoint]] = {}
        for name, point in zip(names, self._checked(MetricPoint, [row[1:] for row in found]), strict=True):
            points.setdefault(name.name, []).append(point)
        return points

    def progress(self) -> Progress | None:
        """Reads the progress of the run; None before its first update."""
        found = self._select('SELECT "update", step, time FROM metrics ORDER BY "update" DESC LIMIT 1')
        return next(iter(self._checked(Progress, found)), None)

    def evaluations(self, opponent: str | None = None) -> list[EvaluationRow]:
        """Reads the matches in the order of updates, against all opponents or against one."""
        rest = 'WHERE ? IS NULL OR opponent = ? ORDER BY "update", player, opponent'
        return self._rows(EvaluationRow, rest, opponent, opponent)

    def evaluated_step(self) -> int:
        """Reads the number of transitions at the last finished evaluation; 0 before the first. An evaluation is
        finished when its scores are among the metrics."""
        query = "SELECT MIN(step), MAX(step) FROM metrics WHERE name LIKE ? HAVING COUNT(*)"
        bounds = self._checked(Bounds, self._select(query, EVALUATION + "%"))
        return bounds[0].last if bounds else 0

    def last_evaluations(self) -> list[EvaluationRow]:
        """Reads the matches of the newest evaluation against each opponent."""
        newest = 'SELECT MAX("update"), opponent FROM evaluations GROUP BY opponent'
        return self._rows(
            EvaluationRow, f'WHERE ("update", opponent) IN ({newest}) ORDER BY "update", opponent'
        )

    def game(self, record: str) -> GameRow | None:
        """Finds the game with this record; None if there is none."""
        rows = self._rows(GameRow, "WHERE record = ?", record)
        return rows[0] if rows else None

    def games(self, limit: int = 100) -> list[GameRow]:
        """Reads the last games, newest first."""
        return self._rows(GameRow, "ORDER BY id DESC LIMIT ?", limit)

    def ratings(self) -> list[RatingRow]:
        """Reads the newest rating of each player, best first."""
        newest = 'SELECT player, MAX("update") FROM ratings GROUP BY player'
        return self._rows(RatingRow, f'WHERE (player, "update") IN ({newest}) ORDER BY rating DESC, player')

    def changes(self) -> list[ChangeRow]:
        """Reads the settings that changed when the run was resumed, in the order of updates."""
        if self._schema < 3:
            return []
        return self._rows(ChangeRow, 'ORDER BY "update", setting')

    def worker_events(self, limit: int = 100) -> list[WorkerEventRow]:
        """Reads the last events, newest first."""
        return self._rows(WorkerEventRow, "ORDER BY id DESC LIMIT ?", limit)

    def league_members(self) -> list[LeagueMemberRow]:
        """Reads all members that the league ever had, by number. Those of the newest update are in it now."""
        if self._schema < 4:
            return []
        return self._rows(LeagueMemberRow, "ORDER BY number")

    def league_results(self) -> list[LeagueResultRow]:
        """Reads the cells of the win-rate matrix, row by row."""
        if self._schema < 4:
            return []
        if self._schema == 4:
            found = self._select(f"{RESULTS_BY_NAME} ORDER BY old.learner, old.member")
            return self._checked(LeagueResultRow, found)
        return self._rows(LeagueResultRow, "ORDER BY learner, member, number")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> RunDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, cls: type[Row], rows: Iterable[Row]) -> None:
        places = ", ".join("?" * len(fields(cls)))
        statement = f"INSERT OR REPLACE INTO {_TABLE_OF[cls]} ({_columns(cls)}) VALUES ({places})"
        self._write_many(statement, map(astuple, rows))

    def _write_many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self.batch(), self._errors():
            self._connection.executemany(statement, rows)

    def _rows(self, cls: type[Row], rest: str, *values: object) -> list[Row]:
        table = _TABLE_OF[cls]
        known = {str(column) for _, column, *_ in self._select(f"PRAGMA table_info({table})")}
        # A database of an earlier version that is only read lacks some columns: their fields have defaults.
        names = [field.name for field in fields(cls) if field.name in known]
        columns = ", ".join(f'"{name}"' for name in names)
        found = self._select(f"SELECT {columns} FROM {table} {rest}", *values)
        return self._checked(cls, found, names)

    def _select(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._errors(), self._watch:
            found = self._connection.execute(query, values).fetchmany(_MOST_ROWS + 1)
        if len(found) > _MOST_ROWS:
            raise RunDatabaseError(
                f"{self.path} has more than {_MOST_ROWS:,} rows of one kind, and no run of Keisei has; move it out of "
                f"the run"
            )
        return found

    def _checked(
        self, cls: type[AnyRow], found: Iterable[Sequence[object]], names: Sequence[str] = ()
    ) -> list[AnyRow]:
        """Makes rows of what a query found, by default in the order of the fields. SQLite keeps any value in any
        column, so their types are checked."""
        try:
            return [checked_row(cls, row, names) for row in found]
        except ValueError as error:
            raise RunDatabaseError(
                f"{self.path}: {error}. It is damaged, or somebody else has changed it: move it out of the run"
            ) from error

    def _in_batch(self) -> bool:
        return self._connection.in_transaction

    def _prepare(self, read_only: bool) -> None:
        """Creates the tables of a new database, and those that an older one lacks. A foreign or newer database is
        refused."""
        ((version,),) = self._select("PRAGMA user_version")
        ((application,),) = self._select("PRAGMA application_id")
        ((tables,),) = self._select("SELECT COUNT(*) FROM sqlite_master")
        self._schema = version
        if tables == 0 and version == 0 and not read_only:
            self._upgrade(f"{SCHEMA}PRAGMA application_id = {APPLICATION_ID};", 1)
        elif tables == 0 and version == 0:
            raise RunDatabaseError(
                f"{self.path} is still empty; look again when the run has made its first update"
            )
        elif application != APPLICATION_ID:
            raise RunDatabaseError(
                f"{self.path} is a database, but not one of Keisei's; move it out of the run"
            )
        elif version > SCHEMA_VERSION:
            raise RunDatabaseError(
                f"{self.path} has schema {version}, this version of Keisei knows up to {SCHEMA_VERSION}. "
                f"Use the version of Keisei that wrote it"
            )
        with self._errors():
            check_schema(self.path, self._connection)
        if 0 < version < SCHEMA_VERSION and not read_only:
            self._upgrade("", version)

    def _upgrade(self, script: str, version: int) -> None:
        """Brings a database from a version of the schema to the newest, in one transaction."""
        script += "".join(UPGRADES[number] for number in range(version + 1, SCHEMA_VERSION + 1))
        with self._errors():
            self._connection.executescript(
                f"BEGIN IMMEDIATE;{script}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
            )
        self._schema = SCHEMA_VERSION

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns SQLite's errors into ``RunDatabaseError``."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunDatabaseError(f"{self.path}: {error}. {way_out(error)}") from error


def _columns(cls: type[object]) -> str:
    return ", ".join(f'"{field.name}"' for field in fields(cls))  # type: ignore[arg-type]
