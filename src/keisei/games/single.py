"""The easy way to add a game: write one game, and ``batched`` makes a batch of it.

The attributes of a class describe the game, and five methods play it::

    class Race(SingleGame):
        name = "race"
        num_actions = 3
        observation = ObservationSpec((1,), np.dtype(np.uint8))
        zero_sum = True

        def reset(self, rng):           self.to_move, self.square = 0, 0
        def legal(self, seat):          return [0, 1, 2]
        def play(self, action, rng):    self.square += action + 1; self.to_move = 1 - self.to_move
        def observe(self, seat):        return np.array([self.square], np.uint8)
        def outcome(self):              return Outcome.win(1 - self.to_move) if self.square >= 21 else None
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from keisei.errors import ContractError
from keisei.games.contract import Array, GameSpec, ObservationSpec
from keisei.games.offers import GameFace, RecordFormat
from keisei.games.randomness import KeyedRandom

if TYPE_CHECKING:
    from keisei.games.batched import BatchFactory


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended."""

    scores: tuple[float, ...] = ()
    """One score for each seat: 1 win, 0 draw, -1 loss. Empty in games whose score is the sum of rewards. ``win`` and
    ``draw`` write two; ``for_seats`` adapts them to the seats of a game."""
    ending: str = "finished"
    """One of the game's ``endings``."""
    truncated: bool = False
    """True if a limit of the game ended it, not its rules."""
    fits_any_seats: bool = field(default=False, repr=False, compare=False)
    """True if ``win`` or ``draw`` made it."""

    @classmethod
    def win(cls, seat: int, ending: str = "finished") -> Outcome:
        """Makes the outcome in which one seat wins 1 and the others share a loss of 1, however many they are."""
        if seat < 0:
            raise ContractError(
                f"Outcome.win names seat {seat}; the first seat is 0. Outcome.draw has no winner"
            )
        return cls(_scores_of_win(seat, max(2, seat + 1)), ending, fits_any_seats=True)

    @classmethod
    def draw(cls, ending: str = "finished") -> Outcome:
        return cls((0.0, 0.0), ending, fits_any_seats=True)

    def for_seats(self, seats: int) -> Outcome:
        """Completes this outcome with a score for each seat of the game."""
        if not self.fits_any_seats or len(self.scores) == seats:
            return self
        if 1.0 not in self.scores:
            return replace(self, scores=(0.0,) * seats)
        winner = self.scores.index(1.0)
        if winner >= seats:
            raise ContractError(f"Outcome.win names seat {winner}, but the seats are 0 … {seats - 1}")
        return replace(self, scores=_scores_of_win(winner, seats))


def _scores_of_win(winner: int, seats: int) -> tuple[float, ...]:
    loss = -1.0 / (seats - 1) if seats > 1 else 0.0
    return tuple(1.0 if seat == winner else loss for seat in range(seats))


class SingleGame(ABC):
    """A single game. Its options are the keyword arguments of ``__init__``, which may also set any of the
    attributes below."""

    name: str
    num_actions: int
    observation: ObservationSpec
    seats: int = 2
    simultaneous: bool = False
    """True if several seats act at once. Every seat then acts, unless ``acting`` says otherwise."""
    zero_sum: bool = False
    max_plies: int | None = None
    """The number of steps after which a game is truncated. ``make_game(..., max_plies=...)`` overrides it."""
    endings: tuple[str, ...] = ("finished",)
    """The names of the ways in which the rules end a game."""
    scored_by_rewards: bool = False
    """True in games without winners. The score is then the sum of the rewards."""
    plane_actions: bool = False
    """True if actions are numbered kind · squares + square, in the order of the observation's squares."""
    chance: bool = False
    """True if chance decides what a seat may do, as dice do. Players that search then refuse the game."""
    record_format: RecordFormat | None = None
    """The format in which games are written to files; None if there is none."""
    face: GameFace | None = None
    """How a person sees the game and plays it; None if it offers nothing of its own."""

    to_move: int = 0
    """The seat whose turn it is. Turn-based games keep it up to date, also in the final position."""

    @abstractmethod
    def reset(self, rng: KeyedRandom) -> None:
        """Sets up a new game. All randomness must come from ``rng``."""

    @abstractmethod
    def legal(self, seat: int) -> Array | Iterable[int]:
        """Lists the legal actions of a seat that must act: their numbers, or a bool array of all actions."""

    @abstractmethod
    def play(self, action: Any, rng: KeyedRandom) -> Sequence[float] | None:
        """Plays a legal action: an int, or in simultaneous games a tuple with one for each acting seat.

        Returns the rewards of this step, one for each seat. With None, the score at the end is the only reward.
        """

    @abstractmethod
    def observe(self, seat: int) -> Array:
        """Gets what a seat sees, as an array with the shape and type of ``observation``."""

    @abstractmethod
    def outcome(self) -> Outcome | None:
        """Gets the outcome; None while the game continues."""

    def __str__(self) -> str:
        """Draws the position, for ``render()`` of environments."""
        return f"{self.name}: define __str__ in {type(self).__name__} to show the position"

    def move_name(self, action: int) -> str:
        """Names a legal action in this position, as people write it."""
        return str(action)

    def observation_meaning(self) -> list[str]:
        """Explains each index of the first axis of an observation, such as a plane."""
        return [f"entry {index}" for index in range(self.observation.shape[0])]

    def action_meaning(self) -> list[str]:
        """Explains each action."""
        return [f"action {action}" for action in range(self.num_actions)]

    def acting(self) -> Sequence[int]:
        """Lists the seats that must act now, in ascending order."""
        return range(self.seats) if self.simultaneous else (self.to_move,)

    def snapshot(self) -> bytes:
        """Serialises the exact state of this game, for ``restore``. Long games may define both methods. By default a
        saved game is the list of its actions, and loading plays them again."""
        raise NotImplementedError

    def restore(self, state: bytes) -> None:
        """Restores a state from ``snapshot``. Raises ValueError if it is not valid."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Makes an independent copy, for players that look ahead. A game that is searched often may define a faster
        one."""
        return deepcopy(self)

    def position_key(self) -> Hashable | None:
        """Gets a key of this position. Positions with equal keys have the same moves and the same future, whatever
        their options. With None, the default, players that look ahead evaluate a position each time they reach it."""
        return None


def spec_of(game: SingleGame, max_plies: int | None) -> GameSpec:
    """Makes the spec of a single game. An error names the class and the missing attribute."""
    kind = type(game).__name__
    for attribute in ("name", "num_actions", "observation"):
        if not hasattr(game, attribute):
            raise ContractError(f"{kind} must set the attribute {attribute!r}, on the class or in __init__")
    if not isinstance(game.observation, ObservationSpec):
        raise ContractError(f"{kind}.observation must be an ObservationSpec, got {game.observation!r}")
    return GameSpec(
        name=game.name,
        seats=game.seats,
        num_actions=game.num_actions,
        observation=game.observation,
        packed_bytes=game.observation.nbytes + (game.num_actions + 7) // 8,
        simultaneous=game.simultaneous,
        zero_sum=game.zero_sum,
        max_plies=max_plies,
        endings=("unfinished", *game.endings, "truncated"),
        plane_actions=game.plane_actions,
        scored_by_rewards=game.scored_by_rewards,
        chance=game.chance,
        record_format=game.record_format,
        face=game.face,
    )


def batched(single: type[SingleGame]) -> BatchFactory:
    """Makes a factory of batches of a single game. The batches keep the whole contract of ``Game``.

    ``batched(Race)(batch=64, seed=7)`` makes 64 games; further keywords are the options of ``Race``.
    """
    from keisei.games.batched import BatchFactory

    return BatchFactory(single)
