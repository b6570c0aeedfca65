"""Where tokens stand: positions as their owner counts them, and squares of the loop that all share.

A position is -1 in the yard, 0 on the own start, 0 … 50 on the loop, 51 … 55 in the home column, and 56 at home. The
loop has 52 squares. Each player leaves it one square before coming round to the own start.
"""

from __future__ import annotations

TOKENS = 4
YARD, START, LAST_ON_LOOP, HOME = -1, 0, 50, 56
LOOP = 52
QUARTER = LOOP // 4
SAFE_SQUARES = frozenset({0, 8, 13, 21, 26, 34, 39, 47})
"""The squares of the loop on which nobody is captured. Four of them are the starts."""


def corner(seat: int, players: int) -> int:
    """Gets the corner of a seat, 0 … 3 in the direction of play. Two players sit at opposite corners."""
    return 2 * seat if players == 2 else seat


def square_of(seat: int, position: int, players: int) -> int | None:
    """Computes the square of the loop, counted from the start of seat 0; None if the token is not on the loop."""
    if not START <= position <= LAST_ON_LOOP:
        return None
    return (position + QUARTER * corner(seat, players)) % LOOP
