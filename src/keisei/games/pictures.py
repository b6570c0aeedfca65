"""Draws positions as text: by the batch if it can, else as one line."""

from __future__ import annotations

from keisei.errors import GameError
from keisei.games.contract import FinalRows, Game
from keisei.games.offers import ShowsSides, ShowsText

__all__ = ["LastPositions", "last_picture", "picture"]


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
    """Draws a game, or describes it in a line if its batch cannot. ``view`` is the seat from which it is seen, if
    any."""
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
