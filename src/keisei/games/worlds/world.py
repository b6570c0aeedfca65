"""``World``: the cells of a batch of grid worlds, as one array.

A **place** is a number for a cell of one world of the batch. All methods take and return places, as arrays of any
shape. Each world is stored with a margin of walls around it, so a step in one direction always adds the same number to
a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, log1p, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keisei.errors import ConfigError, GameError, SavedStateError
from keisei.games.contract import BoolArray, ByteArray, FloatArray
from keisei.games.randomness import BatchRandom, as_uniform
from keisei.games.worlds.entities import Entity, Kind

__all__ = ["EMPTY", "MOST_KINDS", "WALL", "Places", "World", "topmost"]

Places: TypeAlias = NDArray[np.int64]
EMPTY, WALL = 0, 1
"""The numbers of the first two kinds."""
MOST_KINDS = 127
"""Packed rows keep one bit of a cell's byte for the agent itself."""
MOST_CELLS = 1 << 16


class World:
    """A batch of worlds of height x width x layers. ``kinds`` begins with the empty cell and the wall."""

    def __init__(
        self,
        height: int,
        width: int,
        kinds: Sequence[Entity],
        *,
        batch: int = 1,
        agents: int = 0,
        margin: int = 1,
    ) -> None:
        self.kinds = _checked(kinds)
        self.height, self.width, self.batch, self.margin = height, width, batch, margin
        self.layers = 1 + max(kind.layer for kind in kinds)
        self._numbers = {kind.kind: number for number, kind in enumerate(self.kinds)}
        self.values = np.array([kind.value for kind in kinds], np.float32)
        self.passable = np.array([kind.passable for kind in kinds], np.bool_)
        self.is_agent = np.array([kind.is_agent for kind in kinds], np.bool_)
        self.span = width + 2 * margin
        """The distance of a place to the one below it."""
        self.size = (height + 2 * margin) * self.span
        """How many places a world has."""
        rows, columns = np.divmod(np.arange(height * width), width)
        self.interior: Places = (rows + margin) * self.span + columns + margin
        """The places of the cells of the first world, row by row."""
        self._cell_numbers = np.zeros(self.size, np.int64)
        self._cell_numbers[self.interior] = np.arange(height * width)
        self.grid: ByteArray = np.zeros((self.layers, batch * self.size), np.uint8)
        """[layers, places]: the number of the kind in each place; 0 if it is empty."""
        self.agents: Places = np.zeros((batch, agents), np.int64)
        """[batch, agents]: the place of each agent."""
        self.resting: NDArray[np.int16] = np.zeros((batch, agents), np.int16)
        """[batch, agents]: for how many turns an agent still rests, this one included; 0 if it is awake."""
        self.rewards: FloatArray = np.zeros((batch, agents), np.float32)
        """[batch, agents]: the rewards of this step. What an agent does may also reward others."""
        self.random = BatchRandom(0, np.arange(batch), 0)
        self._first = np.arange(batch) * self.size
        self.blank: ByteArray = np.zeros((self.layers, self.size), np.uint8)
        """[layers, places]: how each world looks when it is new."""
        self.blank[0] = WALL
        self.blank[0, self.interior] = EMPTY

    # Places ------------------------------------------------------------------------------------------

    @property
    def cells(self) -> ByteArray:
        """[batch, height, width, layers]: the kinds of all cells. Writing changes the worlds."""
        inside = slice(self.margin, -self.margin)
        squares = self.grid.reshape(self.layers, self.batch, -1, self.span)[:, :, inside, inside]
        return np.moveaxis(squares, 0, -1)

    @property
    def by_game(self) -> ByteArray:
        """[batch, places of a world, layers]: all places, those of the margin too. Writing changes the worlds."""
        return np.moveaxis(self.grid.reshape(self.layers, self.batch, self.size), 0, -1)

    def place(self, game: ArrayLike, row: ArrayLike, column: ArrayLike) -> Places:
        """Computes the places of cells. Row 0 is at the top, column 0 on the left."""
        inside = (np.asarray(row) + self.margin) * self.span + np.asarray(column) + self.margin
        places: Places = np.asarray(game) * self.size + inside
        return places

    def coordinates(self, places: Places) -> tuple[Places, Places, Places]:
        """Computes game, row and column of places."""
        game, inside = np.divmod(places, self.size)
        row, column = np.divmod(inside, self.span)
        return game, row - self.margin, column - self.margin

    def everywhere(self, games: Places, inside: Places) -> Places:
        """[games, places]: places of the first world, in each of these worlds."""
        return self._first[games][:, None] + inside

    # Entities ----------------------------------------------------------------------------------------

    def number(self, kind: Kind) -> int:
        name = kind if isinstance(kind, str) else kind.kind
        try:
            return self._numbers[name]
        except KeyError:
            raise ConfigError(
                f"this world has no kind {name!r}; its kinds are {', '.join(self._numbers)}"
            ) from None

    def add(self, kind: Kind, places: Places) -> None:
        """Puts an entity into each of these places. It replaces what is there in its layer."""
        number = self.number(kind)
        self.put(number, places, self.kinds[number].layer)

    def put(self, numbers: ArrayLike, places: Places, layer: int = 0) -> None:
        """Puts kinds, given by their numbers, into places of a layer."""
        self.grid[layer][places] = numbers

    def remove(self, places: Places, layer: int = 0) -> None:
        self.grid[layer][places] = EMPTY

    def move(self, source: Places, target: Places, layer: int = 0) -> None:
        """Moves what is in a layer from places to other places, all at once."""
        kinds = self.grid[layer]
        moved = kinds[source]
        kinds[source] = EMPTY
        kinds[target] = moved

    def observe(self, places: Places, layer: int = 0) -> ByteArray:
        """Looks up the numbers of the kinds in these places."""
        kinds: ByteArray = self.grid[layer][places]
        return kinds

    def look(self, places: Places) -> ByteArray:
        """[…, layers]: the numbers of the kinds in all layers of these places."""
        return np.stack([kinds[places] for kinds in self.grid], axis=-1)

    def count(self, kind: Kind) -> Places:
        """[batch]: how many entities of a kind each world has."""
        counts: Places = self._is_there(self.number(kind)).sum(axis=1)
        return counts

    def entities(self, kind: Kind) -> Places:
        """Finds all places of a kind inside the margin of walls, in ascending order."""
        game, cell = np.nonzero(self._is_there(self.number(kind)))
        found: Places = self._first[game] + self.interior[cell]
        return found

    def _is_there(self, number: int) -> BoolArray:
        """[batch, cells]: in which cells a kind is."""
        there: BoolArray = self.cells[..., self.kinds[number].layer] == number
        return there.reshape(self.batch, -1)

    def value(self, places: Places) -> FloatArray:
        """Sums the values of everything in each place."""
        value: FloatArray = self.values[self.observe(places)]
        for layer in range(1, self.layers):
            value = value + self.values[self.observe(places, layer)]
        return value

    def is_free(self, places: Places) -> BoolArray:
        """Checks if everything in a place is passable."""
        free: BoolArray = self.passable[self.observe(places)]
        for layer in range(1, self.layers):
            free = free & self.passable[self.observe(places, layer)]
        return free

    def is_open(self, places: Places) -> BoolArray:
        """Checks if everything in a place is passable, agents apart."""
        can_be_entered = self.passable | self.is_agent
        is_open: BoolArray = np.all(can_be_entered[self.look(places)], axis=-1)
        return is_open

    def rest(self, games: Places, seats: Places, turns: int) -> None:
        """Lets agents rest for the next turns, after the one that is played now."""
        self.resting[games, seats] = turns + 1

    # Chance ------------------------------------------------------------------------------------------

    def sample(self, kind: Kind, probability: float) -> Places:
        """Takes each entity of a kind with this probability, and returns the places of those taken."""
        number = self.number(kind)
        if not 0 <= probability <= 1:
            raise ConfigError(
                f"a probability lies in 0 … 1; sample got {probability} for {self.kinds[number].kind}"
            )
        struck = self._struck(probability)
        taken: Places = struck[self.observe(struck, self.kinds[number].layer) == number]
        return taken

    def uniform(self) -> NDArray[np.float64]:
        """[batch]: a number in [0, 1) for each world."""
        return as_uniform(self.random.words(1))[:, 0]

    def uniform_at(self, places: Places) -> NDArray[np.float64]:
        """Draws a number in [0, 1) for each place."""
        game = places // self.size
        return as_uniform(self.random.words_of(game, self._cell_numbers[places - self._first[game]]))

    def draw(self, kind: Kind) -> tuple[Places, Places]:
        """Draws one entity of a kind in each world that has any. Returns these worlds and the places of the
        entities."""
        found = self._is_there(self.number(kind))
        count = found.sum(axis=1)
        chosen = np.cumsum(count) - count + (self.uniform() * count).astype(np.int64)
        games = np.flatnonzero(count)
        cell = np.flatnonzero(found)[chosen[games]] % len(self.interior)
        return games, self._first[games] + self.interior[cell]

    def _struck(self, probability: float) -> Places:
        """Takes each cell with a probability, and returns the places of those taken.

        It draws the gaps between them: a gap is at least k with the chance (1 - probability)^k. So a rare event costs
        a few numbers for each world, where a number for each cell would cost hundreds.
        """
        cells = len(self.interior)
        count = ceil(cells * probability + 4 * sqrt(cells * probability)) + 1
        found = [np.full((self.batch, 1), -1)]
        while (found[-1][:, -1] < cells).any():
            uniform = as_uniform(self.random.words(count, more=len(found) - 1))
            found.append(found[-1][:, -1:] + np.cumsum(_gaps(uniform, probability, cells) + 1, axis=1))
        cell = found[1] if len(found) == 2 else np.concatenate(found[1:], axis=1)
        taken = np.flatnonzero(cell < cells)
        struck: Places = self._first[taken // cell.shape[1]] + self.interior[cell.ravel()[taken]]
        return struck

    def scatter(self, games: Places, among: Places, count: int) -> Places:
        """[games, count]: free places drawn without repetition in each of these worlds, from places ``among`` those of
        the first world."""
        places = self.everywhere(games, among)
        order = self.random.words_of(games[:, None], np.arange(len(among)))
        order[~self.is_free(places)] = np.iinfo(np.uint64).max
        chosen = _smallest(order, count)
        drawn: Places = np.take_along_axis(places, chosen, axis=1)
        if drawn.shape[1] < count or not self.is_free(drawn).all():
            raise GameError(
                f"a world has no room for {count} more things; make it larger, or put fewer into it"
            )
        return drawn

    # Worlds as a whole -------------------------------------------------------------------------------

    def build(self, layout: Sequence[str]) -> None:
        """Sets how each new world looks, from a line of text for each row with the letters of kinds."""
        numbers = {kind.letter: number for number, kind in reversed(list(enumerate(self.kinds)))}
        for row, line in enumerate(layout):
            for column, letter in enumerate(line):
                if letter not in numbers:
                    raise ConfigError(
                        f"row {row} of the layout has {letter!r}; the letters of its kinds are {''.join(numbers)!r}"
                    )
                number = numbers[letter]
                self.blank[self.kinds[number].layer, self.place(0, row, column)] = number

    def vacant(self) -> Places:
        """Finds the places of the first world that an agent can enter when the world is new."""
        free = self.passable[self.blank[:, self.interior]].all(axis=0)
        return self.interior[free]

    def clear(self, games: Places) -> None:
        """Makes these worlds new, without agents."""
        self.by_game[games] = self.blank.T
        self.resting[games] = 0

    def check_state(self) -> None:
        """Raises ``SavedStateError`` if the arrays are not possible."""
        if (self.grid >= len(self.kinds)).any():
            raise SavedStateError("saved state of a world has a kind that does not exist")
        if not np.isin(self.agents - self._first[:, None], self.interior).all():
            raise SavedStateError("saved state of a world has an agent outside of it")
        if not self.is_agent[self.look(self.agents)].any(axis=-1).all():
            raise SavedStateError("saved state of a world has an agent that is not in its place")
        if self.resting.size and (self.resting.min(axis=1) != 0).any():
            raise SavedStateError("saved state of a world has no agent that is awake")


def topmost(cells: ByteArray) -> ByteArray:
    """[…]: the kind in the highest layer that is not empty, from cells […, layers]."""
    top = cells[..., 0]
    for layer in range(1, cells.shape[-1]):
        top = np.where(cells[..., layer] != EMPTY, cells[..., layer], top)
    return top


def _gaps(uniform: NDArray[np.float64], probability: float, cells: int) -> Places:
    """Computes how many cells are skipped: the number of k = 1, 2 … with uniform < (1 - probability)^k.

    The logarithm computes the number up to rounding, which differs between machines. A comparison with the exact
    chances corrects it. A search among the chances takes five times as long.
    """
    chances = _chances(probability, cells)
    rate = log1p(-probability) if 0 < probability < 1 else -1e-300 if probability == 0 else -1e300
    steps = np.log(np.maximum(uniform, 1e-300)) / rate
    gaps: Places = np.minimum(steps, cells).astype(np.int64)
    gaps -= uniform >= chances[gaps]
    gaps += uniform < chances[gaps + 1]
    return gaps


@lru_cache(maxsize=64)
def _chances(probability: float, cells: int) -> NDArray[np.float64]:
    """The chances (1 - probability)^k that k cells are passed over, and 0 for more cells than there are. They are
    products, which are the same on every machine."""
    return np.concatenate([[1.0], np.cumprod(np.full(cells, 1.0 - probability)), [0.0]])


def _smallest(words: NDArray[np.uint64], count: int) -> Places:
    """[rows, count]: the columns of the smallest words of each row, in ascending order of the words."""
    if count >= words.shape[1]:
        return np.argsort(words, axis=1)
    first = np.argpartition(words, count, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(words, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def _checked(kinds: Sequence[Entity]) -> tuple[Entity, ...]:
    names = [kind.kind for kind in kinds]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"each kind of a world needs a name of its own; {', '.join(twice)} comes twice")
    if not 2 <= len(kinds) <= MOST_KINDS:
        raise ConfigError(
            f"a world has 2 to {MOST_KINDS} kinds, the empty cell and the wall first; got {len(kinds)}"
        )
    return tuple(kinds)
