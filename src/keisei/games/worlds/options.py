"""The options that all worlds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from keisei.config import Settings
from keisei.games.worlds.environment import TurnRule
from keisei.games.worlds.observations import (
    AsciiObservationSpec,
    OneHotObservationSpec,
    RGBObservationSpec,
    WorldObservation,
)

__all__ = ["Probability", "Reward", "Side", "WorldOptions"]

Side: TypeAlias = Annotated[int, Field(ge=1, le=256)]
Reward: TypeAlias = Annotated[float, Field(ge=-1000, le=1000)]
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class WorldOptions(Settings):
    """Agents, turns and views."""

    agents: Annotated[int, Field(ge=1, le=1024)] = 2
    """How many agents act."""
    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """The turn at which a world is cut off."""
    turns: TurnRule = "in-order"
    """How agents act in a turn: in-order, one-by-one or at-once."""
    vision: Annotated[int, Field(ge=0, le=255)] | None = 2
    """How many cells an agent sees in each direction. Null shows the whole world."""
    observation: Literal["one-hot", "rgb", "ascii"] = "one-hot"
    """What an agent sees: one-hot planes, colours, or the codes of letters."""

    def observation_spec(self) -> WorldObservation:
        forms: dict[str, Callable[[int | None], WorldObservation]] = {
            "one-hot": OneHotObservationSpec,
            "rgb": RGBObservationSpec,
            "ascii": AsciiObservationSpec,
        }
        return forms[self.observation](self.vision)
