"""What games may offer beyond the contract. All offers are optional and independent of each other.

A batch offers something by defining its methods; ``isinstance(game, LooksAhead)`` checks that. A game's spec names its
record format and its face, and a game's package may have a board.

| Offer | By | For |
| --- | --- | --- |
| ``NamesMoves``, ``ReadsMoves`` | the batch | moves as people write and type them |
| ``ExplainsNumbers`` | the batch | what observations and actions mean |
| ``ShowsText``, ``ShowsSides``, ``ShowsWorld`` | the batch | positions as text |
| ``LooksAhead`` | the batch | the players ``greedy`` and ``search:DEPTH`` |
| ``HasHeuristic`` | the batch | the player ``heuristic`` |
| ``RecordFormat``, ``ReadsRecords`` | ``GameSpec.record_format`` | files of games |
| ``GameFace``, ``ShowsRows`` | ``GameSpec.face``, the batch | pictures of positions on a page |
| ``PackedBoard`` | the package | a single position, on which a trained player chooses |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import IntArray

__all__ = [
    "BATCH_OFFERS",
    "Choice",
    "ExplainsNumbers",
    "GameFace",
    "HasHeuristic",
    "LooksAhead",
    "NamesMoves",
    "PackedBoard",
    "ReadsMoves",
    "ReadsRecords",
    "RecordFormat",
    "RecordedGame",
    "ShowsRows",
    "ShowsSides",
    "ShowsText",
    "ShowsWorld",
    "Symbol",
]


@runtime_checkable
class NamesMoves(Protocol):
    """A batch that names moves as people write them."""

    def move_name(self, action: int, game: int = 0) -> str:
        """Names a legal action in the current position of a game."""
        ...


@runtime_checkable
class ReadsMoves(Protocol):
    """A batch that also reads moves in other notations than that of ``move_name``."""

    def read_move(self, text: str, game: int = 0) -> Sequence[int]:
        """Gets the legal actions that a text may mean. Raises ``NotationError``, which says why there is none."""
        ...

    def move_examples(self, action: int, game: int = 0) -> Sequence[str]:
        """Writes a legal action in each of the usual ways, all of which ``read_move`` takes for this action."""
        ...


@runtime_checkable
class ExplainsNumbers(Protocol):
    """A batch that says what its observations and actions mean."""

    def observation_meaning(self) -> list[str]:
        """Explains each index of the first axis of an observation, such as a plane."""
        ...

    def action_meaning(self) -> list[str]:
        """Explains each action."""
        ...


@runtime_checkable
class ShowsText(Protocol):
    """A batch that draws its games."""

    def text(self, game: int = 0) -> str:
        """Draws the current position of a game."""
        ...

    def keep_last_positions(self) -> None:
        """Keeps the last position of every game that ends from now on, since finished games restart at once."""
        ...

    def last_text(self, game: int = 0) -> str:
        """Draws the last position of the game that ended last in this place."""
        ...


@runtime_checkable
class ShowsSides(ShowsText, Protocol):
    """A batch that draws a position differently for each seat: players see their own side at the bottom."""

    def text_from(self, seat: int, game: int = 0) -> str: ...

    def last_text_from(self, seat: int, game: int = 0) -> str: ...


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a letter of a drawing stands for."""

    name: str
    colour: tuple[int, int, int]
    """Red, green and blue, 0 … 255."""


@runtime_checkable
class ShowsWorld(ShowsText, Protocol):
    """A batch whose drawings are worlds with a letter for each cell, in which every seat stands somewhere."""

    def symbols(self) -> Mapping[str, Symbol]:
        """Gets the letters that may appear in drawings."""
        ...

    def standing(self, seat: int, game: int = 0) -> tuple[int, int]:
        """Gets the row and the column where a seat stands in the current position of a game."""
        ...

    def seat_colour(self, seat: int) -> tuple[int, int, int]:
        """Gets the colour of a seat, the same in every picture."""
        ...

    def own_colours(self, game: int = 0) -> Mapping[tuple[int, int], tuple[int, int, int]]:
        """Gets the colours of the seats by row and column, for drawings in which each seat has its own colour."""
        ...


@runtime_checkable
class LooksAhead(Protocol):
    """A batch with its own look-ahead, where that is faster than on copies.

    Both methods decide for the rows with the indices ``selected``, or for all rows if it is None. Each of these
    rows has a key, 64 random bits that decide between equal actions. The same position and key give the same
    action, and the games do not change.
    """

    def greedy_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Gets the action with the largest immediate gain, without looking at the reply."""
        ...

    def search_actions(self, depth: int, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Gets the best action of a search over ``depth`` plies, in which each seat plays for itself."""
        ...


@runtime_checkable
class HasHeuristic(Protocol):
    """A batch with a player of its own."""

    def heuristic_actions(self, selected: IntArray | None, keys: NDArray[np.uint64]) -> IntArray:
        """Decides for the rows with the indices ``selected``, or for all rows if it is None.

        Each of these rows has a key, 64 random bits that decide between equal actions. The same position and key
        give the same action, and the games do not change.
        """
        ...


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A game that was played to its end, as plain data."""

    options: Mapping[str, Any]
    """The options of the game; missing ones have their defaults."""
    actions: tuple[int, ...]
    """All actions, in order."""
    names: tuple[str, ...]
    """The name of the player in each seat."""
    scores: tuple[float, ...]
    """For each seat: 1 for a win, 0 for a draw, -1 for a loss. Empty if a file does not tell the result."""
    ending: str
    """One of ``GameSpec.endings``, or another way in which players end a game, such as resignation."""


class RecordFormat(Protocol):
    """A file format for the records of a game."""

    @property
    def suffix(self) -> str:
        """The suffix of its files, such as ``.kif``."""
        ...

    def write(self, game: RecordedGame, path: Path) -> None: ...


@runtime_checkable
class ReadsRecords(RecordFormat, Protocol):
    """A format that also reads files, and that may know several notations."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of all files that it reads and writes, each for one notation."""
        ...

    def read(self, path: Path) -> list[RecordedGame]:
        """Gets all games of a file, in the notation of its suffix. A wrong one is a ``NotationError``."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A legal action, as a person chooses it."""

    action: int
    name: str
    """The move in the notation of the game."""
    places: tuple[str, ...] = ()
    """The places that are named in order; empty if the action is chosen from a list."""
    label: str = ""
    """Tells choices with the same places apart."""
    is_usual: bool = False
    """True if a person usually means this one among choices with the same places. It is then offered first."""


class GameFace(Protocol):
    """Shows the positions of one game."""

    @property
    def style(self) -> str:
        """The style sheet of its pictures. A page puts it below a class of its own."""
        ...

    @property
    def seats(self) -> Sequence[str]:
        """The names of the seats."""
        ...

    @property
    def person_options(self) -> Sequence[str]:
        """The options of the game that a person who plays may choose."""
        ...

    @property
    def has_sides(self) -> bool:
        """Whether the picture differs by the seat that looks at it."""
        ...

    def svg(self, packed: bytes, seat: int, *, view: int = 0, last: Choice | None = None) -> str:
        """Draws a position as an SVG without a style, as the seat ``view`` looks at it. ``last`` is marked."""
        ...

    def choices(self, packed: bytes, seat: int, actions: Sequence[int]) -> list[Choice]:
        """Gets legal actions of a position as choices, in the same order."""
        ...

    def text(self, packed: bytes, seat: int) -> str:
        """Gets the position in the notation of the game; empty if it has none."""
        ...


@runtime_checkable
class ShowsRows(Protocol):
    """A batch that draws packed rows which are no whole positions, such as what an agent sees of a world."""

    def row_face(self) -> GameFace: ...


Move_co = TypeVar("Move_co", covariant=True)
"""The moves of a board."""


@runtime_checkable
class PackedBoard(Protocol[Move_co]):
    """A board that a player can choose a move on. A game's package may offer one."""

    def pack(self) -> bytes:
        """Gets the position in the compact form of ``Game.pack``."""
        ...

    def move_from_action(self, action: int) -> Move_co:
        """Gets the move of an action number in this position."""
        ...


BATCH_OFFERS: tuple[type, ...] = (
    NamesMoves, ReadsMoves, ExplainsNumbers, ShowsText, ShowsSides, ShowsWorld, LooksAhead, HasHeuristic, ShowsRows,
)  # fmt: skip
"""What a batch may offer by its methods."""
