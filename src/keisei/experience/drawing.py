"""How a replay draws: all decisions equally often, or those with large errors more often.

Prioritised replay (Schaul et al., 2016): decision i is drawn with the chance P(i) = p_i / sum of all p, where
p_i = (error_i + smallest_error)^alpha. Its importance weight is (N P(i))^-beta, divided by the largest of the sample.
New decisions get the highest priority so far. Only priorities to the power of alpha are stored, so that alpha cannot
be applied twice.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keisei.errors import DivergenceError
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replay_slabs import SlabRing
from keisei.games.contract import FloatArray, IntArray
from keisei.native import core

__all__ = ["Drawing", "EqualDrawing", "PrioritisedDrawing"]


class Drawing(Protocol):
    """Knows which places may be drawn."""

    def __len__(self) -> int:
        """The number of decisions that may be drawn."""
        ...

    def add(self, places: IntArray) -> None:
        """Lets decisions be drawn whose outcome is known now."""
        ...

    def remove_slab(self, index: int) -> None:
        """Removes all places of one slab of the ring."""
        ...

    def draw(self, size: int, seed: int, key: int, progress: float) -> tuple[IntArray, FloatArray]:
        """Draws places, and gives their importance weights."""
        ...

    def update(self, places: IntArray, errors: FloatArray) -> None:
        """Sets priorities by the size of errors."""
        ...


class _Counted:
    """Counts and lists the places that may be drawn."""

    def __init__(self, ring: SlabRing, listed: bool) -> None:
        self._core, self._size = ring.core, ring.shape.transitions
        self._counts: IntArray = np.zeros(len(ring), np.int32)
        """The number of places of each slab that may be drawn."""
        self._listed: IntArray = np.full((len(ring), self._size) if listed else (0,), 0, np.int32)
        """The places themselves, counted from the first of their slab."""
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def add(self, places: IntArray) -> None:
        self._core.add(places, self._counts, self._listed)
        self._total += len(places)

    def remove_slab(self, index: int) -> None:
        self._total -= int(self._counts[index])
        self._counts[index] = 0


class EqualDrawing(_Counted):
    """Draws all decisions equally often."""

    BYTES = 4
    """Bytes for each decision."""

    def __init__(self, ring: SlabRing) -> None:
        super().__init__(ring, listed=True)

    def draw(self, size: int, seed: int, key: int, progress: float) -> tuple[IntArray, FloatArray]:
        places = np.empty(size, np.int32)
        self._core.draw(seed, key, self._counts, self._listed, places)
        return places, np.ones(size, np.float32)

    def update(self, places: IntArray, errors: FloatArray) -> None:
        """Does nothing: there are no priorities."""


class PrioritisedDrawing(_Counted):
    """Draws decisions in proportion to their priorities, one from each of equal shares of their sum."""

    BYTES = 5
    """Bytes for each decision, rounded up."""

    def __init__(self, ring: SlabRing, settings: ReplaySettings) -> None:
        super().__init__(ring, listed=False)
        self._settings = settings
        self._tree = core.SumTree(len(ring) * self._size)
        self.highest = 1.0
        """The highest priority so far, to the power of alpha."""

    def add(self, places: IntArray) -> None:
        super().add(places)
        self._tree.set(places, np.full(len(places), self.highest, np.float32))

    def remove_slab(self, index: int) -> None:
        super().remove_slab(index)
        self._tree.clear(index * self._size, self._size)

    def draw(self, size: int, seed: int, key: int, progress: float) -> tuple[IntArray, FloatArray]:
        places, priorities = np.empty(size, np.int32), np.empty(size, np.float32)
        self._tree.draw(seed, key, places, priorities)
        # N and the sum of all priorities cancel out when the weights are divided by the largest one.
        weights = (priorities.min() / priorities) ** np.float32(self._settings.beta_at(progress))
        return places, weights

    def update(self, places: IntArray, errors: FloatArray) -> None:
        if not np.isfinite(errors).all():
            raise DivergenceError(
                "the errors of a sample are not all finite numbers, so they make no priorities; a lower learning rate "
                "or a smaller gradient norm may help"
            )
        settings = self._settings
        priorities = (np.abs(errors, dtype=np.float64) + settings.smallest_error) ** settings.alpha
        self._tree.set(places, priorities.astype(np.float32))
        self.highest = max(self.highest, float(priorities.max(initial=0.0)))

    def priorities(self, places: IntArray) -> FloatArray:
        """Computes priorities to the power of alpha; 0 where a place cannot be drawn."""
        priorities = np.empty(len(places), np.float32)
        self._tree.get(places, priorities)
        return priorities

    def all_priorities(self) -> FloatArray:
        return self.priorities(np.arange(len(self._counts) * self._size, dtype=np.int32))

    def restore(self, priorities: FloatArray, highest: float) -> None:
        """Restores the priorities of all places, after those that may be drawn were added. Raises ``ValueError`` if
        they are none."""
        fits = priorities.shape == (len(self._counts) * self._size,) and priorities.dtype == np.float32
        if not fits or not (np.isfinite(priorities) & (priorities >= 0)).all() or not 0 <= highest < np.inf:
            raise ValueError("its priorities are not a finite number from 0 on for each place")
        self._tree.set(np.arange(len(priorities), dtype=np.int32), priorities)
        self.highest = highest
