"""The manager's view of the league: whom each table meets, and which members are still needed on the shelf."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from keisei.errors import ParallelError
from keisei.parallel.arena import Arena
from keisei.parallel.plan import LeaguePlan
from keisei.parallel.tables import Table
from keisei.parallel.weights.shelf import MemberPlay, Shelf
from keisei.parallel.weights.weight_codec import Weights
from keisei.parallel.worker.members import head_bytes, split_members
from keisei.policies.model_config import ModelConfig
from keisei.policies.seating import LEARNER, Lineup


class Lineups:
    """Seats members at tables, and keeps their weights as long as a game may meet them."""

    def __init__(
        self,
        tables: Sequence[Table],
        arena: Arena,
        shelf: Shelf,
        plan: LeaguePlan,
        learner: ModelConfig,
    ) -> None:
        self._tables, self._arena, self.shelf = tables, arena, shelf
        self._players = frozenset(plan.players)
        self._learner = learner

    def seat(self, table: int, lineup: Lineup) -> None:
        """Lets the games of a table meet this member if they begin in slabs that are ordered from now on. Games in
        play keep their members."""
        if lineup.member != LEARNER and lineup.member not in self._known:
            raise ParallelError(
                f"member {lineup.member} is neither a player of the league nor on the shelf, so no game can meet it; "
                f"put its weights there first"
            )
        self._tables[table].lineup = lineup

    def shelve(
        self, member: int, weights: Weights, settings: MemberPlay, model: ModelConfig | None = None
    ) -> None:
        """Puts the weights of a new member on the shelf. ``model`` is its network, by default the learner's."""
        self.shelf.put(member, self._learner if model is None else model, weights, settings)

    def make_room(self, wanted: Collection[int]) -> bool:
        """Clears all members from the shelf that are neither wanted nor seated. Checks whether a place for
        a version of the learner is free now."""
        for member in self.shelf.members - set(wanted) - self.seated():
            self.shelf.clear(member)
        return self.shelf.has_room(self._learner)

    def seated(self) -> set[int]:
        """Lists the members that a game may meet now: those that a lineup, an order or a saved game names."""
        return {member for table in self._tables for member in self._named_by(table)} - {LEARNER}

    def demand_all(self) -> None:
        """Raises an error if a saved game names a member whose weights are not here."""
        missing = sorted(self.seated() - self._known)
        if missing:
            raise ParallelError(
                f"saved games are against members {missing}, whose weights are not on the shelf; put them there "
                f"before the workers start"
            )

    @property
    def _known(self) -> set[int]:
        return self.shelf.members | self._players

    def _named_by(self, table: Table) -> set[int]:
        named = {table.lineup.member, *(order.lineup.member for order in table.orders)}
        if (saved := table.continued) is not None:
            head = saved.state or self._arena.read_state(saved.slot, head_bytes(table.games))
            members, _ = split_members(head)
            named |= set() if members is None else set(members.tolist())
        return named
