"""Finished games of a run, from the files in its folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.replays import SUFFIX, read_replay
from keisei.runs.rows import GameRow
from keisei.web.catalogue import NotFoundError
from keisei.web.lines import Line
from keisei.web.players import Players

__all__ = ["record_text", "replay_frame"]

_LARGEST = 4 << 20
"""Bytes of a record."""


def replay_frame(
    players: Players | None, run: RunDirectory, record: str, ply: int, view: int
) -> dict[str, Any]:
    """Gives a position of a finished game, with what the newest weights of the run think of it. Without players, nobody
    is asked."""
    row = _row(run, record)
    replay = read_replay(_file(run, _replay_name(record)))
    line = Line(replay.game, replay.options, replay.actions, replay.seed, replay.number)
    judge = None if players is None else players.judge(run.name, line.game.spec)
    return line.frame(ply, view, judge) | {
        "names": list(replay.names),
        "first": row.first,
        "second": row.second,
    }


def record_text(run: RunDirectory, record: str) -> tuple[str, str]:
    """Gives the name and the content of a record."""
    _row(run, record)
    path = _file(run, record)
    with open(path, "rb") as file:
        return path.name, file.read(_LARGEST).decode("utf-8", "replace")


def _row(run: RunDirectory, record: str) -> GameRow:
    """Gives the game with this record. A record that ``run.db`` does not name is none."""
    if run.database.exists():
        with RunDatabase(run.database, read_only=True) as database:
            row = database.game(record)
        if row is not None:
            return row
    raise NotFoundError(f"{run.name} has no game {record[:200]!r}")


def _replay_name(record: str) -> str:
    return record if record.endswith(SUFFIX) else str(Path(record).with_suffix("")) + SUFFIX


def _file(run: RunDirectory, name: str) -> Path:
    """Gives a file in the folder of the run's games. What a link leads out of it is not there."""
    try:
        path = (run.path / name).resolve(strict=True)
        inside = path.is_relative_to(run.games.resolve(strict=True)) and path.is_file()
    except OSError:
        inside = False
    if not inside:
        raise NotFoundError(
            f"{run.name} has no file {name[:200]!r}; games of earlier versions have no replay"
        )
    return path
