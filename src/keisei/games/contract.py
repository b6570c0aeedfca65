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
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ActionError, GameError

if TYPE_CHECKING:
    from keisei.games.offers import GameFace, RecordFormat

Array: TypeAlias = NDArray[Any]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int32]
ByteArray: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ObservationSpec:
    """Shape and type of what one row sees.

    ``scale`` holds one factor for each index of the first axis. A network multiplies by it, so games may store
    counts in small integers. Empty means that no factor is needed.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: tuple[float, ...] = ()
    flat: tuple[int, ...] = ()
    """Indices of the planes that have one value on all squares (hands, clocks). A network may read such a plane
    from one square."""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ActionInputs:
    """Which inputs describe each action. A network may then look at every action with the same weights."""

    places: tuple[tuple[int, ...], ...]
    """[actions][k]: places in the flat observation. Each column means the same for every action."""
    kinds: tuple[int, ...]
    """[actions]: the kind of each action, from 0 on. Actions of one kind with equal inputs do the same."""
    things: tuple[tuple[int, ...], ...]
    """[things][k]: the places of things that are alike, such as the tokens of a seat. Their order means nothing."""

    def others(self, size: int) -> tuple[int, ...]:
        """Lists the indices that describe neither a single action nor a single thing."""
        used = {place for places in (*self.places, *self.things) for place in places}
        return tuple(place for place in range(size) if place not in used)


@dataclass(frozen=True, slots=True)
class GameSpec:
    """Describes a game to players and learners."""

    name: str
    seats: int
    num_actions: int
    observation: ObservationSpec
    packed_bytes: int
    """Bytes of one packed row. They are enough to rebuild its observation and its legal mask."""
    simultaneous: bool = False
    """True if several seats act in one step."""
    zero_sum: bool = False
    """True if the rewards of all seats add up to 0 in every step."""
    max_plies: int | None = None
    """The ply at which a game is truncated; None if it always ends by its own rules."""
    endings: tuple[str, ...] = ("unfinished", "finished", "truncated")
    """The names of the ``Step.ending`` codes; code 0 means that the game continues."""

    # The next fields do not describe a game's state. They stay out of the repr, since saved states keep a digest of
    # it.
    plane_actions: bool = field(default=False, repr=False)
    """True if actions are numbered kind · squares + square, in the order of the observation's squares. A network
    may then compute its logits as planes."""
    action_inputs: ActionInputs | None = field(default=None, repr=False)
    """The inputs that describe each action; None if the game does not say."""
    scored_by_rewards: bool = field(default=False, repr=False)
    """True if ``Step.scores`` are sums of rewards, as in games without winners."""
    chance: bool = field(default=False, repr=False)
    """True if chance decides what a seat may do, as dice do. Players that search then refuse the game, unless it
    looks ahead by itself."""
    record_format: RecordFormat | None = field(default=None, repr=False, compare=False)
    """The format in which games are written to files; None if there is none."""
    face: GameFace | None = field(default=None, repr=False, compare=False)
    """How a person sees the game and plays it; None if it offers nothing of its own."""

    @property
    def interface(self) -> str:
        """What a network sees and decides, in words. A network can play every game with the same text as its own."""
        shape = " x ".join(map(str, self.observation.shape))
        return f"{self.name} (observations of {shape} {self.observation.dtype}, {self.num_actions} actions)"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that must act now. All arrays have one entry for each row."""

    game: IntArray
    """Index of the game within the batch, 0 … batch-1."""
    seat: IntArray
    episode: IntArray
    """How many games this slot of the batch has finished before."""
    ply: IntArray
    """How many steps this game has taken."""

    def __len__(self) -> int:
        return len(self.game)


@dataclass(frozen=True, slots=True)
class FinalRows:
    """The last position of each game that a step finished, as seen by the seats that would act next.

    Learners bootstrap truncated games from it. The games themselves have restarted.
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
    """[batch]: a limit ended the game; its last position still has a value."""
    ending: ByteArray
    """[batch]: index into ``GameSpec.endings``; 0 if the game continues."""
    scores: FloatArray
    """[batch, seats]: the plain result (1 win, 0 draw, -1 loss; or the sum of rewards in games without winners),
    without reward shaping; 0 if the game continues."""
    plies: IntArray
    """[batch]: the length of the game, this step included."""
    final: FinalRows

    @property
    def done(self) -> BoolArray:
        return self.terminated | self.truncated


@runtime_checkable
class Game(Protocol):
    """A batch of games. With ``out=`` the caller owns the memory, and nothing is copied."""

    @property
    def spec(self) -> GameSpec: ...

    @property
    def batch(self) -> int: ...

    def rows(self) -> Rows:
        """Gets the rows that must act now."""
        ...

    def observe(self, out: Array | None = None) -> Array:
        """[rows, *observation.shape]: the observation of each row, from its seat's point of view."""
        ...

    def legal(self, out: BoolArray | None = None) -> BoolArray:
        """[rows, num_actions]: True where an action is legal. Every row has a legal action."""
        ...

    def pack(self, out: ByteArray | None = None) -> ByteArray:
        """[rows, packed_bytes]: each row in compact form; ``unpack`` expands it later."""
        ...

    def unpack(
        self,
        packed: ByteArray,
        observations: Array | None = None,
        legal: BoolArray | None = None,
    ) -> tuple[Array, BoolArray]:
        """Expands packed rows into exactly what ``observe`` and ``legal`` returned when they were packed. The result
        depends only on the spec, not on the state of the games."""
        ...

    def random_actions(self) -> IntArray:
        """[rows]: a uniformly random legal action for each row, keyed by (seed, game, episode, ply, seat)."""
        ...

    def step(self, actions: Array) -> Step:
        """Plays one integer action for each row. A wrong action raises ``ActionError`` or ``IllegalActionError``,
        and nothing changes."""
        ...

    def save(self) -> bytes:
        """Serialises the exact state of all games in compact form."""
        ...

    def load(self, blob: bytes) -> None:
        """Restores a state from ``save``, in a game made with the same options."""
        ...


class GameFactory(Protocol):
    """Builds a batch. ``first_game`` numbers the games. Game 7 plays the same in a batch of 8 and in a batch that
    starts at 7."""

    def __call__(self, *, batch: int, seed: int, first_game: int, **options: Any) -> Game: ...


def action_array(actions: Array | Sequence[int], rows: int, num_actions: int) -> IntArray:
    """Checks shape, type and range of an array of actions, and returns it as int32."""
    array = actions if type(actions) is np.ndarray else np.asarray(actions)
    if array.shape != (rows,):
        raise ActionError(
            f"step takes one action for each of the {rows} decision rows, as an array of shape ({rows},); got "
            f"shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise ActionError(f"actions must be integers, got {array.dtype}; convert them with .astype(np.int32)")
    outside = (array < 0) | (array >= num_actions)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ActionError(f"action {array[row]} in row {row} is outside 0 … {num_actions - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


def out_array(out: Array | None, shape: tuple[int, ...], dtype: Any, method: str) -> Array:
    """Returns the caller's array if one is given and it fits, else a new array."""
    if out is None:
        return np.empty(shape, dtype)
    if (
        not isinstance(out, np.ndarray)
        or out.shape != shape
        or out.dtype != dtype
        or not out.flags.carray  # contiguous, aligned and writeable
    ):
        found = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise GameError(
            f"{method} writes contiguous {np.dtype(dtype)} of shape {shape}; the array it was given is {found}"
        )
    return out
