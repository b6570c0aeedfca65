"""Pictures of a world: as text, as an array of colours, and as SVG for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from keisei.games.contract import ByteArray
from keisei.games.worlds.colours import agent_colour, hexadecimal, plain_looks
from keisei.games.worlds.entities import Colour, Entity
from keisei.games.worlds.world import EMPTY, World, topmost

__all__ = ["Shot", "own_colours", "shot_of", "world_colours", "world_svg", "world_text"]

_CELL, _MARGIN = 20, 10
_STYLE = """<style>
.page { fill: #ffffff } .letter { font: 12px monospace; text-anchor: middle; fill: #ffffff }
@media (prefers-color-scheme: dark) { .page { fill: #16181d } }
</style>"""


def world_text(world: World, game: int = 0) -> str:
    """Draws a world with the letters of what is on top, a line for each row."""
    letters = np.array([kind.letter for kind in world.kinds])
    return "\n".join("".join(row) for row in letters[topmost(world.cells[game])])


def world_colours(world: World, game: int = 0) -> ByteArray:
    """[height, width, 3]: the colours of what is on top."""
    colours = np.array([kind.colour for kind in world.kinds], np.uint8)
    return colours[topmost(world.cells[game])]


@dataclass(frozen=True)
class Shot:
    """A world at one moment, as an animation draws it."""

    ground: ByteArray
    """[height, width, 3]: the colours of what is on top, agents apart."""
    agents: Sequence[tuple[int, int]]
    """Row and column of each agent."""
    turn: int
    returns: Sequence[float]
    """What each agent has earned until then."""


def shot_of(world: World, turn: int, returns: Sequence[float], game: int = 0) -> Shot:
    cells = world.cells[game]
    looks = plain_looks(world.kinds)
    plain = [number for number, kind in enumerate(world.kinds) if kind.is_agent and kind.colour in looks]
    colours = np.array([kind.colour for kind in world.kinds], np.uint8)
    ground = colours[topmost(np.where(np.isin(cells, plain), EMPTY, cells))]
    return Shot(ground, _agent_cells(world, game), turn, tuple(returns))


def _agent_cells(world: World, game: int) -> list[tuple[int, int]]:
    """Finds the row and the column of each agent."""
    rows, columns = np.divmod(world.agents[game] - game * world.size, world.span)
    return list(zip((rows - world.margin).tolist(), (columns - world.margin).tolist(), strict=True))


def own_colours(world: World, game: int = 0) -> dict[tuple[int, int], Colour]:
    """Maps the cells of agents that look alike to the colours of these agents."""
    looks, on_top = plain_looks(world.kinds), topmost(world.cells[game])
    plain = {number for number, kind in enumerate(world.kinds) if kind.is_agent and kind.colour in looks}
    cells = enumerate(_agent_cells(world, game))
    return {cell: agent_colour(seat) for seat, cell in cells if int(on_top[cell]) in plain}


def world_svg(world: World, game: int = 0) -> str:
    """Draws a world as SVG. Everything but walls and ground has its letter."""
    width, height = (_CELL * cells + 2 * _MARGIN for cells in (world.width, world.height))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="world" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="A world of {world.height} x {world.width} cells">',
            _STYLE,
            f'<rect class="page" width="{width}" height="{height}" rx="10"/>',
            *_cells(world, game),
            "</svg>",
        ]
    )


def _cells(world: World, game: int) -> Iterator[str]:
    """Draws the ground as one rectangle, and everything on it cell by cell. Each agent has a colour of its own."""
    own = own_colours(world, game)
    yield _rectangle(world.kinds[EMPTY], 0, 0, world.height, world.width)
    for (row, column), number in np.ndenumerate(topmost(world.cells[game])):
        kind = world.kinds[number]
        if number == EMPTY:
            continue
        yield _rectangle(kind, row, column, colour=own.get((row, column)))
        if _is_named(kind):
            x, y = _MARGIN + _CELL * (column + 0.5), _MARGIN + _CELL * (row + 0.7)
            yield f'<text class="letter" x="{x:g}" y="{y:g}">{escape(kind.letter)}</text>'


def _rectangle(
    kind: Entity, row: int, column: int, height: int = 1, width: int = 1, colour: Colour | None = None
) -> str:
    x, y = _MARGIN + _CELL * column, _MARGIN + _CELL * row
    size = f'width="{_CELL * width}" height="{_CELL * height}"'
    return f'<rect class="{kind.kind}" x="{x}" y="{y}" {size} fill="{hexadecimal(colour or kind.colour)}"/>'


def _is_named(kind: Entity) -> bool:
    """Checks if a kind shows its letter. Ground and walls do not."""
    return kind.letter.isalnum() or kind.is_agent
