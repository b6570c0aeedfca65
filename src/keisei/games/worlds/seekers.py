"""A player by simple rules: it walks to the nearest thing of value in view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import BoolArray, IntArray
from keisei.games.randomness import as_uniform, keyed_words
from keisei.games.worlds.observations import WorldObservation
from keisei.games.worlds.world import MOST_KINDS, Places, World

__all__ = ["steps_to_treasure"]

_FAR = 1 << 14
"""The distance of a treasure that cannot be reached within the view."""
_STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Up, down, left and right."""


def steps_to_treasure(
    world: World, seen: WorldObservation, places: Places, keys: NDArray[np.uint64]
) -> IntArray:
    """Chooses up, down, left or right (0 … 3) for an agent in each of these places.

    It takes a shortest way to the nearest cell in view whose value is above 0, around what it cannot enter and what
    costs. If there is no way, it takes any step that costs nothing; if there is none, any step. Its key decides
    between equal steps.
    """
    cells = seen.cells(world, seen.views(world, places) & np.uint8(MOST_KINDS))
    value = world.values[cells].sum(axis=-1)
    harmless = world.passable[cells].all(axis=-1) & (value >= 0)
    distance = _distances(harmless, harmless & (value > 0))
    # One cell more on each side, so that an agent that sees only its own cell has neighbours too.
    around = np.pad(distance, ((0, 0), (1, 1), (1, 1)), constant_values=_FAR)
    row, column = _own_cell(world, seen, places)
    rows = np.arange(len(places))
    lengths = np.stack([around[rows, row + 1 + down, column + 1 + right] for down, right in _STEPS], axis=1)
    ties = as_uniform(keyed_words(keys[:, None], np.arange(len(_STEPS))))
    shortest: IntArray = (lengths + ties).argmin(axis=1).astype(np.int32)
    return shortest


def _own_cell(world: World, seen: WorldObservation, places: Places) -> tuple[Places, Places]:
    """Finds the row and the column of the agent itself in its view."""
    if seen.radius is None:
        return world.coordinates(places)[1:]
    middle = np.full(len(places), seen.radius)
    return middle, middle


def _distances(harmless: BoolArray, treasure: BoolArray) -> NDArray[np.int64]:
    """[rows, height, width]: steps from each cell to the nearest treasure, ``_FAR`` if there is no way, and twice that
    in cells to stay away from."""
    far = np.where(harmless, _FAR, 2 * _FAR)
    distance = np.where(treasure, 0, far)
    while True:
        nearest = np.full_like(distance, _FAR)
        nearest[:, 1:] = distance[:, :-1]
        nearest[:, :-1] = np.minimum(nearest[:, :-1], distance[:, 1:])
        nearest[:, :, 1:] = np.minimum(nearest[:, :, 1:], distance[:, :, :-1])
        nearest[:, :, :-1] = np.minimum(nearest[:, :, :-1], distance[:, :, 1:])
        closer = np.where(harmless & (nearest + 1 < distance), nearest + 1, distance)
        if (closer == distance).all():
            return distance
        distance = closer
