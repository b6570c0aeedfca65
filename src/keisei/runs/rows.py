"""The rows of ``run.db``. Fields are in the order of the table's columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeAlias, TypeVar

Row = TypeVar("Row")
Measured: TypeAlias = float
"""A number that may be NaN, or infinite in a run that has diverged."""
_LARGEST = 1 << 53
"""Whole numbers are smaller: JSON and a browser keep them exactly."""


def checked_row(cls: type[Row], values: Sequence[object], names: Sequence[str] = ()) -> Row:
    """Makes a row of these fields, by default of all. Raises ``ValueError`` if a value is not of its field's type."""
    kinds = _kinds(cls)  # type: ignore[arg-type]
    return cls(
        **{name: _checked(kinds[name], name, v) for name, v in zip(names or kinds, values, strict=True)}
    )


@cache
def _kinds(cls: type) -> dict[str, str]:
    return {field.name: str(field.type) for field in fields(cls)}


def _checked(kind: str, name: str, value: object) -> object:
    kind, _, optional = kind.partition(" | ")
    if value is None and (optional or kind == "Measured"):
        return None if optional else math.nan
    if isinstance(value, int) and abs(value) < _LARGEST and kind != "str":
        return bool(value) if kind == "bool" else value
    if isinstance(value, float) and (kind == "Measured" or (kind == "float" and math.isfinite(value))):
        return value
    if isinstance(value, str) and kind == "str":
        return value
    known = repr(value)[:60] if isinstance(value, str | bytes | float) else type(value).__name__
    raise ValueError(f"the column {name!r} holds {known}, and must hold {kind}")


@dataclass(frozen=True)
class MetricName:
    """The name of a metric."""

    name: str


@dataclass(frozen=True)
class NamedValue:
    """The newest number of a metric."""

    name: str
    value: Measured


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest number of a column."""

    first: int
    last: int


@dataclass(frozen=True)
class MetricPoint:
    """One number of one update."""

    update: int
    step: int
    """Transitions learned from so far: the x-axis of every curve."""
    time: float
    """Seconds since 1970."""
    value: Measured


@dataclass(frozen=True)
class ThinnedPoint:
    """Several numbers of a curve, drawn as one point. Numbers that are missing are None."""

    update: float
    step: float
    value: Measured | None
    low: Measured | None
    """The smallest number."""
    high: Measured | None


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    update: int
    step: int
    time: float


@dataclass(frozen=True)
class EvaluationRow:
    """A match of a player against an opponent. Wins, draws and losses count comparisons of their scores: one in a game
    of one or two seats, one for each seat of the opponent in others. Score and 95 % interval are shares of the
    points."""

    update: int
    step: int
    time: float
    player: str
    opponent: str
    wins: int
    draws: int
    losses: int
    score: float
    low: float
    high: float
    elo: float | None = None
    """The Elo difference for the score; None if it has no bound, as after wins only."""
    elo_low: float | None = None
    elo_high: float | None = None
    seats: int = 2
    mean_return: float | None = None
    """The player's mean score in a game, with its 95 % interval; None where wins, draws and losses tell all. The bounds
    are None if there was only one round of games."""
    return_low: float | None = None
    return_high: float | None = None
    opponent_return: float | None = None
    """The opponent's mean score in a game, over its seats."""

    @property
    def comparisons(self) -> int:
        """Comparisons in one game."""
        return max(1, self.seats - 1)

    @property
    def games(self) -> int:
        return (self.wins + self.draws + self.losses) // self.comparisons

    @property
    def mean_rank(self) -> float:
        """The player's mean rank at its table; 1 is the best. A player who is alone is ranked with the opponent."""
        return 1 + self.comparisons * (1 - self.score)

    @property
    def against_checkpoint(self) -> bool:
        """Whether the opponent was a checkpoint of the run itself, the best at that time."""
        return self.opponent.startswith("update-")


@dataclass(frozen=True)
class GameRow:
    """One game and the path of its record."""

    update: int
    time: float
    first: str
    """Who moved first."""
    second: str
    score: float
    """The score of the first player: 1 win, 0.5 draw, 0 loss."""
    plies: int
    ending: str
    record: str
    """A path inside the run directory. A game whose record is written again replaces the old one."""


@dataclass(frozen=True)
class RatingRow:
    """A player's strength with its 95 % interval, as it was after an update."""

    player: str
    update: int
    time: float
    rating: float
    low: float
    high: float
    games: int


@dataclass(frozen=True)
class ChangeRow:
    """A setting that changed when the run was resumed."""

    update: int
    """The first update with the new value."""
    time: float
    setting: str
    """Its name with its section, such as ``learner.learning_rate``."""
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.setting} {self.old} → {self.new} from update {self.update} on"


@dataclass(frozen=True)
class LeagueMemberRow:
    """A member of the league, as it was after an update. Counts and scores are those of the learner against it. As in
    evaluations, wins, draws and losses count comparisons."""

    number: int
    """Its number in the column ``policy`` of the experience."""
    update: int
    time: float
    name: str
    kind: str
    """``snapshot``, ``player`` or ``run``."""
    joined: int
    """The update after which it joined."""
    in_pool: bool
    """False if it is not drawn any more, while games in play still meet it."""
    wins: int
    draws: int
    losses: int
    recent_games: int
    """The last games, which the score is of."""
    score: float | None
    """None before the first game, as are its 95 % interval and the rating."""
    low: float | None
    high: float | None
    rating: float | None
    rating_low: float | None
    rating_high: float | None
    forgotten: bool
    """The learner once surely beat it, and now surely loses to it."""
    per_game: int = 1
    """Comparisons in one game: one for each seat of the member."""

    @property
    def games(self) -> int:
        return (self.wins + self.draws + self.losses) // max(1, self.per_game)


@dataclass(frozen=True)
class LeagueResultRow:
    """One cell of the win-rate matrix: the learner, from one snapshot to the next, against a member. As in evaluations,
    wins, draws and losses count comparisons."""

    learner: str
    """The snapshot that the learner had last taken."""
    member: str
    update: int
    """The last update in which the learner had this snapshot."""
    time: float
    wins: int
    draws: int
    losses: int
    score: float
    low: float
    high: float
    number: int
    """The number of the member. Two members may have one name."""
    per_game: int = 1
    """Comparisons in one game."""

    @property
    def games(self) -> int:
        return (self.wins + self.draws + self.losses) // max(1, self.per_game)


@dataclass(frozen=True)
class WorkerEventRow:
    """Something that happened to a worker, such as a restart."""

    update: int
    time: float
    worker: int
    event: str
    detail: str = ""
