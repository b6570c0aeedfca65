"""Names of moves, and the meaning of numbers, where a batch can tell them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keisei.games.contract import Game

__all__ = ["ExplainsNumbers", "NamesMoves", "action_meaning", "move_name", "observation_meaning"]


@runtime_checkable
class NamesMoves(Protocol):
    """A batch that names moves as people write them."""

    def move_name(self, action: int, game: int = 0) -> str:
        """Names a legal action in the current position of a game."""
        ...


@runtime_checkable
class ExplainsNumbers(Protocol):
    """A batch that says what its observations and actions mean."""

    def observation_meaning(self) -> list[str]:
        """Explains each index of the first axis of an observation, such as a plane."""
        ...

    def action_meaning(self) -> list[str]:
        """Explains each action."""
        ...


def move_name(game: Game, action: int, index: int = 0) -> str:
    """Names an action, by its number if the batch knows no better."""
    return game.move_name(action, index) if isinstance(game, NamesMoves) else str(action)


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
