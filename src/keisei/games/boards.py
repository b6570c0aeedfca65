"""Boards: a single position, as a person or a program handles it."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

Move_co = TypeVar("Move_co", covariant=True)
"""The moves of a board."""


@runtime_checkable
class PackedBoard(Protocol[Move_co]):
    """A board that a player can choose a move on. A game's package may offer one."""

    def pack(self) -> bytes:
        """Gives the position in the compact form of ``Game.pack``."""
        ...

    def move_from_action(self, action: int) -> Move_co:
        """Gives the move of an action number in this position."""
        ...
