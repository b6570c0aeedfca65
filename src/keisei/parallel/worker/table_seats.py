"""Who sits at one table: the learner, the opponents of its seating, and the members of the league that its games have
drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from keisei.errors import SavedStateError
from keisei.games.contract import BoolArray, Rows
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.worker.members import Members, split_members, with_members
from keisei.policies.behaviour import LearnerPolicy
from keisei.policies.contract import Decision, Policy, Situation
from keisei.policies.networks import ActorCritic
from keisei.policies.registry import seated_policies
from keisei.policies.seating import LEARNER, SELF_PLAY, Assignment, Lineup, play


class TableSeats:
    """Seats the rows of a table. A game draws a member of the league when it begins, and keeps it to its end."""

    def __init__(
        self,
        plan: WorkerPlan,
        table: int,
        situation: Situation,
        learner: LearnerPolicy,
        network: ActorCritic | None,
        members: Members | None,
    ) -> None:
        spec = situation.game.spec
        self._seating, self._seats = plan.seating_of(table), spec.seats
        self._games, self._first_game = plan.games, plan.first_game(table)
        self._learner = learner
        self._seated = seated_policies(learner, self._seating, spec, network)
        self._policies: Mapping[int, Policy] = self._seated
        self._members = members if plan.meets_league(table) else None
        self._lineup = SELF_PLAY
        self._drawn: Assignment | None = None
        """[games]: the member that each game has drawn, 0 for none. None without a league, and before the first
        games."""

    def load(self, state: bytes) -> bytes:
        """Takes the members out of a saved state, and returns the saved games."""
        drawn, games = split_members(state)
        if drawn is not None and len(drawn) != self._games:
            raise SavedStateError(f"a saved state is of {len(drawn)} games, and this table has {self._games}")
        if self._members is not None:
            self._drawn = np.zeros(self._games, np.int16) if drawn is None else drawn
        return games

    def save(self, games: bytes) -> bytes:
        """Adds the members to saved games."""
        return games if self._drawn is None else with_members(games, self._drawn)

    def meet(self, lineup: Lineup, situation: Situation) -> None:
        """Lets games that begin from now on meet this member of the league."""
        if self._members is None:
            return
        self._lineup = lineup
        if self._drawn is None:
            self._drawn = np.zeros(self._games, np.int16)
            self.begin(np.ones(self._games, np.bool_), situation)
        met = {lineup.member, *self._drawn.tolist()} - {LEARNER}
        self._policies = self._seated | {member: self._members.policy_of(member) for member in met}

    def begin(self, begun: BoolArray, situation: Situation) -> None:
        """Lets games that have just begun draw a member. ``begun`` is [games]."""
        if self._drawn is not None:
            rows = situation.rows
            new = begun[rows.game]
            game = rows.game[new]
            self._drawn[game] = self._seating.draw_members(
                game + self._first_game, rows.episode[new], situation.seed, self._lineup
            )

    def assign(self, situation: Situation) -> Assignment:
        return self._seating.assign(
            situation.rows, situation.seed, self._first_game, self._seats, self._drawn
        )

    def owners(self, assignment: Assignment, rows: Rows) -> Assignment:
        return self._seating.owners(assignment, self._learner.owners(rows))

    def play(self, situation: Situation, assignment: Assignment) -> Decision:
        return play(self._policies, situation, assignment)

    def opponents(self, done: BoolArray, rows: Rows, seed: int) -> Assignment | int:
        """Lists the opponent of each game that is done; 0 where the learner met itself."""
        if self._drawn is None and not self._seating.opponents:
            return LEARNER
        episode = np.zeros(self._games, np.int32)
        episode[rows.game] = rows.episode
        game = np.flatnonzero(done)
        drawn = None if self._drawn is None else self._drawn[game]
        return self._seating.opponents_of(game + self._first_game, episode[game], seed, drawn)
