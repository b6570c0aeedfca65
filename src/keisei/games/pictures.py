"""Positions as text, where a batch can draw them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keisei.errors import GameError
from keisei.games.contract import FinalRows, Game

__all__ = ["LastPositions", "ShowsText", "last_picture", "picture"]


@runtime_checkable
class ShowsText(Protocol):
    """A batch that draws its games."""

    def text(self, game: int = 0) -> str:
        """Draws the current position of a game."""
        ...

    def keep_last_positions(self) -> None:
        """Keeps the last position of every game that ends from now on, since finished games restart at once."""
        ...

    def last_text(self, game: int = 0) -> str:
        """Draws the last position of the game that ended last in this place."""
        ...


class LastPositions:
    """The packed last positions of finished games. Nothing is kept before ``keep`` is called."""

    def __init__(self) -> None:
        self._packed: dict[int, bytes] | None = None

    def keep(self) -> None:
        self._packed = {}

    def note(self, final: FinalRows) -> None:
        """Notes the games that ended in a step."""
        if self._packed is not None:
            packed = (row.tobytes() for row in final.packed)
            self._packed.update(zip(final.game.tolist(), packed, strict=True))

    def of(self, game: int) -> bytes:
        if self._packed is None or game not in self._packed:
            raise GameError(
                f"no last position of game {game} is kept; call keep_last_positions() before the game ends"
            )
        return self._packed[game]


def picture(game: Game, index: int = 0) -> str:
    """Draws a game, or describes it in a line if its batch cannot."""
    if isinstance(game, ShowsText):
        return game.text(index)
    rows = game.rows()
    row = rows.game.tolist().index(index)
    return f"{game.spec.name}: ply {rows.ply[row]}, seat {rows.seat[row]} to act"


def last_picture(game: Game, index: int = 0) -> str:
    """Draws the last position of a game that has ended. Its batch must keep last positions."""
    return game.last_text(index) if isinstance(game, ShowsText) else f"{game.spec.name}: the game is over"
