"""Conflicts of agents that move at the same time."""

from __future__ import annotations

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
    both = walks[:, :, None] & walks[:, None, :]
    both[:, range(here.shape[1]), range(here.shape[1])] = False
    contested = (both & (wanted[:, :, None] == wanted[:, None, :])).any(axis=2)
    follows = wanted[:, :, None] == here[:, None, :]
    swaps = (both & follows & follows.transpose(0, 2, 1)).any(axis=2)
    moves = walks & ~contested & ~swaps
    while True:
        blocked = moves & (follows & ~moves[:, None, :]).any(axis=2)
        if not blocked.any():
            return moves, contested
        moves &= ~blocked
