"""Replays: all that is needed to play a finished game again, as a small JSON file.

A game follows from its name, its options, its seed, its number and its actions, also with dice. So any game can be
replayed, whether it has a format for records or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from keisei.errors import RunError

__all__ = ["SUFFIX", "GameReplay", "read_replay", "write_replay"]

SUFFIX = ".replay.json"
FORMAT = "keisei-replay"
_LARGEST = 4 << 20


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
    document = {"format": FORMAT, "version": 1, **asdict(replay)}
    path.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")


def read_replay(path: Path) -> GameReplay:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(_LARGEST))
        if document.pop("format") != FORMAT or document.pop("version") != 1:
            raise ValueError("another format")
        frozen: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        return GameReplay(**frozen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is not a game that can be replayed: {error}") from error
