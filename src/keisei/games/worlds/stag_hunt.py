"""Stag hunt: hares can be caught alone, stags only together. See docs/games/stag_hunt.md."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games.contract import BoolArray, FloatArray, IntArray
from keisei.games.worlds.agents import MOVES_AND_STAY, Agent
from keisei.games.worlds.entities import Empty, Entity, Wall
from keisei.games.worlds.environment import Environment, walled
from keisei.games.worlds.observations import WorldObservation
from keisei.games.worlds.options import Probability, Reward, Side, WorldOptions
from keisei.games.worlds.world import Places, World

__all__ = ["StagHunt", "StagHuntOptions"]


class StagHuntOptions(WorldOptions):
    """The options of stag hunt."""

    vision: Annotated[int, Field(ge=0, le=255)] | None = 3
    height: Side = 9
    width: Side = 9
    hares: Annotated[int, Field(ge=0, le=1024)] = 4
    """How many hares there are at most."""
    stags: Annotated[int, Field(ge=0, le=1024)] = 2
    """How many stags there are at most."""
    hare: Reward = 1.0
    """The reward for a hare."""
    stag: Reward = 5.0
    """The reward for a stag, for each agent beside it."""
    alone: Reward = -1.0
    """The reward for attacking a stag alone."""
    back: Probability = 0.1
    """The probability with which a hare comes back in a turn, and a stag, if any is missing."""


class Prey(Entity):
    """Animals. Those that were caught come back one by one, in empty cells."""

    def __init__(self, most: int, back: float, value: float = 0.0) -> None:
        super().__init__(value=value)
        self.most, self.back = most, back

    def transition(self, world: World) -> None:
        returns = (world.uniform() < self.back) & (world.count(self) < self.most)
        games, places = world.draw("empty")
        world.add(self, places[returns[games]])


class Hare(Prey):
    passable, letter, colour = True, "h", (150, 120, 80)


class Stag(Prey):
    letter, colour = "S", (110, 60, 30)


class Hunter(Agent):
    """An agent that hunts."""

    kind: ClassVar[str] = "agent"

    def __init__(self, seen: WorldObservation, options: StagHuntOptions) -> None:
        super().__init__(seen, MOVES_AND_STAY)
        self.options = options

    def use(self, world: World, actions: IntArray, wanted: Places, awake: BoolArray) -> FloatArray:
        attacks = awake & (world.observe(wanted) == world.number(Stag))
        distance = np.abs(world.agents - wanted[:, None])
        beside = (distance == 1) | (distance == world.span)
        caught = attacks & (beside.sum(axis=1) > 1)
        world.rewards += (beside & caught[:, None]) * np.float32(self.options.stag)
        world.remove(wanted[caught])
        paid: FloatArray = (attacks & ~caught) * np.float32(self.options.alone)
        return paid


class StagHunt(Environment):
    """Hares can be caught alone, stags only together."""

    name = "stag-hunt"
    OPTION_NAMES = tuple(StagHuntOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(StagHuntOptions, options, "the options of stag-hunt")
        seen = o.observation_spec()
        super().__init__(
            walled(o.height, o.width),
            [Empty(), Wall(), Hare(o.hares, o.back, o.hare), Stag(o.stags, o.back)],
            [Hunter(seen, o) for _ in range(o.agents)],
            max_turns=o.max_turns, turns=o.turns, options=o.model_dump(),
            batch=batch, seed=seed, first_game=first_game,
        )  # fmt: skip

    def start_places(self) -> Places:
        """The agents are placed together with the animals, which need room too."""
        vacant = self.world.vacant()
        needed = self.options.agents + self.options.hares + self.options.stags
        if len(vacant) < needed:
            raise ConfigError(
                f"stag-hunt has {len(vacant)} free cells, which is no room for {self.options.agents} agents, "
                f"{self.options.hares} hares and {self.options.stags} stags; make the world larger"
            )
        return vacant

    def populate(self, games: Places) -> None:
        hares = self.options.hares
        places = self.world.scatter(games, self._vacant, hares + self.options.stags)
        self.world.add(Hare, places[:, :hares])
        self.world.add(Stag, places[:, hares:])
