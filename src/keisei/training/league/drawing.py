"""How a table draws the member that its next games meet."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from keisei.games.randomness import Stream, keyed_word
from keisei.policies.seating import LEARNER
from keisei.runs.json_values import Json
from keisei.training.league.roster import Member
from keisei.training.league.settings import SNAPSHOTS, Sampling, Weighting

__all__ = ["TableDraw", "chances", "draw", "table_share"]


@dataclass(frozen=True, slots=True)
class TableDraw:
    """The last draw of a table."""

    number: int
    """How many draws the table made before. All tables of a synchronous run draw together, so it is the same for all
    of them."""
    when: tuple[int, ...]
    """What a draw is valid for. A table draws again when it changes."""
    member: int

    def document(self) -> list[Json]:
        return [self.number, list(self.when), self.member]

    @classmethod
    def of(cls, number: Any, when: Iterable[Any], member: Any) -> TableDraw:
        drawn = cls(int(number), tuple(map(int, when)), int(member))
        if not all(0 <= count < 1 << 53 for count in (drawn.number, *drawn.when)):
            raise ValueError(f"{drawn} is no draw of a table")
        return drawn


def draw(
    members: Sequence[Member],
    allowed: Sequence[str] | None,
    sampling: Sampling,
    weighting: Weighting,
    key: tuple[int, int, int],
) -> int:
    """Draws the number of a member by a key (seed, table, number of the draw); 0, the learner itself, if there is
    nobody."""
    may = [member for member in members if allowed is None or _is_named(member, allowed)]
    if not may:
        return LEARNER
    seed, table, number = key
    uniform = (keyed_word(seed, Stream.LINEUP, table, number) >> 11) * 2.0**-53
    ends = list(accumulate(chances(may, sampling, weighting)))
    place = bisect_right(ends, uniform * ends[-1])
    return may[min(place, len(may) - 1)].number


def table_share(share: float, place: int, tables: int, number: int) -> float:
    """Computes the share of games that meet the league at one of several tables. Over all tables it is ``share``.

    Some tables meet the league in all games and others in none, and they change with each draw. Games of both kinds at
    every table would mean twice as many forward passes, each with half as many rows. At most one table mixes them.
    """
    meeting = share * tables
    turn = max(1, math.floor(meeting))
    # After a round of turns, all move on by one, so that each table comes to each place equally often.
    rounds = number // (tables // math.gcd(turn, tables))
    return min(1.0, max(0.0, meeting - (place - number * turn - rounds) % tables))


def chances(members: Sequence[Member], sampling: Sampling, weighting: Weighting) -> list[float]:
    """Computes the chance of each member. Fixed members with a share have that; the others divide the rest."""
    shared = sum(member.share or 0.0 for member in members)
    weights = [
        0.0 if member.share is not None else _weight(member, members, sampling, weighting)
        for member in members
    ]
    rest = (1 - shared) / sum(weights) if any(weights) else 0.0
    return [
        weight * rest if member.share is None else member.share
        for member, weight in zip(members, weights, strict=True)
    ]


def _is_named(member: Member, allowed: Sequence[str]) -> bool:
    return (SNAPSHOTS if member.kind == "snapshot" else member.name) in allowed


def _weight(member: Member, members: Sequence[Member], sampling: Sampling, weighting: Weighting) -> float:
    if sampling == "uniform":
        return 1.0
    if sampling == "latest":
        newest = max((other.number for other in members if other.kind == "snapshot"), default=LEARNER)
        return float(member.kind != "snapshot" or member.number == newest)
    recent, per_game = member.results.now, member.results.per_game
    # One win and one loss more than were played: a member that nobody has met yet is an equal.
    score = (recent.points / per_game + 1) / (recent.games / per_game + 2)
    return {"variance": score * (1 - score), "squared": (1 - score) ** 2, "linear": 1 - score}[weighting]
