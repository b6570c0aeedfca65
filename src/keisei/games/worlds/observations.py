"""What agents see: the cells around them, or the whole world, in one of three forms.

A **view** is the kinds of the cells that an agent sees, a byte for each cell and layer. It is also the packed row of
the agent: each form is computed from the view alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from keisei.errors import ConfigError
from keisei.games.contract import Array, BoolArray, ByteArray
from keisei.games.worlds.world import MOST_KINDS, Places, World, topmost

__all__ = ["AsciiObservationSpec", "OneHotObservationSpec", "RGBObservationSpec", "WorldObservation"]

_SELF = MOST_KINDS + 1
"""The bit that marks the agent itself where it sees the whole world."""


@dataclass(frozen=True, slots=True)
class WorldObservation(ABC):
    """What an agent sees."""

    radius: int | None = None
    """How many cells it sees in each direction. None: the whole world, in which it is marked."""

    def __post_init__(self) -> None:
        if self.radius is not None and self.radius < 0:
            raise ConfigError(f"the radius of a view must be 0 or more, or None; got {self.radius}")

    @property
    def margin(self) -> int:
        """How many cells it may see beyond the edge."""
        return self.radius or 0

    def sides(self, world: World) -> tuple[int, int]:
        """Height and width of a view."""
        if self.radius is None:
            return world.height, world.width
        return 2 * self.radius + 1, 2 * self.radius + 1

    def view_bytes(self, world: World) -> int:
        return prod(self.sides(world)) * world.layers

    def views(self, world: World, places: Places) -> ByteArray:
        """[rows, view_bytes]: what is seen from places of agents."""
        if self.radius is None:
            return self._whole(world, places)
        in_view = places[:, None] + _around(self.radius, world.span)
        return world.look(in_view).reshape(len(places), -1)

    def _whole(self, world: World, places: Places) -> ByteArray:
        game = places // world.size
        in_view = world.everywhere(game, world.interior)
        views = world.look(in_view)
        row, cell = np.nonzero(in_view == places[:, None])
        views[row, cell, 0] |= _SELF
        return views.reshape(len(places), -1)

    def are_possible(self, world: World, views: ByteArray) -> BoolArray:
        """[rows]: whether all kinds of a view exist."""
        kinds = views if self.radius is not None else views & np.uint8(MOST_KINDS)
        possible: BoolArray = np.all(kinds < len(world.kinds), axis=1)
        return possible

    def cells(self, world: World, views: ByteArray) -> ByteArray:
        """[rows, height, width, layers]: the cells of views."""
        return views.reshape(len(views), *self.sides(world), world.layers)

    @abstractmethod
    def shape(self, world: World) -> tuple[int, ...]: ...

    def scale(self, world: World) -> tuple[float, ...]:
        """Factors of the first axis for networks."""
        return ()

    @abstractmethod
    def encode(self, world: World, views: ByteArray, out: Array) -> None:
        """Writes the observations of views."""


@lru_cache(maxsize=64)
def _around(radius: int, span: int) -> Places:
    """How far the cells in view are from the agent, row by row."""
    reach = np.arange(-radius, radius + 1)
    around = (reach[:, None] * span + reach).ravel()
    around.setflags(write=False)  # all views share it
    return around


class OneHotObservationSpec(WorldObservation):
    """A plane for each kind except the empty cell: 1 where it is. With the whole world in view, a last plane marks
    the agent itself."""

    __slots__ = ()

    def shape(self, world: World) -> tuple[int, ...]:
        return len(world.kinds) - 1 + (self.radius is None), *self.sides(world)

    def encode(self, world: World, views: ByteArray, out: Array) -> None:
        cells = self.cells(world, views)
        if self.radius is None:
            out[:, -1] = cells[..., 0] >= _SELF
            cells = cells & np.uint8(MOST_KINDS)
        planes = out.view(np.bool_)
        for number, kind in enumerate(world.kinds[1:], start=1):
            np.equal(cells[..., kind.layer], number, out=planes[:, number - 1])


class RGBObservationSpec(WorldObservation):
    """Three planes, red, green and blue, of the colours of the topmost entities. With the whole world in view, the
    agent itself is white."""

    __slots__ = ()

    def shape(self, world: World) -> tuple[int, ...]:
        return 3, *self.sides(world)

    def scale(self, world: World) -> tuple[float, ...]:
        return (1 / 255,) * 3

    def encode(self, world: World, views: ByteArray, out: Array) -> None:
        colours = np.array([kind.colour for kind in world.kinds], np.uint8)
        cells = self.cells(world, views)
        painted = colours[topmost(cells & np.uint8(MOST_KINDS))]
        if self.radius is None:
            painted[cells[..., 0] >= _SELF] = 255
        out[...] = np.moveaxis(painted, -1, 1)


class AsciiObservationSpec(WorldObservation):
    """The letters of the topmost entities, as ASCII codes. With the whole world in view, the agent itself is ``@``."""

    __slots__ = ()

    def shape(self, world: World) -> tuple[int, ...]:
        return self.sides(world)

    def encode(self, world: World, views: ByteArray, out: Array) -> None:
        letters = np.array([ord(kind.letter) for kind in world.kinds], np.uint8)
        cells = self.cells(world, views)
        out[...] = letters[topmost(cells & np.uint8(MOST_KINDS))]
        if self.radius is None:
            out[cells[..., 0] >= _SELF] = ord("@")
