"""Replays: all that is needed to play a finished game again, as a small JSON file.

A game follows from its name, its options, its seed, its number and its actions, also with dice. So any game can be
replayed, whether it has a format for records or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from keisei.errors import RunError
from keisei.runs.foreign_documents import json_of, typed
from keisei.runs.foreign_files import read_foreign

__all__ = ["SUFFIX", "GameReplay", "read_replay", "write_replay"]

SUFFIX = ".replay.json"
FORMAT = "keisei-replay"
_LARGEST = 4 << 20
"""Bytes of a replay."""
_MOST_GAMES = 1 << 31
_LARGEST_SEED = 1 << 63


@dataclass(frozen=True)
class GameReplay:
    """A game that can be played again."""

    game: str
    actions: tuple[int, ...]
    """All actions, in order; those of several seats that act at once follow each other."""
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    number: int = 0
    """The number of the game in its batch, which keys its chance."""
    names: tuple[str, ...] = ()
    """The name of the player in each seat."""
    scores: tuple[float, ...] = ()
    ending: str = ""


def write_replay(replay: GameReplay, path: Path) -> None:
    """Writes a replay, in place of an earlier one. It is never written through a link."""
    document = {"format": FORMAT, "version": 1, **asdict(replay)}
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="utf-8") as file:
        file.write(json.dumps(document, allow_nan=False) + "\n")


def read_replay(path: Path, within: Path | None = None) -> GameReplay:
    """Reads a replay. ``within`` is the folder that no link may lead out of, by default its own."""
    folder = path.parent if within is None else within
    try:
        document = json_of(read_foreign(folder, str(path.relative_to(folder)), _LARGEST))
        if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, 1):
            raise ValueError("another format")
        replay = typed(GameReplay, document)
        _check_replay(replay)
        return replay
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is not a game that can be replayed: {error}") from error


def _check_replay(replay: GameReplay) -> None:
    """Checks what the types do not say. Only the game itself can tell whether its actions are legal."""
    largest = max((replay.seed, replay.number, *replay.actions), default=0)
    smallest = min((replay.seed, replay.number, *replay.actions), default=0)
    if smallest < 0 or replay.number > _MOST_GAMES or largest >= _LARGEST_SEED:
        raise ValueError(
            f"seed, number and actions are whole numbers from 0 on, and a batch has at most {_MOST_GAMES:,} games"
        )
    if not all(map(isfinite, replay.scores)):
        raise ValueError("a score is a number")
