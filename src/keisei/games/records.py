"""Records of games: files for people and other programs. The package of a game provides the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["RecordFormat", "RecordedGame"]


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A game that was played to its end, as plain data."""

    options: Mapping[str, Any]
    """The options of the game; missing ones have their defaults."""
    actions: tuple[int, ...]
    """All actions, in order."""
    names: tuple[str, ...]
    """The name of the player in each seat."""
    scores: tuple[float, ...]
    """For each seat: 1 for a win, 0 for a draw, -1 for a loss."""
    ending: str
    """One of ``GameSpec.endings``."""


class RecordFormat(Protocol):
    """A file format for the records of a game."""

    @property
    def suffix(self) -> str:
        """The suffix of its files, such as ``.kif``."""
        ...

    def write(self, game: RecordedGame, path: Path) -> None: ...
