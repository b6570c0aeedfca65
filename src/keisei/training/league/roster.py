"""Who is in the league, and how the learner fared against each member."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from keisei.evaluation.statistics import Interval, Tally, score_interval
from keisei.policies.model_config import ModelConfig
from keisei.policies.seating import FIRST_MEMBER, PolicyConfig
from keisei.runs.json_values import Json

__all__ = ["RECENT", "Member", "Results", "Roster", "milestones"]

RECENT = 200
"""How many of the last games against a member tell how the learner fares now."""
NO_GAMES = Tally()
_SIGNS = {1: "w", 0: "d", -1: "l"}

Kind = Literal["player", "run", "snapshot"]


@dataclass
class Results:
    """Games of the learner against one member, as the learner sees them."""

    total: Tally = NO_GAMES
    era: Tally = NO_GAMES
    """Since the last snapshot was added."""
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    """The last games: 1 won, 0 drawn, -1 lost."""
    was_beaten: bool = False
    """Whether the learner has once surely scored more than the threshold."""
    now: Tally = NO_GAMES
    """The last games, counted."""
    score: Interval | None = None
    """The score in the last games, with its 95 % interval; None before the first game."""

    def add(self, outcomes: Sequence[int], threshold: float) -> None:
        counted = _tally(outcomes)
        self.total, self.era = self.total + counted, self.era + counted
        self._remember(outcomes)
        self.was_beaten |= self.score is not None and self.score.low > threshold

    def _remember(self, outcomes: Iterable[int]) -> None:
        self.recent.extend(outcomes)
        self.now = _tally(self.recent)
        self.score = score_interval(self.now) if self.recent else None

    def is_forgotten(self, threshold: float) -> bool:
        """Tells whether the learner surely scores less than the threshold, and once surely scored more."""
        return self.was_beaten and self.score is not None and self.score.high < threshold

    def document(self) -> Json:
        return {
            "total": _counts(self.total),
            "era": _counts(self.era),
            "recent": "".join(_SIGNS[outcome] for outcome in self.recent),
            "was_beaten": self.was_beaten,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Results:
        outcomes = {sign: outcome for outcome, sign in _SIGNS.items()}
        results = cls(Tally(*document["total"]), Tally(*document["era"]))
        results._remember(outcomes[sign] for sign in document["recent"])
        results.was_beaten = bool(document["was_beaten"])
        return results


@dataclass
class Member:
    """One member of the league."""

    number: int
    """Its number in the column ``policy``, the same for the whole run."""
    kind: Kind
    player: PolicyConfig
    """Its name, and how it draws its actions."""
    update: int = 0
    """The update after which it joined."""
    ordinal: int = 0
    """For a snapshot: how many were taken before it."""
    model: ModelConfig | None = None
    """The network of a member with weights."""
    share: float | None = None
    """For a fixed member: its share of all draws."""
    in_pool: bool = True
    """False if it is not drawn any more. Games in play may still meet it."""
    is_stored: bool = False
    """Whether its weights are on the disk."""
    results: Results = field(default_factory=Results)

    @property
    def name(self) -> str:
        return self.player.policy

    def document(self) -> Json:
        return {
            "number": self.number,
            "kind": self.kind,
            "player": self.player.model_dump(mode="json"),
            "update": self.update,
            "ordinal": self.ordinal,
            "model": None if self.model is None else self.model.model_dump(mode="json"),
            "share": self.share,
            "in_pool": self.in_pool,
            "is_stored": self.is_stored,
            "results": self.results.document(),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Member:
        plain = dict(document)
        model = plain.pop("model")
        return cls(
            player=PolicyConfig.model_validate(plain.pop("player")),
            model=None if model is None else ModelConfig.model_validate(model),
            results=Results.of(plain.pop("results")),
            **plain,
        )


class Roster:
    """All members that may be drawn, or that a game may still meet. Numbers are never used twice."""

    def __init__(self, window: int, milestones: int) -> None:
        self._window, self._milestones = window, milestones
        self.members: dict[int, Member] = {}
        self.next_number = FIRST_MEMBER
        self.taken = 0
        """Snapshots that were ever taken."""

    def add(self, kind: Kind, player: PolicyConfig, **details: Any) -> Member:
        member = Member(self.next_number, kind, player, **details)
        self.members[member.number] = member
        self.next_number += 1
        return member

    def add_snapshot(self, player: PolicyConfig, update: int, model: ModelConfig) -> Member:
        """Adds a snapshot of the learner. Older ones leave the pool if they are neither in the window nor
        milestones."""
        member = self.add("snapshot", player, update=update, ordinal=self.taken, model=model)
        self.taken += 1
        drawn = self.drawn_after(self.taken)
        for other in self.snapshots:
            other.in_pool = other.ordinal in drawn
        for other in self.members.values():
            other.results.era = NO_GAMES
        return member

    def drawn_after(self, taken: int) -> set[int]:
        """Gives the ordinals of the snapshots in the pool, once so many were taken."""
        window = range(max(0, taken - self._window), taken)
        return {*window, *milestones(window.start, self._milestones)}

    def keep(self, numbers: Iterable[int]) -> None:
        """Forgets all other members that are not in the pool."""
        kept = set(numbers)
        self.members = {n: member for n, member in self.members.items() if member.in_pool or n in kept}

    @property
    def pool(self) -> list[Member]:
        """The members that may be drawn, by number."""
        return [member for member in self.members.values() if member.in_pool]

    @property
    def snapshots(self) -> list[Member]:
        return [member for member in self.members.values() if member.kind == "snapshot"]


def milestones(taken: int, most: int) -> range:
    """Gives which of the first ``taken`` snapshots are kept: every first, second, fourth … one, so that at most
    ``most`` are. One that was dropped never comes back."""
    if not most:
        return range(0)
    stride = 1
    while -(-taken // stride) > most:
        stride *= 2
    return range(0, taken, stride)


def _tally(outcomes: Iterable[int]) -> Tally:
    counted = Counter(outcomes)
    return Tally(counted[1], counted[0], counted[-1])


def _counts(tally: Tally) -> Json:
    return [tally.wins, tally.draws, tally.losses]
