"""The opponents of a learner: decides whom each table meets, when a snapshot joins the league, and counts results.

It belongs to no regime. The loop calls ``prepare`` before it collects and ``take`` with what was collected. Everything
it does follows from its state, the collected slabs and the seed, so that a synchronous run gives the same bits again.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from keisei.errors import CheckpointError
from keisei.evaluation.results import judged_by_returns
from keisei.experience.collected import Experiences
from keisei.parallel.lineups import Lineups
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.tables import Table
from keisei.policies.behaviour import Behaviour, PlaySettings, epsilon_of_games
from keisei.policies.seating import LAST_MEMBER, LEARNER, Lineup, PolicyConfig
from keisei.runs.checkpoint import checkpoint_name
from keisei.runs.league import ENOUGH_GAMES
from keisei.runs.state import State
from keisei.training.events import Counters, LeagueSummary
from keisei.training.league.drawing import TableDraw, draw, table_share
from keisei.training.league.results import NO_GAMES, compared
from keisei.training.league.roster import Member, Roster
from keisei.training.league.settings import CurriculumPhase, LeagueSettings

__all__ = ["TENSORS", "OpponentManager"]

logger = logging.getLogger(__name__)

TENSORS = "league"
"""The group of tensors in a checkpoint with weights of members that are not on the disk."""


class OpponentManager:
    """Runs the league of one learner."""

    def __init__(self, settings: LeagueSettings, roster: Roster, manager: ParallelManager) -> None:
        """The manager was made with a league, and all members of the roster with weights are on its shelf."""
        assert manager.lineups is not None
        assert manager.model_config is not None
        self.roster = roster
        self.lineups: Lineups = manager.lineups
        self._settings = settings
        self._manager = manager
        self._model = manager.model_config
        self._tables = [
            table for table in manager.tables if manager.config.override_of(table.number).seating is None
        ]
        self._drawn: dict[int, TableDraw] = {}
        """By table: its last draw."""
        self._taken_at = 0
        """Transitions of the run when the last snapshot was taken."""
        self._waits = False
        self._per_game = max(1, manager.spec.seats - 1)
        self._truncated_is_drawn = not judged_by_returns(manager.spec)
        roster.count_comparisons(self._per_game)

    # Before a collection.

    def prepare(self, counters: Counters, progress: float, behaviour: Callable[[], Behaviour]) -> None:
        """Adds a snapshot of the learner if it is due, and lets each table draw another member if its time has
        come."""
        self._forget_who_left()
        if self._snapshot_is_due(counters.transitions):
            self._add_snapshot(counters, behaviour())
        phase = self._settings.phase_at(progress)
        ended = sum(progress >= other.until for other in self._settings.curriculum)
        for place, table in enumerate(self._tables):
            drawn = self._drawn[table.number] = self._draw(table, phase, ended)
            assert phase.latest_ratio is not None
            share = table_share(1 - phase.latest_ratio, place, len(self._tables), drawn.number)
            self.lineups.seat(table.number, Lineup(drawn.member, share))

    def _forget_who_left(self) -> None:
        """Forgets members that are not drawn any more, once no game meets them and all their games are counted. It
        happens before each collection, however often the run is saved."""
        if len(self.roster.pool) < len(self.roster.members):
            self.roster.keep(self.lineups.seated() | self._manager.waiting_opponents())

    def _snapshot_is_due(self, transitions: int) -> bool:
        if not self.roster.taken:
            return True
        if transitions - self._taken_at < self._settings.save_steps:
            return False
        return self._settings.add_when == "steps" or self._scores_enough()

    def _scores_enough(self) -> bool:
        """Checks if the learner has scored enough against the snapshots since the last one was added."""
        era = sum((m.results.era for m in self.roster.pool if m.kind == "snapshot"), NO_GAMES)
        return era.games >= ENOUGH_GAMES * self._per_game and era.score >= self._settings.win_rate_threshold

    def _add_snapshot(self, counters: Counters, behaviour: Behaviour) -> None:
        roster = self.roster
        stays = roster.drawn_after(roster.taken + 1)
        wanted = [m.number for m in roster.pool if m.kind != "snapshot" or m.ordinal in stays]
        if roster.next_number > LAST_MEMBER:
            self._tell_once(
                f"no more snapshots join the league: {LAST_MEMBER} is its last number, and none is used twice. With a "
                f"larger league.save_steps they last longer"
            )
            return
        if not self.lineups.make_room(wanted):
            self._tell_once(
                "the league is full: the next snapshot waits until a game against an old one ends"
            )
            return
        player = self._as_snapshot(behaviour, counters.update)
        member = roster.add_snapshot(player, counters.update, self._model)
        settings = player.temperature, player.epsilon
        self.lineups.shelve(member.number, behaviour.network, settings)
        self._taken_at, self._waits = counters.transitions, False

    def _tell_once(self, why: str) -> None:
        """Logs why no snapshot joins, once until one joins."""
        if not self._waits:
            logger.warning(why)
        self._waits = True

    def _as_snapshot(self, behaviour: Behaviour, update: int) -> PolicyConfig:
        given, (own,) = self._settings, behaviour.settings
        return PolicyConfig(
            policy=checkpoint_name(update),
            temperature=own.temperature if given.temperature is None else given.temperature,
            epsilon=self._mean_epsilon(own) if given.epsilon is None else given.epsilon,
        )

    def _mean_epsilon(self, own: PlaySettings) -> float:
        """Computes the learner's epsilon, as the mean of all games if it is spread over them."""
        total = sum(table.games for table in self._manager.tables)
        games = np.arange(total, dtype=np.int32)
        return float(np.mean(epsilon_of_games(own.epsilon, own.spread, games, total)))

    def _draw(self, table: Table, phase: CurriculumPhase, ended: int) -> TableDraw:
        """Gets the last draw of a table, or makes a new one if its time is over: after ``swap_steps`` of its own
        transitions, when a phase ends, and when a snapshot joins. So the draw does not depend on workers or other
        tables, and short runs meet new snapshots too."""
        swap = table.next_sequence * self._manager.slab_transitions // self._settings.swap_steps
        when = swap, ended, self.roster.taken
        last = self._drawn.get(table.number, TableDraw(-1, (), LEARNER))
        if last.when == when and last.member in {member.number for member in self.roster.pool}:
            return last
        # If only its member has left, the table draws once more with the same number, in step with the others.
        number = last.number + (last.when != when)
        assert phase.sampling is not None
        key = self._manager.seed, table.number, number
        member = draw(self.roster.pool, phase.members, phase.sampling, self._settings.weighting, key)
        return TableDraw(number, when, member)

    # After a collection.

    def take(self, experiences: Experiences) -> LeagueSummary:
        """Counts the games against members that ended in this experience, and summarises the league."""
        outcomes: defaultdict[int, list[int]] = defaultdict(list)
        for item in experiences:
            for number, results in compared(item, self._truncated_is_drawn):
                if number in self.roster.members:
                    outcomes[number] += results
        for number, results in outcomes.items():
            self.roster.members[number].results.add(results, self._settings.forgotten_threshold)
        return self._summary([outcome for results in outcomes.values() for outcome in results])

    def _summary(self, outcomes: Sequence[int]) -> LeagueSummary:
        pool = self.roster.pool
        scores = {m.name: m.results.now.score for m in pool if m.results.recent_games >= ENOUGH_GAMES}
        worst = min(scores, key=lambda name: scores[name], default="")
        return LeagueSummary(
            members=len(pool),
            games=len(outcomes) // self._per_game,
            score=(1 + sum(outcomes) / len(outcomes)) / 2 if outcomes else math.nan,
            worst=worst,
            worst_score=scores.get(worst, math.nan),
            forgotten=len(self.forgotten()),
        )

    def forgotten(self) -> list[Member]:
        """Lists the members that the learner once beat and now loses to."""
        threshold = self._settings.forgotten_threshold
        return [member for member in self.roster.pool if member.results.is_forgotten(threshold)]

    # Saved and restored with checkpoints.

    def state(self) -> State:
        """Gets the members, their results and whom each table meets. Weights are on the disk; those that could not be
        written there are in the state."""
        seated = self.lineups.seated()
        members = [
            member for number, member in self.roster.members.items() if member.in_pool or number in seated
        ]
        tensors = {
            f"{member.number}.{name}": tensor
            for member in members
            if member.model is not None and not member.is_stored
            for name, tensor in self.lineups.shelf.weights_of(member.number).items()
        }
        return State(
            {TENSORS: tensors} if tensors else {},
            {
                "next_number": self.roster.next_number,
                "taken": self.roster.taken,
                "taken_at": self._taken_at,
                "members": [member.document() for member in members],
                "draws": [[table, *drawn.document()] for table, drawn in self._drawn.items()],
            },
        )

    def restore(self, document: Mapping[str, Any]) -> None:
        """Restores the draws of the tables. The roster and the shelf were restored before. In checkpoints of earlier
        versions there are none, and all tables draw again."""
        try:
            self._taken_at = int(document["taken_at"])
            drawn = {int(table): TableDraw.of(*entry) for table, *entry in document.get("draws", ())}
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint does not hold the league: {error!r}") from error
        known = {table.number for table in self._tables}
        self._drawn = {table: last for table, last in drawn.items() if table in known}
        for table, last in self._drawn.items():
            if last.member in {LEARNER, *self.roster.members}:
                # As in a run that goes on: a place on the shelf is not free before the table draws again.
                self.lineups.seat(table, Lineup(last.member))

    def unsaved(self) -> Iterator[tuple[Member, dict[str, Tensor]]]:
        """Yields the members whose weights are not on the disk, with their weights. Who has left the shelf is not
        needed any more."""
        for member in self.roster.members.values():
            if member.number in self.lineups.shelf.members and not member.is_stored:
                yield member, self.lineups.shelf.weights_of(member.number)
