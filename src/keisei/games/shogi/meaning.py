"""What the planes and actions of Shogi mean, in words. docs/games/shogi.md has the same as tables."""

from __future__ import annotations

from keisei.games.shogi.moves import SQUARE_NAMES

__all__ = ["action_meaning", "plane_meaning"]

_PLAIN = ("pawn", "lance", "knight", "silver", "bishop", "rook", "gold")
_PIECES = (
    *_PLAIN,
    "king",
    "promoted pawn",
    "promoted lance",
    "promoted knight",
    "promoted silver",
    "horse (promoted bishop)",
    "dragon (promoted rook)",
)
_NUMBERS = ("one", "two", "three")
_DIRECTIONS = (
    "up",
    "up left",
    "up right",
    "left",
    "right",
    "down",
    "down left",
    "down right",
    "knight's jump, left",
    "knight's jump, right",
)


def plane_meaning() -> list[str]:
    """Explains the planes, all seen from the side to move."""
    return [
        *(f"{side} {piece}" for side in ("own", "enemy") for piece in _PIECES),
        *(
            f"squares that at least {number} {side} piece{'s' * (number != 'one')} attack{'s' * (number == 'one')}"
            for side in ("own", "enemy")
            for number in _NUMBERS
        ),
        *(f"{piece}s in {side} hand" for side in ("own", "enemy") for piece in _PLAIN),
        "the side to move is in check",
        "the position occurred before in this game",
        "the position occurred at least twice before in this game",
        "progress: 255 * ply / max_plies, rounded down",
        "white is to move",
        "ones",
    ]


def action_meaning() -> list[str]:
    """Explains the actions. Squares have the names that they have for black; white sees the board turned round."""
    kinds = [
        *_DIRECTIONS,
        *(f"{direction}, with promotion" for direction in _DIRECTIONS),
        *(f"drop of a {piece}" for piece in _PLAIN),
    ]
    return [f"{kind}, to {square}" for kind in kinds for square in SQUARE_NAMES]
