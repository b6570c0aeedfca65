"""A player by simple rules that a game brings along: the player ``heuristic``."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import IntArray

__all__ = ["HasHeuristic"]


@runtime_checkable
class HasHeuristic(Protocol):
    """A batch with a player of its own; its spec sets ``heuristic``."""

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Decides for the rows with the indices ``selected``, or for all rows if it is None.

        Each of these rows has a key, 64 random bits that decide between equal actions. The same position and key
        give the same action, and the games do not change.
        """
        ...
