"""Run folders that somebody has damaged, or made to harm who looks at them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from keisei.runs.database import RunDatabase

FILES = ("config.yaml", "state.json", "live.json", "lock", "run.db")
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Nine levels of nine aliases: 400 million texts."""


def _write(content: str | bytes) -> Callable[[Path], None]:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return lambda path: (_free(path), path.write_bytes(raw), None)[-1]


def _free(path: Path) -> None:
    path.unlink(missing_ok=True)


def _fifo(path: Path) -> None:
    _free(path)
    os.mkfifo(path)


def _folder(path: Path) -> None:
    _free(path)
    path.mkdir()


def _link_out(path: Path) -> None:
    secret = path.parents[1] / "secret"
    secret.write_text("env: {game: SECRET}\n")
    _free(path)
    path.symlink_to(secret)


def _link_to_itself(path: Path) -> None:
    _free(path)
    path.symlink_to(path)


def _sparse(path: Path) -> None:
    _free(path)
    with open(path, "wb") as file:
        file.truncate(20 << 30)


KINDS: dict[str, Callable[[Path], None]] = {
    "a fifo": _fifo,
    "a folder": _folder,
    "a link out": _link_out,
    "a link to itself": _link_to_itself,
    "sparse 20 GB": _sparse,
    "empty": _write(b""),
    "null": _write("null\n"),
    "a list": _write("[1, 2]\n"),
    "binary": _write(bytes(range(256)) * 20),
    "nested deeply": _write("[" * 100_000),
    "dashes": _write("- " * 100_000),
    "a bomb": _write(BOMB),
    "numbers that are none": _write(
        '{"time": NaN, "since": "", "detail": "", "state": "finished", "seconds": 1e999}'
    ),
    "wrong types": _write(
        '{"time": "x", "since": [], "detail": {}, "state": 3, "seconds": "x", "env": 3, "pid": []}'
    ),
    "half of a letter": _write(
        '{"time": 1, "state": "failed", "since": "", "detail": "\\ud800", "seconds": 1}'
    ),
}


def in_database(*statements: str) -> Callable[[Path], None]:
    """Changes a whole database by SQL. A schema is changed where SQLite keeps it, as somebody would who means harm."""

    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return change


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
DATABASES: dict[str, Callable[[Path], None]] = {
    "a view that never ends": in_database(
        "ALTER TABLE metrics RENAME TO other",
        f"CREATE VIEW metrics AS {ENDLESS} 'a' AS name, x AS \"update\", x AS step, x AS time, x AS value FROM n",
    ),
    "a view that says it is a table": in_database(
        "DROP TABLE ratings",
        f"CREATE VIEW ratings AS {ENDLESS} x FROM n",
        "UPDATE sqlite_master SET type = 'table' WHERE name = 'ratings'",
    ),
    "a trigger": in_database("CREATE TRIGGER t AFTER INSERT ON metrics BEGIN DELETE FROM metrics; END"),
    "a computed column": in_database(
        "DROP TABLE metrics",
        'CREATE TABLE metrics (name TEXT, "update" INTEGER, step INTEGER, time REAL, value REAL AS (hex(time)))',
    ),
    "a text for a number": in_database("UPDATE metrics SET step = 'many'"),
    "a blob for a name": in_database("UPDATE metrics SET name = CAST(name AS BLOB)"),
    "an infinite score": in_database("UPDATE evaluations SET score = 9e999"),
    "an endless time": in_database("UPDATE metrics SET time = 9e999"),
    "a number of 62 bits": in_database("UPDATE metrics SET step = 4611686018427387904"),
    "no table": in_database("DROP TABLE metrics"),
}


def damages() -> list[tuple[str, str, Callable[[Path], None]]]:
    """Lists all damages: the file, what is done to it, and how."""
    found = [(file, kind, make) for file in FILES for kind, make in KINDS.items()]
    return found + [("run.db", kind, make) for kind, make in DATABASES.items()]


def with_numbers(path: Path) -> None:
    """Fills the database of a run."""
    from keisei.runs.rows import EvaluationRow

    with RunDatabase(path) as database:
        for update in (1, 2):
            database.add_metrics(
                update, 100 * update, {"train/loss": 0.5, "time/time_elapsed": 60.0 * update}, 1.7e9
            )
        database.add_evaluation(EvaluationRow(2, 200, 1.7e9, "update-2", "random", 8, 1, 1, 0.85, 0.6, 0.95))


def valid_live() -> str:
    return json.dumps({"time": 1.0, "workers": [], "answers": [], "board": None})
