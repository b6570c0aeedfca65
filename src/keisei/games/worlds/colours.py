"""Colours and names of what is in a world, for pictures and their legends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from keisei.games.worlds.agents import Agent
from keisei.games.worlds.entities import Colour, Entity

__all__ = ["agent_colour", "hexadecimal", "kind_title", "legend_of", "plain_looks"]

_AGENTS: Sequence[Colour] = (
    (0, 90, 181), (213, 94, 0), (117, 40, 150), (0, 120, 90), (190, 60, 130), (90, 70, 40), (60, 120, 20), (20, 20, 20),
)  # fmt: skip
"""Colours that colour-blind people can distinguish too. Agents beyond the last colour start again with the first."""


def agent_colour(seat: int) -> Colour:
    """Gets the colour of an agent, the same in every picture."""
    return _AGENTS[seat % len(_AGENTS)]


def hexadecimal(colour: Iterable[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def kind_title(kind: Entity) -> str:
    """Writes the name of a kind in words: ``cleaning beam`` for the class CleaningBeam."""
    name = type(kind).__name__
    if kind.kind != name.lower() and not isinstance(kind, Agent):
        return kind.kind
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def plain_looks(kinds: Iterable[Entity]) -> set[Colour]:
    """Collects the colours of plain agents. Any other colour of an agent has a meaning, such as being it in tag."""
    return {kind.colour for kind in kinds if isinstance(kind, Agent)}


def legend_of(kinds: Iterable[Entity]) -> list[tuple[str, Colour]]:
    """Lists the names and colours of all kinds except plain agents, which may face several ways."""
    kinds = list(kinds)
    plain = plain_looks(kinds)
    return [(kind_title(kind), kind.colour) for kind in kinds if not (kind.is_agent and kind.colour in plain)]
