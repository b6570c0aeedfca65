"""Agents: entities that decide. One object stands for one seat, in all worlds of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import Array, BoolArray, FloatArray, IntArray
from keisei.games.worlds.entities import Entity
from keisei.games.worlds.observations import WorldObservation
from keisei.games.worlds.world import Places, World

__all__ = ["MOVES", "MOVES_AND_STAY", "ActionSpec", "Agent"]

_STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """The actions of agents, by name. ``up``, ``down``, ``left`` and ``right`` are steps to the cell beside; the
    others do not move an agent."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) != len(self.names):
            raise ConfigError(f"an ActionSpec has one or more distinct names, got {self.names}")

    def number(self, name: str) -> int:
        return self.names.index(name)

    def offsets(self, span: int) -> Places:
        """Computes how far each action moves. The last entry is 0, for agents that do not act (action -1)."""
        return _offsets(self.names, span)


@lru_cache(maxsize=64)
def _offsets(names: tuple[str, ...], span: int) -> Places:
    steps = (_STEPS.get(name, (0, 0)) for name in names)
    offsets = np.array([*(rows * span + columns for rows, columns in steps), 0])
    offsets.setflags(write=False)  # all agents share it
    return offsets


MOVES = ActionSpec(("up", "down", "left", "right"))
MOVES_AND_STAY = ActionSpec((*MOVES.names, "stay"))


class Agent(Entity):
    """An agent that walks. ``seat`` is its number in the world."""

    letter = "A"
    colour = (40, 90, 200)
    is_agent: ClassVar[bool] = True
    seat: int = -1

    def __init__(self, observation_spec: WorldObservation, action_spec: ActionSpec = MOVES) -> None:
        super().__init__()
        self.observation_spec = observation_spec
        self.action_spec = action_spec

    def pov(self, world: World) -> Array:
        """[batch, *shape]: what this agent sees in each world."""
        views = self.observation_spec.views(world, world.agents[:, self.seat])
        out = np.empty((world.batch, *self.observation_spec.shape(world)), np.uint8)
        self.observation_spec.encode(world, views, out)
        return out

    def act(self, world: World, actions: IntArray, awake: BoolArray) -> FloatArray:
        """Acts in all worlds in which it is awake, and returns its rewards [batch]."""
        wanted = self.aim(world, actions)
        here = world.agents[:, self.seat]
        walks = awake & (wanted != here)
        rewards: FloatArray = self.reward(world, wanted) * walks
        self.walk(world, wanted, walks & world.is_free(wanted))
        rewards += self.use(world, actions, wanted, awake)
        return rewards

    def aim(self, world: World, actions: IntArray) -> Places:
        """[batch]: the place where each action leads; its own place if it does not lead elsewhere."""
        wanted: Places = world.agents[:, self.seat] + self.action_spec.offsets(world.span)[actions]
        return wanted

    def reward(self, world: World, wanted: Places) -> FloatArray:
        """[batch]: the reward for walking into places, before anything has moved there."""
        return world.value(wanted)

    def walk(self, world: World, wanted: Places, moves: BoolArray) -> None:
        """Walks to the places wanted in the worlds where ``moves`` is true."""
        games = np.flatnonzero(moves)
        here, there = world.agents[games, self.seat], wanted[games]
        world.move(here, there, self.layer)
        world.agents[games, self.seat] = there
        self.arrive(world, games)

    def arrive(self, world: World, games: Places) -> None:
        """Is called when the agent has walked in these worlds. In a world of one layer it has already replaced what
        was in the cell."""

    def use(self, world: World, actions: IntArray, wanted: Places, awake: BoolArray) -> FloatArray:
        """[batch]: what else an action does after the walking, and the reward for it."""
        return np.zeros(world.batch, np.float32)

    def is_done(self, world: World) -> BoolArray:
        """[batch]: whether the agent has finished. A world ends when all its agents have."""
        return np.zeros(world.batch, np.bool_)
