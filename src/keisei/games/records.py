"""Records of games: files that people and other programs read. A game's package brings the format."""

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
    """The options that the game was made with; those that are left out have their defaults."""
    actions: tuple[int, ...]
    """All that was played, in order."""
    names: tuple[str, ...]
    """Who sat in each seat."""
    scores: tuple[float, ...]
    """Of each seat: 1 a win, 0 a draw, -1 a loss."""
    ending: str
    """One of ``GameSpec.endings``."""


class RecordFormat(Protocol):
    """How the games of one kind are written down."""

    @property
    def suffix(self) -> str:
        """How the names of its files end, such as ``.kif``."""
        ...

    def write(self, game: RecordedGame, path: Path) -> None: ...
