"""Treasure hunt: agents look for gems and food, and avoid bones. See docs/games/treasurehunt.md."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keisei.config import parse_settings
from keisei.games.contract import IntArray
from keisei.games.worlds.agents import Agent
from keisei.games.worlds.entities import Empty, Entity, Wall
from keisei.games.worlds.environment import Environment, walled
from keisei.games.worlds.options import Probability, Reward, Side, WorldOptions
from keisei.games.worlds.seekers import steps_to_treasure
from keisei.games.worlds.world import World

__all__ = ["TreasureHunt", "TreasureHuntOptions"]


class TreasureHuntOptions(WorldOptions):
    """The options of treasure hunt."""

    height: Side = 21
    width: Side = 21
    gem: Reward = 10.0
    """The reward for a gem."""
    food: Reward = 5.0
    """The reward for food."""
    bone: Reward = -10.0
    """The reward for a bone."""
    wall: Reward = -1.0
    """The reward for walking against a wall."""
    spawn: Probability = 0.005
    """The probability with which something appears in an empty cell in a turn."""


class Gem(Entity):
    passable, letter, colour = True, "g", (32, 160, 190)


class Food(Entity):
    passable, letter, colour = True, "f", (70, 150, 60)


class Bone(Entity):
    passable, letter, colour = True, "b", (150, 40, 40)


TREASURES = (Gem, Food, Bone)


class Soil(Empty):
    """An empty cell. Now and then a gem, food or a bone appears there, each as likely as the others."""

    kind = "empty"

    def __init__(self, spawn: float) -> None:
        super().__init__()
        self.spawn = spawn

    def transition(self, world: World) -> None:
        places = world.sample(self, self.spawn)
        first = world.number(Gem)  # the three have numbers in a row
        world.put(first + (world.uniform_at(places) * len(TREASURES)).astype(np.uint8), places)


class Hunter(Agent):
    """An agent that hunts for treasures."""

    kind: ClassVar[str] = "agent"


class TreasureHunt(Environment):
    """Agents look for treasures in a walled field."""

    name = "treasurehunt"
    OPTION_NAMES = tuple(TreasureHuntOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(TreasureHuntOptions, options, "the options of treasurehunt")
        seen = o.observation_spec()
        super().__init__(
            walled(o.height, o.width),
            [Soil(o.spawn), Wall(value=o.wall), Gem(value=o.gem), Food(value=o.food), Bone(value=o.bone)],
            [Hunter(seen) for _ in range(o.agents)],
            max_turns=o.max_turns, turns=o.turns, options=o.model_dump(),
            batch=batch, seed=seed, first_game=first_game,
        )  # fmt: skip

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Walks to the nearest treasure in view. See ``HasHeuristic``."""
        game, seat = self._row_index()
        if selected is not None:
            game, seat = game[selected], seat[selected]
        return steps_to_treasure(
            self.world, self.agents[0].observation_spec, self.world.agents[game, seat], keys
        )
