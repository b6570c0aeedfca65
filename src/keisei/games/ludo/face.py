"""How a person sees Ludo and plays it: tokens are the places of a choice, and dice tell choices apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keisei.games.faces import place
from keisei.games.ludo.board import LudoBoard, split_action
from keisei.games.ludo.picture import STYLE, board_svg, colour, token_spots
from keisei.games.offers import Choice

__all__ = ["LudoFace"]


class LudoFace:
    """Positions are drawn as in notebooks. All players see the board from the same side."""

    style = STYLE
    person_options = ("players",)
    has_sides = False

    def __init__(self, players: int, *, blocks: bool = False) -> None:
        self.seats = tuple(colour(seat, players) for seat in range(players))
        self._blocks = blocks

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        board = self._board(packed)
        return board_svg(board, places=_places(board), styled=False)

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        return [_choice(action) for action in actions]

    def text(self, packed: bytes, seat: int) -> str:
        return ""

    def _board(self, packed: bytes) -> LudoBoard:
        return LudoBoard.from_packed(packed, blocks=self._blocks)


def _choice(action: int) -> Choice:
    value, token = split_action(action)
    return Choice(action, f"token {token} by {value}", (f"t{token}",), f"Use the {value}")


def _places(board: LudoBoard) -> Iterator[str]:
    """Yields the tokens of the seat to move."""
    if board.winner is not None:
        return
    for seat, token, x, y, radius in token_spots(board):
        if seat == board.to_move:
            box = (x - radius, y - radius, 2 * radius, 2 * radius)
            yield place(f"t{token}", f"token {token} of {colour(seat, board.players)}", box, (x / 40, y / 40))
