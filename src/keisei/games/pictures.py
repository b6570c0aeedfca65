"""Positions as text, where a batch can draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from keisei.errors import GameError
from keisei.games.contract import FinalRows, Game

__all__ = ["LastPositions", "ShowsSides", "ShowsText", "ShowsWorld", "Symbol", "last_picture", "picture"]


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


@runtime_checkable
class ShowsSides(ShowsText, Protocol):
    """A batch whose drawings differ by the seat that looks at them, as a person who plays sees their own side below."""

    def text_from(self, seat: int, game: int = 0) -> str: ...

    def last_text_from(self, seat: int, game: int = 0) -> str: ...


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a letter of a drawing stands for."""

    name: str
    colour: tuple[int, int, int]
    """Red, green and blue, 0 … 255."""


@runtime_checkable
class ShowsWorld(ShowsText, Protocol):
    """A batch whose drawings are worlds with a letter for each cell, in which every seat stands somewhere."""

    def symbols(self) -> Mapping[str, Symbol]:
        """Gives the letters that may appear in drawings."""
        ...

    def standing(self, seat: int, game: int = 0) -> tuple[int, int]:
        """Gives the row and the column where a seat stands in the current position of a game."""
        ...

    def seat_colour(self, seat: int) -> tuple[int, int, int]:
        """Gives the colour of a seat, the same in every picture."""
        ...

    def own_colours(self, game: int = 0) -> Mapping[tuple[int, int], tuple[int, int, int]]:
        """Gives the colours of seats by row and column, where a seat is drawn in its own colour."""
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


def picture(game: Game, index: int = 0, view: int | None = None) -> str:
    """Draws a game, or describes it in a line if its batch cannot. ``view`` is the seat that looks at it, if anybody in
    particular does."""
    if view is not None and isinstance(game, ShowsSides):
        return game.text_from(view, index)
    if isinstance(game, ShowsText):
        return game.text(index)
    rows = game.rows()
    row = rows.game.tolist().index(index)
    return f"{game.spec.name}: ply {rows.ply[row]}, seat {rows.seat[row]} to act"


def last_picture(game: Game, index: int = 0, view: int | None = None) -> str:
    """Draws the last position of a game that has ended. Its batch must keep last positions."""
    if view is not None and isinstance(game, ShowsSides):
        return game.last_text_from(view, index)
    return game.last_text(index) if isinstance(game, ShowsText) else f"{game.spec.name}: the game is over"
