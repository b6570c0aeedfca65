"""Entities: the kinds of things that stand in the cells of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.games.worlds.world import World

__all__ = ["Colour", "Empty", "Entity", "Kind", "Wall"]

Colour: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 … 255."""


class Entity:
    """A kind of thing. One object stands for all cells that hold it, in all worlds of a batch.

    A subclass sets the attributes below. An object may have a value of its own: ``Gem(value=7)``.
    """

    kind: ClassVar[str] = ""
    """The name of the kind; the name of the class in small letters if it is empty."""
    value: float = 0.0
    """The reward for walking into it."""
    passable: bool = False
    """True if an agent can enter the cell. It then takes away what was there."""
    layer: int = 0
    """The layer of the world in which it stands."""
    letter: str = "?"
    """How it looks as text."""
    colour: Colour = (128, 128, 128)
    is_agent: ClassVar[bool] = False
    """True if it is the look of an agent."""

    def __init_subclass__(cls) -> None:
        if "kind" not in cls.__dict__:
            cls.kind = cls.__name__.lower()

    def __init__(self, *, value: float | None = None) -> None:
        if value is not None:
            self.value = float(value)
        if len(self.letter) != 1 or not self.letter.isascii():
            raise ConfigError(f"the letter of {self.kind} must be one ASCII character, got {self.letter!r}")

    def transition(self, world: World) -> None:
        """Changes all entities of this kind at the end of a turn, in all worlds at once. By default they stay as
        they are."""

    @property
    def has_transition(self) -> bool:
        return type(self).transition is not Entity.transition


Kind: TypeAlias = Entity | type[Entity] | str
"""How a kind is named: by its object, its class or its name."""


class Empty(Entity):
    """Nothing. Subclasses may let things grow there."""

    passable = True
    letter = "."
    colour = (236, 232, 218)


class Wall(Entity):
    """Stands at the edge of a world, and everywhere beyond it."""

    letter = "#"
    colour = (92, 92, 100)
