"""Finished games of a run, from the files in its folder alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keisei.errors import GameError, KeiseiError, in_one_line
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.foreign_files import check_regular, read_foreign
from keisei.runs.replays import SUFFIX, GameReplay, read_replay
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
    """Describes a position of a finished game, with what the newest weights of the run think of it. Without players, it
    holds no such thoughts."""
    row = _row(run, record)
    replay = _replay(run, _replay_name(record))
    _check_game(run, replay.game)
    line = _line(replay)
    judge = None if players is None else players.judge(run.name, line.game.spec)
    return line.frame(ply, view, judge) | {
        "names": list(replay.names),
        "first": row.first,
        "second": row.second,
    }


def record_text(run: RunDirectory, record: str) -> tuple[str, str]:
    """Gets the name and the content of a record."""
    _row(run, record)
    try:
        content = read_foreign(run.path, _in_games(record), _LARGEST)
    except (OSError, ValueError) as error:
        raise _missing(run, record) from error
    return Path(record).name, content.decode("utf-8", "replace")


def _replay(run: RunDirectory, name: str) -> GameReplay:
    try:
        is_there = check_regular(run.path / _in_games(name), _LARGEST)
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise _missing(run, name)
    return read_replay(run.path / name, within=run.path)


def _line(replay: GameReplay) -> Line:
    """Plays a replay again. Its content comes from a file, so any error of the game is reported as a fault of the
    file."""
    try:
        return Line(replay.game, replay.options, replay.actions, replay.seed, replay.number)
    except KeiseiError:
        raise
    except Exception as error:
        raise GameError(f"this game of {replay.game} cannot be played again: {in_one_line(error)}") from error


def _check_game(run: RunDirectory, game: str) -> None:
    """Refuses a replay of another game than the run's: the file may be a stranger's, and a game may be code."""
    from keisei.policies.players.finding import game_of

    own = game_of(str(run.path), run.root).name
    if game != own:
        raise GameError(
            f"this is a game of {game[:100]!r}, and {run.name} plays {own}; it was not kept by this run"
        )


def _row(run: RunDirectory, record: str) -> GameRow:
    """Finds the game with this record. Only records that ``run.db`` names are found."""
    if os.path.lexists(run.database):
        with RunDatabase(run.database, read_only=True) as database:
            row = database.game(record)
        if row is not None:
            return row
    raise NotFoundError(f"{run.name} has no game {record[:200]!r}")


def _replay_name(record: str) -> str:
    return record if record.endswith(SUFFIX) else str(Path(record).with_suffix("")) + SUFFIX


def _in_games(name: str) -> str:
    """Checks that a name is that of a file in the folder of games."""
    if Path(name).parts[:1] != ("games",):
        raise ValueError(f"{name} is not in the folder of games")
    return name


def _missing(run: RunDirectory, name: str) -> NotFoundError:
    return NotFoundError(f"{run.name} has no file {name[:200]!r}; games of earlier versions have no replay")
