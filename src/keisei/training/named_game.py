"""Names a game that a program gives as a class, so that worker processes and later programs find it."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType

from keisei.errors import ConfigError
from keisei.games.batched import BatchFactory
from keisei.games.importing import name_of
from keisei.games.own_files import absolute_name, file_of_module
from keisei.games.registry import GameSource
from keisei.training.game_targets import meant_game

__all__ = ["NamedGame", "named_game"]

_MAIN = "__main__"


@dataclass(frozen=True)
class NamedGame:
    """A game by its name."""

    name: str
    only_here: str = ""
    """Why other processes cannot import it now, and what to do; empty if they can."""


def named_game(game: GameSource) -> NamedGame:
    """Finds the name of a game. A class must be at the top level of a module or of the program."""
    if isinstance(game, str):
        return NamedGame(absolute_name(meant_game(game) or game))
    found = game.single if isinstance(game, BatchFactory) else game
    name, kind = name_of(found), getattr(found, "__name__", repr(found))
    if not name:
        raise ConfigError(
            f"{kind} is not found by its name, so neither worker processes nor later programs can import it; define "
            f"it at the top level of a file, not inside a function"
        )
    return NamedGame(name, _only_here(kind) if getattr(found, "__module__", "") == _MAIN else "")


def _only_here(kind: str) -> str:
    main = sys.modules[_MAIN]
    file = file_of_module(main)
    if file is None:
        return (
            f"{kind} is defined in this session, and other processes cannot import it: its games are played in "
            f"threads, and its run can be loaded in this session only. Write {kind} to a file to change both"
        )
    if _is_guarded(main, file):
        return ""
    return (
        f"{kind} is defined in {file.name}, which would train again in every process that imports it: its games are "
        f"played in threads. Put what is not a definition below if __name__ == '__main__': to use processes, and to "
        f"load the run from other programs"
    )


def _is_guarded(main: ModuleType, file: Path) -> bool:
    """Checks if the running line of the program would be skipped when the file is imported."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_globals is vars(main) and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    if frame is None:
        return False
    blocks = [node for node in ast.parse(file.read_bytes()).body if _is_guard(node)]
    return any(block.lineno <= frame.f_lineno <= (block.end_lineno or 0) for block in blocks)


def _is_guard(node: ast.stmt) -> bool:
    """Checks if a statement is ``if __name__ == "__main__":``."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    names = [side.id if isinstance(side, ast.Name) else getattr(side, "value", "") for side in sides]
    return sorted(map(str, names)) == [_MAIN, "__name__"]
