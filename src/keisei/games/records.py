"""Records of games: files for people and other programs. The package of a game provides the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

__all__ = ["ReadsRecords", "RecordFormat", "RecordedGame"]


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
    """For each seat: 1 for a win, 0 for a draw, -1 for a loss. Empty if a file does not tell the result."""
    ending: str
    """One of ``GameSpec.endings``, or another way in which players end a game, such as resignation."""


class RecordFormat(Protocol):
    """A file format for the records of a game."""

    @property
    def suffix(self) -> str:
        """The suffix of its files, such as ``.kif``."""
        ...

    def write(self, game: RecordedGame, path: Path) -> None: ...


@runtime_checkable
class ReadsRecords(RecordFormat, Protocol):
    """A format that also reads files, and that may know several notations."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of all files that it reads and writes, each for one notation."""
        ...

    def read(self, path: Path) -> list[RecordedGame]:
        """Gives all games of a file, in the notation of its suffix. A wrong one is a ``NotationError``."""
        ...
