"""``Environment``: a world with agents as a game. It keeps the turns, and the contract of all games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from keisei.errors import ConfigError, SavedStateError
from keisei.games.array_batch import ArrayBatch
from keisei.games.contract import (
    Array,
    BoolArray,
    ByteArray,
    FloatArray,
    GameSpec,
    IntArray,
    ObservationSpec,
)
from keisei.games.offers import Symbol
from keisei.games.options import MAX_GAME, whole_number
from keisei.games.worlds.agents import Agent
from keisei.games.worlds.colours import agent_colour
from keisei.games.worlds.conflicts import resolve
from keisei.games.worlds.entities import Colour, Entity
from keisei.games.worlds.face import WorldFace
from keisei.games.worlds.picture import own_colours, world_colours, world_svg, world_text
from keisei.games.worlds.world import MOST_CELLS, Places, World

__all__ = ["TURN_RULES", "Environment", "TurnRule", "walled"]

TurnRule: TypeAlias = Literal["in-order", "one-by-one", "at-once"]
TURN_RULES: tuple[TurnRule, ...] = ("in-order", "one-by-one", "at-once")
ENDINGS = ("unfinished", "finished", "max_turns")


def walled(height: int, width: int) -> list[str]:
    """Makes the layout of an empty world with walls in its outer cells."""
    edge, row = "#" * width, ("#" + "." * (width - 2) + "#")[:width]
    return [edge, *[row] * (height - 2), edge][:height]


class Environment(ArrayBatch):
    """A batch of worlds in which agents act.

    A subclass gives a layout, kinds and agents. ``kinds`` begins with the empty cell and the wall; the kinds of the
    agents are added. A turn is: all agents act, then the entities change (``Entity.transition``).

    ``turns`` says how agents act in a turn:

    - ``in-order``: all see the same world. Then they act one after the other, by seat.
    - ``one-by-one``: each sees the world as the one before left it. A step of the game is the act of one agent.
    - ``at-once``: all see the same world and act at the same time. See ``conflicts.resolve``.
    """

    name: ClassVar[str]

    def __init__(
        self,
        layout: Sequence[str],
        kinds: Sequence[Entity],
        agents: Sequence[Agent],
        *,
        max_turns: int = 100,
        turns: TurnRule = "in-order",
        batch: int = 1,
        seed: int = 0,
        first_game: int = 0,
        options: dict[str, object] | None = None,
    ) -> None:
        _check(self.name, layout, agents, turns)
        self.agents, self.turns = tuple(agents), turns
        for seat, agent in enumerate(agents):
            agent.seat = seat
        seen = agents[0].observation_spec
        looks = {agent.kind: agent for agent in agents}
        self.world = World(
            len(layout), len(layout[0]), [*kinds, *looks.values()],
            batch=batch, agents=len(agents), margin=max(1, seen.margin),
        )  # fmt: skip
        self.world.build(layout)
        self._ends = all(type(agent).is_done is not Agent.is_done for agent in agents)
        self._vacant = self.start_places()
        _check_room(self.name, len(self._vacant), len(agents))
        limit = whole_number("max_turns", max_turns, 1, MAX_GAME // len(agents))
        numbering = {"batch": batch, "seed": seed, "first_game": first_game}
        super().__init__(self._make_spec(limit), {"turns": turns} | (options or {}), **numbering)
        self.keep("grid", self.world.by_game)
        self.keep("agents", self.world.agents)
        self.keep("resting", self.world.resting)
        self._mover = self.keep("mover", np.zeros(batch, np.int16))
        self.prepare()
        self.start()

    def _make_spec(self, max_turns: int) -> GameSpec:
        agent, seats = self.agents[0], len(self.agents)
        seen = agent.observation_spec
        return GameSpec(
            name=self.name,
            seats=seats,
            num_actions=len(agent.action_spec.names),
            observation=ObservationSpec(
                seen.shape(self.world), np.dtype(np.uint8), scale=seen.scale(self.world)
            ),
            packed_bytes=seen.view_bytes(self.world),
            simultaneous=self.turns != "one-by-one",
            max_plies=max_turns * (seats if self.turns == "one-by-one" else 1),
            endings=ENDINGS,
            scored_by_rewards=True,
            chance=True,
        )

    # What a world of your own may change -------------------------------------------------------------

    def start_places(self) -> Places:
        """The places of the first world where agents may start. By default all that are free in a new world."""
        return self.world.vacant()

    def prepare(self) -> None:
        """Makes further arrays of the state with ``keep``."""

    def populate(self, games: Places) -> None:
        """Adds things to these new worlds. The agents are there already."""

    def before_acts(self) -> None:
        """Is called before agents act."""

    # Turns -------------------------------------------------------------------------------------------

    def acting(self) -> BoolArray | None:
        if self.turns == "one-by-one":
            acts: BoolArray = self._mover[:, None] == np.arange(len(self.agents))
            return acts
        resting = self.world.resting
        return resting == 0 if resting.any() else None

    def play(self, actions: IntArray) -> tuple[FloatArray, BoolArray]:
        world = self.world
        world.random = self.random
        world.rewards[...] = 0
        self.before_acts()
        if self.turns == "at-once":
            self._act_at_once(actions)
        else:
            self._act_in_order(actions)
        if self.turns == "one-by-one":
            self._pass_the_turn()
        else:
            self._end_turn()
        return world.rewards.copy(), self._is_over()

    def _is_over(self) -> BoolArray:
        if not self._ends:
            return np.zeros(self.batch, np.bool_)
        done: BoolArray = np.logical_and.reduce([agent.is_done(self.world) for agent in self.agents])
        return done

    def _act_in_order(self, actions: IntArray) -> None:
        world = self.world
        for seat, agent in enumerate(self.agents):
            awake = (actions[:, seat] >= 0) & (world.resting[:, seat] == 0)
            if awake.any():
                world.rewards[:, seat] += agent.act(world, actions[:, seat], awake)

    def _act_at_once(self, actions: IntArray) -> None:
        world, layer = self.world, self.agents[0].layer
        awake = actions >= 0
        here = world.agents.copy()
        wanted = np.stack([agent.aim(world, actions[:, agent.seat]) for agent in self.agents], axis=1)
        walks = awake & (wanted != here)
        moves, contested = resolve(here, wanted, walks & world.is_open(wanted))
        looks = world.observe(here[moves], layer)
        world.remove(here[moves], layer)
        for seat, agent in enumerate(self.agents):
            counts = walks[:, seat] & ~contested[:, seat]
            world.rewards[:, seat] += agent.reward(world, wanted[:, seat]) * counts
        world.put(looks, wanted[moves], layer)
        world.agents[moves] = wanted[moves]
        for seat, agent in enumerate(self.agents):
            agent.arrive(world, np.flatnonzero(moves[:, seat]))
        for seat, agent in enumerate(self.agents):
            used = agent.use(world, actions[:, seat], wanted[:, seat], awake[:, seat])
            world.rewards[:, seat] += used

    def _pass_the_turn(self) -> None:
        """Passes the turn to the next agent that is awake. The turn of the world ends after its last agent."""
        awake = self.world.resting == 0
        later = awake & (np.arange(len(self.agents)) > self._mover[:, None])
        ended = ~later.any(axis=1)
        if ended.all():
            self._end_turn()
        elif ended.any():
            changing = [*self._kept.values(), self.world.rewards]
            before = [array.copy() for array in changing]
            self._end_turn()
            for array, old in zip(changing, before, strict=True):
                array[~ended] = old[~ended]
        following = np.where(ended[:, None], self.world.resting == 0, later)
        self._mover[:] = following.argmax(axis=1)

    def _end_turn(self) -> None:
        world = self.world
        if world.resting.any():
            world.resting -= world.resting > 0
            # Nobody could act if all rested, so those that would wake first wake now.
            world.resting -= world.resting.min(axis=1, keepdims=True)
        for kind in world.kinds:
            if kind.has_transition:
                kind.transition(world)

    def restart(self, games: Places) -> None:
        world = self.world
        world.random = self.random
        world.clear(games)
        world.agents[games] = world.scatter(games, self._vacant, len(self.agents))
        for agent in self.agents:
            world.add(agent, world.agents[games, agent.seat])
        self._mover[games] = 0
        self.populate(games)

    # Rows --------------------------------------------------------------------------------------------

    def pack_rows(self, games: Array, seats: Array) -> ByteArray:
        return self.agents[0].observation_spec.views(self.world, self.world.agents[games, seats])

    def expand(self, packed: ByteArray, out: Array) -> None:
        self.agents[0].observation_spec.encode(self.world, packed, out)

    def are_possible(self, packed: ByteArray) -> BoolArray:
        return self.agents[0].observation_spec.are_possible(self.world, packed)

    def text(self, game: int = 0) -> str:
        return world_text(self.world, game)

    def move_name(self, action: int, game: int = 0) -> str:
        return self.agents[0].action_spec.names[action]

    def symbols(self) -> dict[str, Symbol]:
        """Gets the meaning of each letter in ``text``. If several kinds share a letter, the first one counts."""
        return {kind.letter: Symbol(kind.kind, kind.colour) for kind in reversed(self.world.kinds)}

    def standing(self, seat: int, game: int = 0) -> tuple[int, int]:
        _, row, column = self.world.coordinates(self.world.agents[game, seat])
        return int(row), int(column)

    def seat_colour(self, seat: int) -> Colour:
        return agent_colour(seat)

    def own_colours(self, game: int = 0) -> dict[tuple[int, int], Colour]:
        return own_colours(self.world, game)

    def colours(self, game: int = 0) -> ByteArray:
        """[height, width, 3]: a picture of a world with one pixel for each cell."""
        return world_colours(self.world, game)

    def row_face(self) -> WorldFace:
        """Gets the face that draws packed rows, which show what agents see."""
        return WorldFace(self.world, self.agents)

    def svg(self, game: int = 0) -> str:
        return world_svg(self.world, game)

    # Keeping -----------------------------------------------------------------------------------------

    def check_state(self) -> None:
        super().check_state()
        self.world.check_state()
        if not np.isin(self._mover, np.arange(len(self.agents))).all():
            raise SavedStateError(f"saved state of {self.spec.name} names a seat that does not exist")


def _check(name: str, layout: Sequence[str], agents: Sequence[Agent], turns: str) -> None:
    """Refuses turns, agents and layouts that make no possible world."""
    if turns not in TURN_RULES:
        raise ConfigError(f"turns of {name} must be one of {', '.join(TURN_RULES)}; got {turns!r}")
    if not agents:
        raise ConfigError(f"{name} needs at least one agent, got none")
    height, width = len(layout), len(layout[0]) if layout else 0
    if {len(row) for row in layout} != {width} or not 0 < height * width <= MOST_CELLS:
        raise ConfigError(
            f"the layout of {name} must be rows of one length with 1 to {MOST_CELLS} cells, got rows of "
            f"{sorted({len(row) for row in layout})} cells"
        )
    seen, actions = agents[0].observation_spec, agents[0].action_spec
    if any(agent.observation_spec != seen or agent.action_spec != actions for agent in agents):
        raise ConfigError(f"all agents of {name} must have the same observation and the same actions")
    if len({agent.layer for agent in agents}) > 1:
        raise ConfigError(
            f"all agents of {name} must be in one layer, so that they stand in each other's way"
        )
    if seen.margin >= max(height, width):
        raise ConfigError(
            f"a view of radius {seen.radius} is wider than the world of {name}, {height} x {width} cells; take at most "
            f"{max(height, width) - 1}, or none to show the whole world"
        )


def _check_room(name: str, free: int, agents: int) -> None:
    if free < agents:
        raise ConfigError(
            f"{name} has {free} free cells, which is no room for {agents} agents; make the world larger, or take "
            f"fewer agents"
        )
