"""Tag: one agent is it and chases the others. See docs/games/tag.md."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.config import parse_settings
from keisei.games.contract import BoolArray, FloatArray, IntArray
from keisei.games.worlds.agents import MOVES_AND_STAY, Agent
from keisei.games.worlds.entities import Empty, Entity, Wall
from keisei.games.worlds.environment import Environment, walled
from keisei.games.worlds.observations import WorldObservation
from keisei.games.worlds.options import Reward, Side, WorldOptions
from keisei.games.worlds.world import Places, World

__all__ = ["Tag", "TagOptions"]


class TagOptions(WorldOptions):
    """The options of tag."""

    agents: Annotated[int, Field(ge=2, le=1024)] = 4
    vision: Annotated[int, Field(ge=0, le=255)] | None = 3
    height: Side = 11
    width: Side = 11
    it: Reward = -1.0
    """The reward of the agent that is it, at the end of each turn."""
    tag: Reward = 5.0
    """The reward for tagging."""
    tagged: Reward = -5.0
    """The reward for being tagged."""
    rest: Annotated[int, Field(ge=0, le=1000)] = 2
    """For how many turns an agent rests after it was tagged."""


class It(Entity):
    """The look of the agent that is it. Each of its turns costs."""

    letter, colour, is_agent = "I", (200, 60, 40), True

    def __init__(self, cost: float) -> None:
        super().__init__()
        self.cost = cost

    def transition(self, world: World) -> None:
        world.rewards[world.observe(world.agents) == world.number(self)] += self.cost


class Runner(Agent):
    """An agent that plays tag. While it is it, it tags by walking into another one."""

    kind: ClassVar[str] = "runner"
    letter = "r"

    def __init__(self, seen: WorldObservation, options: TagOptions) -> None:
        super().__init__(seen, MOVES_AND_STAY)
        self.options = options

    def use(self, world: World, actions: IntArray, wanted: Places, awake: BoolArray) -> FloatArray:
        here = world.agents[:, self.seat]
        # An agent that was tagged in this turn rests, and does not tag back.
        awake = awake & (world.resting[:, self.seat] == 0)
        chases = awake & (world.observe(here) == world.number(It)) & (wanted != here)
        hits = chases[:, None] & (world.agents == wanted[:, None])
        games, victims = np.nonzero(hits)
        world.add(self, here[games])
        world.add(It, wanted[games])
        world.rest(games, victims, self.options.rest)
        world.rewards[games, victims] += np.float32(self.options.tagged)
        gained: FloatArray = hits.any(axis=1) * np.float32(self.options.tag)
        return gained


class Tag(Environment):
    """One agent is it and chases the others."""

    name = "tag"
    OPTION_NAMES = tuple(TagOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(TagOptions, options, "the options of tag")
        seen = o.observation_spec()
        super().__init__(
            walled(o.height, o.width),
            [Empty(), Wall(), It(o.it)],
            [Runner(seen, o) for _ in range(o.agents)],
            max_turns=o.max_turns, turns=o.turns, options=o.model_dump(),
            batch=batch, seed=seed, first_game=first_game,
        )  # fmt: skip

    def populate(self, games: Places) -> None:
        chosen = (self.world.uniform() * len(self.agents)).astype(np.int64)
        self.world.add(It, self.world.agents[games, chosen[games]])
