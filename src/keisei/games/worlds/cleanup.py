"""Cleanup: apples grow only while the river is clean, and cleaning it brings nothing. See docs/games/cleanup.md."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from keisei.config import parse_settings
from keisei.games.contract import BoolArray, FloatArray, IntArray
from keisei.games.worlds.agents import MOVES, ActionSpec, Agent
from keisei.games.worlds.entities import Empty, Entity, Wall
from keisei.games.worlds.environment import Environment
from keisei.games.worlds.observations import WorldObservation
from keisei.games.worlds.options import Probability, Reward, WorldOptions
from keisei.games.worlds.world import EMPTY, WALL, Places, World

__all__ = ["Cleanup", "CleanupOptions"]

GROUND, FIGURES, LIGHTS = 0, 1, 2
"""The layers: the ground, the agents, and beams with the marks of agents that rest."""
RIVER = 3
"""How many columns the river has."""
ACTIONS = ActionSpec((*MOVES.names, "stay", "clean", "zap"))


class CleanupOptions(WorldOptions):
    """The options of cleanup."""

    agents: Annotated[int, Field(ge=1, le=1024)] = 5
    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    vision: Annotated[int, Field(ge=0, le=255)] | None = 4
    height: Annotated[int, Field(ge=3, le=256)] = 12
    width: Annotated[int, Field(ge=9, le=256)] = 18
    apple: Reward = 1.0
    """The reward for an apple."""
    zap: Reward = -1.0
    """The reward for firing the zapping beam."""
    zapped: Reward = 0.0
    """The reward for being zapped."""
    rest: Annotated[int, Field(ge=0, le=1000)] = 10
    """For how many turns an agent rests after it was zapped."""
    beam: Annotated[int, Field(ge=1, le=32)] = 5
    """How many cells a beam reaches."""
    dirt: Probability = 0.25
    """The share of the river that is dirty at the start."""
    pollution: Probability = 0.5
    """The probability with which a cell of the river becomes dirty in a turn."""
    growth: Probability = 0.05
    """The probability with which an apple grows in a cell of the orchard in a turn, beside a clean river."""
    limit: Annotated[float, Field(gt=0, le=1)] = 0.4
    """The dirty share of the river at which no apples grow, and no more dirt comes."""


def dirty_share(world: World) -> NDArray[np.float64]:
    """[batch]: which share of the river is dirty."""
    river = np.count_nonzero(world.blank[GROUND] == world.number(Water))
    share: NDArray[np.float64] = world.count(Dirt) / river
    return share


class Water(Entity):
    """The clean river. Dirt comes into it."""

    letter, colour = "~", (110, 160, 220)

    def __init__(self, options: CleanupOptions) -> None:
        super().__init__()
        self.options = options

    def transition(self, world: World) -> None:
        comes = (world.uniform() < self.options.pollution) & (dirty_share(world) < self.options.limit)
        games, places = world.draw(self)
        world.add(Dirt, places[comes[games]])


class Dirt(Entity):
    letter, colour = "w", (110, 90, 50)


class Orchard(Entity):
    """Where apples grow."""

    passable, letter, colour = True, ",", (200, 215, 170)

    def __init__(self, options: CleanupOptions) -> None:
        super().__init__()
        self.options = options

    def transition(self, world: World) -> None:
        """Draws apples as if the river were clean, then keeps each with the share that still grows."""
        places = world.sample(self, self.options.growth)
        share = 1 - dirty_share(world) / self.options.limit
        grows = world.uniform_at(places) < share[places // world.size]
        world.add(Apple, places[grows])


class Apple(Entity):
    passable, letter, colour = True, "a", (200, 50, 50)


class Beam(Entity):
    passable, layer = True, LIGHTS


class CleaningBeam(Beam):
    letter, colour = "*", (120, 220, 250)


class ZappingBeam(Beam):
    letter, colour = "!", (250, 200, 60)


class Resting(Beam):
    """Marks agents that rest."""

    letter, colour = "z", (120, 120, 120)

    def transition(self, world: World) -> None:
        lights = world.grid[LIGHTS]
        lights[lights == world.number(self)] = EMPTY
        world.add(self, world.agents[world.resting > 0])


class Figure(Entity):
    """The look of an agent that faces one way."""

    layer, colour, is_agent = FIGURES, (70, 60, 160), True


class FacingDown(Figure):
    letter = "v"


class FacingLeft(Figure):
    letter = "<"


class FacingRight(Figure):
    letter = ">"


class Cleaner(Agent):
    """An agent that gathers apples, cleans and zaps. It faces the way of its last step, and up at first."""

    kind: ClassVar[str] = "facingup"
    layer, letter, colour = FIGURES, "^", (70, 60, 160)

    def __init__(self, seen: WorldObservation, options: CleanupOptions) -> None:
        super().__init__(seen, ACTIONS)
        self.options = options

    def arrive(self, world: World, games: Places) -> None:
        """An apple that was taken leaves its cell of the orchard."""
        places = world.agents[games, self.seat]
        world.add(Orchard, places[world.observe(places) == world.number(Apple)])

    def use(self, world: World, actions: IntArray, wanted: Places, awake: BoolArray) -> FloatArray:
        self._turn(world, actions, awake)
        self._clean(world, awake & (actions == ACTIONS.number("clean")))
        return self._zap(world, awake & (actions == ACTIONS.number("zap")))

    def _turn(self, world: World, actions: IntArray, awake: BoolArray) -> None:
        steps = awake & (actions < len(MOVES.names))
        world.put(_figures(world)[actions[steps]], world.agents[steps, self.seat], FIGURES)

    def _clean(self, world: World, games: BoolArray) -> None:
        beam = self._beam(world, games)
        world.add(CleaningBeam, beam)
        world.add(Water, beam[world.observe(beam) == world.number(Dirt)])

    def _zap(self, world: World, games: BoolArray) -> FloatArray:
        beam = self._beam(world, games)
        world.add(ZappingBeam, beam)
        lit = np.zeros(world.grid.shape[1], np.bool_)
        lit[beam] = True
        hit, victims = np.nonzero(lit[world.agents] & (world.resting == 0))
        world.rest(hit, victims, self.options.rest)
        world.rewards[hit, victims] += np.float32(self.options.zapped)
        return games * np.float32(self.options.zap)

    def _beam(self, world: World, games: BoolArray) -> Places:
        """Finds all places that the agent's beam reaches in these worlds: three lanes ahead, each up to a wall."""
        here = world.agents[games, self.seat]
        facing = (_figures(world) == world.observe(here, FIGURES)[:, None]).argmax(axis=1)
        lanes = _lanes(world.span, self.options.beam)[facing] + here[:, None, None]
        lanes = np.clip(lanes, 0, world.grid.shape[1] - 1)  # beyond the edge, where a wall has stopped them
        stopped = np.logical_or.accumulate(world.observe(lanes) == WALL, axis=2)
        reached: Places = lanes[~stopped]
        return reached


def _figures(world: World) -> IntArray:
    """Gets the numbers of the figures that face up, down, left and right."""
    return np.array([world.number(kind) for kind in (Cleaner, FacingDown, FacingLeft, FacingRight)])


@lru_cache(maxsize=64)
def _lanes(span: int, length: int) -> Places:
    """[facing, lane, cell]: how far the cells of a beam are from the agent. The lanes beside it begin in the row
    ahead."""
    ahead = MOVES.offsets(span)[:4]
    aside = np.array([1, 1, span, span])
    lane, cell = np.arange(-1, 2), np.arange(1, length + 1)
    return aside[:, None, None] * lane[:, None] + ahead[:, None, None] * cell


def riverside(height: int, width: int) -> list[str]:
    """Makes the layout: the river on the left, a bank, and the orchard on the right."""
    inside = width - 2 - RIVER
    bank = max(1, inside // 3)
    row = "#" + "~" * RIVER + "." * bank + "," * (inside - bank) + "#"
    return ["#" * width, *[row] * (height - 2), "#" * width]


class Cleanup(Environment):
    """Apples grow while the river is clean. Agents gather them, clean the river, and zap each other."""

    name = "cleanup"
    OPTION_NAMES = tuple(CleanupOptions.model_fields)

    def __init__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> None:
        self.options = o = parse_settings(CleanupOptions, options, "the options of cleanup")
        seen = o.observation_spec()
        ground = [Empty(), Wall(), Water(o), Dirt(), Orchard(o), Apple(value=o.apple)]
        figures = [FacingDown(), FacingLeft(), FacingRight()]
        super().__init__(
            riverside(o.height, o.width),
            [*ground, CleaningBeam(), ZappingBeam(), Resting(), *figures],
            [Cleaner(seen, o) for _ in range(o.agents)],
            max_turns=o.max_turns, turns=o.turns, options=o.model_dump(),
            batch=batch, seed=seed, first_game=first_game,
        )  # fmt: skip

    def populate(self, games: Places) -> None:
        world = self.world
        river = np.flatnonzero(world.blank[GROUND] == world.number(Water))
        dirty = world.everywhere(games, river)
        order = world.random.words_of(games[:, None], np.arange(len(river))).argsort(axis=1, kind="stable")
        count = round(self.options.dirt * len(river))
        world.add(Dirt, np.take_along_axis(dirty, order[:, :count], axis=1))

    def before_acts(self) -> None:
        self.world.grid[LIGHTS] = EMPTY
        self.world.add(Resting, self.world.agents[self.world.resting > 0])
