"""How a person sees a world: the cells that one agent sees, in the colours of their kinds, with a legend below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from keisei.games.contract import ByteArray
from keisei.games.faces import svg_page
from keisei.games.offers import Choice
from keisei.games.worlds.agents import Agent
from keisei.games.worlds.colours import agent_colour, hexadecimal, kind_title, legend_of
from keisei.games.worlds.entities import Colour
from keisei.games.worlds.world import EMPTY, MOST_KINDS, World, topmost

__all__ = ["WorldFace"]

_WIDTH, _LINE, _COLUMNS = 360, 24, 3
"""The width of a picture, the height of a line of the legend, and its columns."""


class WorldFace:
    """Draws packed rows, which are what an agent sees. So the rest of the world is not in the picture."""

    style = (
        ".cell{stroke:light-dark(#0002,#fff2);stroke-width:1}"
        ".sign{text-anchor:middle;font:700 15px system-ui,sans-serif;fill:#fff}"
        ".own{stroke:#fff;stroke-width:2.5}.legend{font:14px system-ui,sans-serif;fill:currentColor}"
    )
    person_options = ()
    has_sides = False

    def __init__(self, world: World, agents: Sequence[Agent]) -> None:
        seen = agents[0].observation_spec
        self._shape = (*seen.sides(world), world.layers)
        self._is_whole = seen.radius is None
        self._actions = agents[0].action_spec.names
        self._colours = [kind.colour for kind in world.kinds]
        self._letters = [kind.letter if kind.is_agent else "" for kind in world.kinds]
        self._titles = {kind_title(kind) for kind in agents}
        self._legend = legend_of(world.kinds) + [
            (kind_title(kind), kind.colour) for kind in {agent.kind: agent for agent in agents}.values()
        ]
        self.seats = tuple(f"Agent {number}" for number in range(1, len(agents) + 1))

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        views = np.frombuffer(packed, np.uint8)[: int(np.prod(self._shape))].reshape(self._shape)
        height, width = self._shape[:2]
        cell = _WIDTH / width
        lines = 1 + -(-len(self._legend) // _COLUMNS)
        parts = [*self._cells(views, seat, cell), *self._keys(seat, height * cell)]
        label = f"what {self.seats[seat]} sees"
        return svg_page(parts, _WIDTH, height * cell + 12 + lines * _LINE, "world", label)

    def _cells(self, views: ByteArray, seat: int, cell: float) -> Iterator[str]:
        own = self._own(views)
        for (row, column), number in np.ndenumerate(topmost(views & np.uint8(MOST_KINDS))):
            x, y = column * cell, row * cell
            is_own, letter = (row, column) == own, self._letters[number]
            ground = self._colours[EMPTY] if letter else self._colours[number]
            yield _square(x, y, cell, ground)
            if letter or is_own:
                colour = agent_colour(seat) if is_own else self._colours[number]
                yield _disc(x + cell / 2, y + cell / 2, 0.42 * cell, colour, "own" if is_own else "")
            if letter and cell >= 14:
                sign = str(seat + 1) if is_own and letter.isalnum() else letter
                yield f'<text class="sign" x="{x + cell / 2:g}" y="{y + cell / 2 + 5:g}">{escape(sign)}</text>'

    def _own(self, views: ByteArray) -> tuple[int, int]:
        """Finds the agent's own cell: where it is marked, else the middle of its view."""
        if not self._is_whole:
            return self._shape[0] // 2, self._shape[1] // 2
        marked = np.argwhere(views[..., 0] > MOST_KINDS)
        return (int(marked[0][0]), int(marked[0][1])) if len(marked) else (-1, -1)

    def _keys(self, seat: int, top: float) -> Iterator[str]:
        """Draws the legend; the agent that sees comes first."""
        keys = [(f"{self.seats[seat].lower()}, who sees this", agent_colour(seat)), *self._legend]
        for number, (title, colour) in enumerate(keys):
            # The first one is long, so it has a line of its own.
            line, column = (0, 0) if number == 0 else (1 + (number - 1) // _COLUMNS, (number - 1) % _COLUMNS)
            x, y = column * _WIDTH / _COLUMNS + 8, top + 12 + line * _LINE
            is_agent = number == 0 or title in self._titles
            yield _disc(x + 7, y + 7, 7, colour) if is_agent else _square(x, y, 14, colour)
            yield f'<text class="legend" x="{x + 20:g}" y="{y + 12:g}">{escape(title)}</text>'

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        return [Choice(action, self._actions[action], label=self._actions[action]) for action in actions]

    def text(self, packed: bytes, seat: int) -> str:
        return ""


def _square(x: float, y: float, size: float, colour: Colour) -> str:
    box = f'x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}"'
    return f'<rect class="cell" {box} fill="{hexadecimal(colour)}"/>'


def _disc(x: float, y: float, radius: float, colour: Colour, style: str = "") -> str:
    return f'<circle class="{style}" cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{hexadecimal(colour)}"/>'
