"""Names of moves, moves as people type them, and the meaning of numbers, with defaults for batches that offer none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keisei.errors import InvalidMoveError
from keisei.games.contract import Game
from keisei.games.offers import ExplainsNumbers, NamesMoves, ReadsMoves

__all__ = [
    "action_meaning",
    "move_examples",
    "move_name",
    "move_names",
    "observation_meaning",
    "read_move",
]


def move_name(game: Game, action: int, index: int = 0) -> str:
    """Names an action, by its number if the batch has no name for it."""
    return game.move_name(action, index) if isinstance(game, NamesMoves) else str(action)


def move_names(game: Game, actions: Sequence[int], index: int = 0) -> dict[str, int]:
    """Names actions uniquely: if the game gives several the same name, their numbers follow it."""
    names = [move_name(game, action, index) for action in actions]
    return {
        name if names.count(name) == 1 else f"{name} ({action})": action
        for name, action in zip(names, actions, strict=True)
    }


def move_examples(game: Game, action: int, index: int = 0) -> Sequence[str]:
    """Shows how an action may be typed."""
    if isinstance(game, ReadsMoves):
        return game.move_examples(action, index)
    return [move_name(game, action, index)]


def read_move(game: Game, text: str, names: Mapping[str, int], index: int = 0) -> Sequence[int]:
    """Finds the legal actions that a person may mean: the one of this name, else those whose names differ from it only
    by upper and lower case, else the ones that the game itself reads in it. Raises ``NotationError`` if there is
    none."""
    if text in names:
        return [names[text]]
    same = [action for name, action in names.items() if name.casefold() == text.casefold()]
    if same:
        return same
    if isinstance(game, ReadsMoves):
        return game.read_move(text, index)
    raise InvalidMoveError(f"{text!r} is no legal move here")


def observation_meaning(game: Game) -> list[str]:
    """Explains observations; in a few words if the batch cannot."""
    if isinstance(game, ExplainsNumbers):
        return game.observation_meaning()
    return [f"entry {index}" for index in range(game.spec.observation.shape[0])]


def action_meaning(game: Game) -> list[str]:
    """Explains actions; in a few words if the batch cannot."""
    if isinstance(game, ExplainsNumbers):
        return game.action_meaning()
    return [f"action {index}" for index in range(game.spec.num_actions)]
