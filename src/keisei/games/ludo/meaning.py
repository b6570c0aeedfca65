"""What the bytes of an observation of Ludo mean, in words. docs/games/ludo.md has the same as tables."""

from __future__ import annotations

from keisei.games.ludo.board import ACTIONS, split_action
from keisei.games.ludo.squares import HOME, TOKENS, YARD

__all__ = ["observation_meaning"]

_AHEAD = {2: (26,), 3: (13, 26, 39), 4: (13, 26, 39)}
"""Where the enemies' corners are, in squares ahead of the own start."""


def observation_meaning(players: int) -> list[str]:
    """Explains each byte, as the seat to move counts squares."""
    tokens = range(TOKENS)
    moves = [f"token {token} by a die of {value}" for value, token in map(split_action, range(ACTIONS))]
    return [
        *(f"own token {token} stands at {place}" for token in tokens for place in range(YARD, HOME + 1)),
        *(f"position of own token {token}, plus 1" for token in tokens),
        *(f"dangers where own token {token} stands" for token in tokens),
        *(f"targets from where own token {token} stands" for token in tokens),
        *(text for ahead in _AHEAD[players] for text in _corner(ahead)),
        *(f"dice of {value} in hand" for value in range(1, 7)),
        *(f"legal: {move}" for move in moves),
        *(f"captures: {move}" for move in moves),
        *(f"is then safe: {move}" for move in moves),
        *(f"dangers after: {move}" for move in moves),
        *(f"targets after: {move}" for move in moves),
    ]


def _corner(ahead: int) -> list[str]:
    who = f"of the enemy {ahead} squares ahead"
    return [
        f"tokens {who} in the yard",
        *(f"tokens {who} on square {square}" for square in range(52)),
        *(f"tokens {who} on square {square} of its home column" for square in range(1, 6)),
        f"tokens {who} at home",
        f"sum of the positions {who}, each plus 1",
    ]
