"""Treasure hunt with an object in each cell, written from docs/games/treasurehunt.md and worlds.md. It is slow and
plain: an oracle for the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from keisei.games.contract import ByteArray
from keisei.games.randomness import Stream, keyed_word

Cell: TypeAlias = tuple[int, int]
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
PLANES = "#gfbA"


@dataclass
class Thing:
    letter: str
    value: float = 0.0
    passable: bool = True


@dataclass
class Walker(Thing):
    seat: int = 0
    cell: Cell = (0, 0)
    gained: float = 0.0


@dataclass
class Rules:
    agents: int = 2
    height: int = 21
    width: int = 21
    max_turns: int = 100
    turns: str = "in-order"
    vision: int | None = 2
    gem: float = 10.0
    food: float = 5.0
    bone: float = -10.0
    wall: float = -1.0
    spawn: float = 0.005


@dataclass
class SlowField:
    """One field of treasure hunt."""

    rules: Rules
    seed: int
    game: int
    episode: int
    ply: int = 0
    to_act: int = 0
    """With ``one-by-one``: whose act is next."""
    cells: dict[Cell, Thing] = field(default_factory=dict)
    walkers: list[Walker] = field(default_factory=list)

    def __post_init__(self) -> None:
        rules = self.rules
        for row in range(rules.height):
            for column in range(rules.width):
                edge = row in (0, rules.height - 1) or column in (0, rules.width - 1)
                wall = Thing("#", rules.wall, passable=False)
                self.cells[row, column] = wall if edge else Thing(".")
        inner = [cell for cell, thing in self.cells.items() if thing.letter == "."]
        words = {cell: self.word(Stream.RESET, 0, 1, number) for number, cell in enumerate(inner)}
        for seat, cell in enumerate(sorted(inner, key=lambda cell: words[cell])[: rules.agents]):
            self.walkers.append(Walker("A", passable=False, seat=seat, cell=cell))
            self.cells[cell] = self.walkers[-1]

    def word(self, stream: Stream, ply: int, draw: int, number: int) -> int:
        return keyed_word(self.seed, self.game, self.episode, ply, stream, (draw << 32) + number)

    def uniform(self, draw: int, number: int) -> float:
        return (self.word(Stream.CHANCE, self.ply, draw, number) >> 11) * 2.0**-53

    @property
    def acting(self) -> list[int]:
        return [self.to_act] if self.rules.turns == "one-by-one" else list(range(self.rules.agents))

    @property
    def is_over(self) -> bool:
        acts = self.rules.agents if self.rules.turns == "one-by-one" else 1
        return self.ply == self.rules.max_turns * acts

    def play(self, actions: list[int]) -> list[float]:
        """One step: an action for each seat that acts. Gives the reward of each seat."""
        rewards = [0.0] * self.rules.agents
        acts = dict(zip(self.acting, actions, strict=True))
        if self.rules.turns == "at-once":
            self.act_at_once(acts, rewards)
        else:
            for seat, action in acts.items():
                rewards[seat] = self.act(self.walkers[seat], action)
        if self.rules.turns == "one-by-one":
            self.to_act = (self.to_act + 1) % self.rules.agents
        if self.rules.turns != "one-by-one" or self.to_act == 0:
            self.let_things_appear()
        self.ply += 1
        for walker, reward in zip(self.walkers, rewards, strict=True):
            walker.gained += reward
        return rewards

    def act(self, walker: Walker, action: int) -> float:
        target = beside(walker.cell, action)
        thing = self.cells[target]
        if thing.passable:
            self.cells[walker.cell] = Thing(".")
            self.cells[target] = walker
            walker.cell = target
        return thing.value

    def act_at_once(self, acts: dict[int, int], rewards: list[float]) -> None:
        wanted = {seat: beside(self.walkers[seat].cell, action) for seat, action in acts.items()}
        enters = {
            seat: cell
            for seat, cell in wanted.items()
            if self.cells[cell].passable or isinstance(self.cells[cell], Walker)
        }
        contested = {cell for cell, count in Counter(enters.values()).items() if count > 1}

        def can_move(seat: int, begun: frozenset[int] = frozenset()) -> bool:
            if seat in begun:
                return len(begun) > 2  # a circle; of two it would be a change of places
            if seat not in enters or enters[seat] in contested:
                return False
            thing = self.cells[enters[seat]]
            return not isinstance(thing, Walker) or can_move(thing.seat, begun | {seat})

        movers = [seat for seat in acts if can_move(seat)]
        for seat in movers:
            self.cells[self.walkers[seat].cell] = Thing(".")
        for seat, cell in wanted.items():
            if seat not in enters or enters[seat] not in contested:
                rewards[seat] = self.cells[cell].value
        for seat in movers:
            self.walkers[seat].cell = wanted[seat]
            self.cells[wanted[seat]] = self.walkers[seat]

    def let_things_appear(self) -> None:
        rules = self.rules
        for number in list(self.struck()):
            cell = divmod(number, rules.width)
            if self.cells[cell].letter == ".":
                kinds = (Thing("g", rules.gem), Thing("f", rules.food), Thing("b", rules.bone))
                self.cells[cell] = kinds[int(3 * self.uniform(2, number))]

    def struck(self) -> Iterator[int]:
        """The numbers of the cells where something appears if they are empty."""
        cells, at, draw = self.rules.height * self.rules.width, -1, 0
        while True:
            number = self.uniform(1, draw)
            at, draw = at + 1, draw + 1
            chance = 1.0 - self.rules.spawn
            passed = 0
            while passed < cells and number < chance:
                passed += 1
                chance *= 1.0 - self.rules.spawn
            at += passed
            if at >= cells:
                return
            yield at

    def text(self) -> str:
        rows = range(self.rules.height)
        return "\n".join(
            "".join(self.cells[row, column].letter for column in range(self.rules.width)) for row in rows
        )

    def observation(self, seat: int) -> ByteArray:
        """Planes of what a seat sees."""
        row, column = self.walkers[seat].cell
        radius = self.rules.vision
        if radius is None:
            rows, columns = range(self.rules.height), range(self.rules.width)
        else:
            rows = range(row - radius, row + radius + 1)
            columns = range(column - radius, column + radius + 1)
        planes = np.zeros((len(PLANES) + (radius is None), len(rows), len(columns)), np.uint8)
        for down, r in enumerate(rows):
            for right, c in enumerate(columns):
                letter = self.cells[r, c].letter if (r, c) in self.cells else "#"
                if letter != ".":
                    planes[PLANES.index(letter), down, right] = 1
                if radius is None and (r, c) == (row, column):
                    planes[-1, down, right] = 1
        return planes


def beside(cell: Cell, action: int) -> Cell:
    down, right = STEPS[action]
    return cell[0] + down, cell[1] + right
