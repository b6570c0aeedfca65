"""Look-ahead by the batch itself, where that is faster than on copies."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import IntArray

__all__ = ["LooksAhead"]


@runtime_checkable
class LooksAhead(Protocol):
    """A batch with its own look-ahead; its spec sets ``looks_ahead``.

    Both methods decide for the rows with the indices ``selected``, or for all rows if it is None. Each of these
    rows has a key, 64 random bits that decide between equal actions. The same position and key give the same
    action, and the games do not change.
    """

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Gives the action that wins the most at once, without looking at the answer."""
        ...

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Gives the best action of a search over ``depth`` plies, in which each seat plays for itself."""
        ...
