"""Finds the game that a person means: a registered name, a class, a ``.py`` file, or a game of another library."""

from __future__ import annotations

from pathlib import Path

from keisei.errors import ConfigError
from keisei.games.registry import games_in, is_registered

__all__ = ["meant_game"]


def meant_game(target: str) -> str | None:
    """Finds the name by which ``make_game`` makes the game; None if the text names none. A file with one game is
    imported; of files with several, and of modules, the error lists the games."""
    if target.endswith(".py"):
        return f"{target}:{_only_game(target)}"
    if is_registered(target) or ":" in target:
        return target
    if _is_module_here(target):
        raise ConfigError(f"{target} is a module. {_choices(target, games_in(target))}")
    return None


def _only_game(file: str) -> str:
    games = games_in(file)
    if len(games) != 1:
        raise ConfigError(f"{file} is a file of Python. {_choices(file, games)}")
    return games[0]


def _choices(source: str, games: list[str]) -> str:
    if not games:
        return "It defines no game: write a class that extends keisei.SingleGame; docs/games/your_own_game.md shows how"
    return f"Its games are {', '.join(games)}; name one of them, such as {source}:{games[0]}"


def _is_module_here(name: str) -> bool:
    """Checks if the current directory has a module of this name. Others are not imported for a word that may be a
    mistake."""
    place = Path(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
