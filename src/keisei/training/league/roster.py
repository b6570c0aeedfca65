"""Who is in the league."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from keisei.policies.model_config import ModelConfig
from keisei.policies.seating import FIRST_MEMBER, LAST_MEMBER, PolicyConfig
from keisei.runs.json_values import Json
from keisei.training.league.results import NO_GAMES, Results

__all__ = ["Member", "Roster", "milestones"]

Kind = Literal["player", "run", "snapshot"]


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
        """Makes a member from its ``document``. Raises ``ValueError`` if the document is not valid."""
        plain = dict(document)
        model = plain.pop("model")
        member = cls(
            player=PolicyConfig.model_validate(plain.pop("player")),
            model=None if model is None else ModelConfig.model_validate(model),
            results=Results.of(plain.pop("results")),
            **plain,
        )
        member.check()
        return member

    def check(self) -> None:
        """Checks what a checkpoint says of a member. Its number stands in every record of a game."""
        counts = (self.number, self.update, self.ordinal)
        if any(type(count) is not int or not 0 <= count < 1 << 53 for count in counts):
            raise ValueError(f"{counts} are not the numbers of a member")
        if not FIRST_MEMBER <= self.number <= LAST_MEMBER:
            raise ValueError(
                f"a member has a number in {FIRST_MEMBER} … {LAST_MEMBER}, and not {self.number}"
            )
        if self.kind not in get_args(Kind) or (self.model is None) != (self.kind == "player"):
            raise ValueError(
                f"member {self.number} is of the kind {self.kind!r:.40}, which does not fit its network"
            )
        if not isinstance(self.in_pool, bool) or not isinstance(self.is_stored, bool):
            raise ValueError(f"member {self.number} is neither drawn nor left out")


class Roster:
    """All members that may be drawn, or that a game may still meet. Numbers are never used twice."""

    def __init__(self, window: int, milestones: int) -> None:
        self._window, self._milestones = window, milestones
        self.members: dict[int, Member] = {}
        self.next_number = FIRST_MEMBER
        self.taken = 0
        """Snapshots that were ever taken."""
        self._per_game = 1

    def continue_at(self, next_number: int, taken: int) -> None:
        """Continues the counts of a checkpoint. Raises ``ValueError`` if they are not valid."""
        if not FIRST_MEMBER <= next_number <= LAST_MEMBER + 1 or not 0 <= taken < 1 << 53:
            raise ValueError(f"{next_number} and {taken} are not counts of a league")
        self.next_number, self.taken = next_number, taken

    def count_comparisons(self, per_game: int) -> None:
        """Says how many comparisons a game has. Results that were counted in another way are dropped: scores of both
        kinds cannot be added."""
        self._per_game = per_game
        for member in self.members.values():
            if member.results.per_game != per_game:
                member.results = Results(per_game=per_game)

    def add(self, kind: Kind, player: PolicyConfig, **details: Any) -> Member:
        results = Results(per_game=self._per_game)
        member = Member(self.next_number, kind, player, results=results, **details)
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
        """Lists the ordinals of the snapshots in the pool, once this many were taken."""
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
    """Computes which of the first ``taken`` snapshots are kept: every first, second, fourth … one, so that at most
    ``most`` are. A snapshot that was dropped never comes back."""
    if not most:
        return range(0)
    stride = 1
    while -(-taken // stride) > most:
        stride *= 2
    return range(0, taken, stride)
