"""A kit for grid worlds in which several agents act. See docs/games/worlds.md.

Worlds come in batches: cells are arrays, and entities change by functions over all worlds at once.
"""

from keisei.games.worlds.agents import MOVES, ActionSpec, Agent
from keisei.games.worlds.entities import Empty, Entity, Wall
from keisei.games.worlds.environment import Environment, walled
from keisei.games.worlds.observations import (
    AsciiObservationSpec,
    OneHotObservationSpec,
    RGBObservationSpec,
)
from keisei.games.worlds.world import World

__all__ = [
    "MOVES",
    "ActionSpec",
    "Agent",
    "AsciiObservationSpec",
    "Empty",
    "Entity",
    "Environment",
    "OneHotObservationSpec",
    "RGBObservationSpec",
    "Wall",
    "World",
    "walled",
]
