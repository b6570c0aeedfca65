"""Conflicts of agents that move at the same time."""

from __future__ import annotations

import numpy as np

from keisei.games.contract import BoolArray
from keisei.games.worlds.world import Places

__all__ = ["resolve"]


def resolve(here: Places, wanted: Places, walks: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Decides who moves. All arrays are [batch, agents].

    ``walks`` is true for agents that want to leave their place for one that they could enter, other agents apart.
    Nobody enters a place that several agents want. Two agents never change places. An agent follows another one that
    moves away, and agents may move in a circle of three or more. The results are who moves, and whose place others
    want too.
    """
    last = max(here.max(), wanted.max())
    wanting = np.bincount(wanted[walks], minlength=last + 1)
    contested: BoolArray = walks & (wanting[wanted] > 1)
    standing = np.full(last + 1, -1)
    standing[here] = np.arange(here.shape[1])
    is_taken, ahead = _ahead(standing[wanted])
    is_swap = np.take_along_axis(walks, ahead, 1) & (np.take_along_axis(wanted, ahead, 1) == here)
    moves: BoolArray = walks & ~contested & ~(is_taken & is_swap)
    while True:
        blocked = moves & is_taken & ~np.take_along_axis(moves, ahead, 1)
        if not blocked.any():
            return moves, contested
        moves &= ~blocked


def _ahead(seats: Places) -> tuple[BoolArray, Places]:
    """Finds whether an agent stands in the wanted place, and its seat; 0 if there is none."""
    return seats >= 0, np.maximum(seats, 0)
