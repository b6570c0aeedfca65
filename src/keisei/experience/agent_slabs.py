"""What one agent has seen of a slab: a slab of its own, as of a game with one seat.

Independent agents share nothing, so their memories do not either. The decisions of an agent, with its own rewards,
are copied out of the workers' slab into memory that belongs to this agent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keisei.experience.collected import CollectedSlab
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout
from keisei.games.contract import Array, GameSpec
from keisei.machine.shared_memory import SharedBlock

__all__ = ["copy_of_agent", "empty_slab", "shape_of_agent", "spec_of_agent"]

_PER_GAME = ("terminated", "truncated", "ending", "opponent")
_PER_SEAT = ("reward", "score")


def spec_of_agent(spec: GameSpec) -> GameSpec:
    """Describes the game as one agent sees it: it has one seat, and the others are part of the environment. The agent
    may rest while others act, as in a game in which several seats act at once."""
    return replace(spec, seats=1, simultaneous=True, zero_sum=False)


def shape_of_agent(shape: SlabShape) -> SlabShape:
    return replace(shape, seats=1, simultaneous=True)


def empty_slab(shape: SlabShape) -> Slab:
    """Makes a slab in the memory of this process."""
    return Slab(shape, SharedBlock.private(slab_layout(shape).nbytes))


def copy_of_agent(item: CollectedSlab, agent: int, into: Slab) -> CollectedSlab:
    """Copies what an agent has decided and received. Other seats leave no trace, except in what the agent saw."""
    slab, seats = item.slab, item.slab.shape.seats
    for field, target in into.columns():
        source: Array = getattr(slab, field.name)
        if field.name in _PER_SEAT:
            target[:] = source[:, :, agent : agent + 1]
        elif field.name in _PER_GAME or not slab.shape.simultaneous:
            target[:] = source
        else:
            target[:] = source[:, agent::seats]
    _leave_out_others(into, agent)
    return CollectedSlab(item.record.without_slab(), item.first_game, into)


def _leave_out_others(slab: Slab, agent: int) -> None:
    """Clears the rows in which another seat acts, as in games that take turns, and calls the agent's own seat 0."""
    mine = slab.acting & (slab.seat == agent)
    if not mine.all():
        slab.packed[~mine] = 0
    slab.acting[:], slab.seat[:] = mine, 0
    slab.owner[:] = np.where(mine[:-1] & (slab.owner == agent), 0, -1)
    slab.final_seat[:] = np.where(slab.final_seat == agent, 0, -1)
