"""The contract that every game keeps.

A game is a *batch* of independent games that are stepped together. Turn-based and simultaneous
games share one shape, the **decision row**: one row for each (game, seat) that must act now. Rows
are ordered by game, then by seat. A board game with B boards has B rows; a world of N agents that
all act at once has B·N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ActionError, GameError
from keisei.games.records import RecordFormat

Array: TypeAlias = NDArray[Any]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int32]
ByteArray: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ObservationSpec:
    """Shape and type of what one row sees.

    ``scale`` holds one factor for each index of the first axis; a network multiplies by it, so that
    games may store counts in small integers. Empty means that no factor is needed.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: tuple[float, ...] = ()
    flat: tuple[int, ...] = ()
    """Indices of the planes that have one value on all squares (hands, clocks); a network may read such
    a plane from one square."""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class GameSpec:
    """What a game is, as far as players and learners need to know."""

    name: str
    seats: int
    num_actions: int
    observation: ObservationSpec
    packed_bytes: int
    """Bytes of one packed row: enough to rebuild its observation and its legal mask."""
    simultaneous: bool = False
    """True where several seats act in one step; then every row order is (game, seat)."""
    zero_sum: bool = False
    """True where the rewards of all seats add up to nothing in every step."""
    max_plies: int | None = None
    """The ply at which a game is truncated; None where it always ends by its own rules."""
    endings: tuple[str, ...] = ("unfinished", "finished", "truncated")
    """The names of ``Step.ending`` codes; code 0 means that the game goes on."""

    # What follows is for players and learners, and says nothing of a game's state: it stays out of the repr, of which
    # saved states keep a digest.
    plane_actions: bool = field(default=False, repr=False)
    """True where actions are several kinds for each square, numbered kind · squares + square in the order of the
    observation's squares: a network may then make its logits as planes."""
    looks_ahead: bool = field(default=False, repr=False)
    """True where the batch is a ``LooksAhead``: players that look ahead ask it, whatever the rewards."""
    record_format: RecordFormat | None = field(default=None, repr=False, compare=False)
    """How games are written to files; None where there is no format."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Who must act now. All arrays have one entry for each row."""

    game: IntArray
    """Index within the batch, 0 … batch-1."""
    seat: IntArray
    episode: IntArray
    """How many games this slot of the batch had finished before this one."""
    ply: IntArray
    """How many steps this game has made."""

    def __len__(self) -> int:
        return len(self.game)


@dataclass(frozen=True, slots=True)
class FinalRows:
    """The last position of each game that a step finished, as the seats that would act next see it.

    Truncated games are bootstrapped from it; by the next call of ``rows`` those games have restarted.
    """

    game: IntArray
    seat: IntArray
    packed: ByteArray
    """[finished rows, packed_bytes]; ``Game.unpack`` expands it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did to every game of the batch. Finished games have restarted already."""

    rewards: FloatArray
    """[batch, seats]"""
    terminated: BoolArray
    """[batch]: the rules ended the game."""
    truncated: BoolArray
    """[batch]: a limit cut the game off; its last position still has a value."""
    ending: ByteArray
    """[batch]: index into ``GameSpec.endings``; 0 where the game goes on."""
    scores: FloatArray
    """[batch, seats]: the plain result (1 win, 0 draw, -1 loss; or the sum of rewards in games
    without winners), untouched by reward shaping; 0 where the game goes on."""
    plies: IntArray
    """[batch]: the length of the game, this step included."""
    final: FinalRows

    @property
    def done(self) -> BoolArray:
        return self.terminated | self.truncated


@runtime_checkable
class Game(Protocol):
    """A batch of games. ``out=`` lets the caller own the memory, so that nothing is copied."""

    @property
    def spec(self) -> GameSpec: ...

    @property
    def batch(self) -> int: ...

    def rows(self) -> Rows:
        """Who must act now."""
        ...

    def observe(self, out: Array | None = None) -> Array:
        """[rows, *observation.shape]: what each row's seat sees, from its own point of view."""
        ...

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        """[rows, num_actions]: True where the action is legal. Every row has at least one."""
        ...

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        """[rows, packed_bytes]: each row in compact form, for ``unpack`` to expand later."""
        ...

    def unpack(
        self,
        packed: ByteArray,
        observations: Array | None = None,
        legal: BoolArray | None = None,
    ) -> tuple[Array, BoolArray]:
        """Expand packed rows, of this or of an earlier time: exactly what ``observe`` and ``legal``
        gave when they were packed. Depends on the spec alone, never on the state of the games."""
        ...

    def random_actions(self) -> IntArray:
        """[rows]: a uniformly random legal action each, keyed by (seed, game, episode, ply, seat)."""
        ...

    def step(self, actions: Array) -> Step:
        """Play one integer action for each row. Raises ``ActionError`` or ``IllegalActionError``
        and changes nothing where an action does not fit."""
        ...

    def save(self) -> bytes:
        """The exact state of all games, compact."""
        ...

    def load(self, blob: bytes) -> None:
        """Take up a state that ``save`` gave, in a game made with the same options."""
        ...


class GameFactory(Protocol):
    """Builds a batch. ``first_game`` numbers the games, so that game 7 plays the same game whether it
    sits in a batch of 8 or is the first of a batch that starts at 7."""

    def __call__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> Game: ...


def action_array(actions: Array | Sequence[int], rows: int, num_actions: int) -> IntArray:
    """Check shape, type and range of an array of actions, and give it as int32."""
    array = actions if type(actions) is np.ndarray else np.asarray(actions)
    if array.shape != (rows,):
        raise ActionError(
            f"step takes one action for each of the {rows} decision rows, as an array of shape ({rows},); got "
            f"shape {array.shape}"
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ActionError(f"actions must be integers, got {array.dtype}; convert them with .astype(np.int32)")
    outside = (array < 0) | (array >= num_actions)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ActionError(f"action {array[row]} in row {row} is outside 0 … {num_actions - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


def out_array(out: Array | None, shape: tuple[int, ...], dtype: Any, method: str) -> Array:
    """The caller's memory where it fits what a method writes, or new memory where there is none."""
    if out is None:
        return np.empty(shape, dtype)
    if (
        not isinstance(out, np.ndarray)
        or out.shape != shape
        or out.dtype != dtype
        or not out.flags.carray  # contiguous, aligned and writeable, in one look
    ):
        found = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise GameError(
            f"{method} writes contiguous {np.dtype(dtype)} of shape {shape}; the array it was given is {found}"
        )
    return out
