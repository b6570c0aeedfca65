"""What a batch may offer to players that look ahead, where it can do so faster than on copies."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import IntArray

__all__ = ["LooksAhead"]


@runtime_checkable
class LooksAhead(Protocol):
    """A batch that looks ahead by itself; its spec says so by ``looks_ahead``.

    Both methods decide for the rows whose indices are ``selected``, or for all where it is None. There is one key
    for each of these rows, 64 random bits that decide between equal actions. The same position and key give the
    same action, and the games stay as they are.
    """

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """What wins the most at once, whatever the answer."""
        ...

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """The best action as far as ``depth`` plies show, each seat playing for itself."""
        ...
