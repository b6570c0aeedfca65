"""Keeps the league of a run on disk: the weights of its members, and their standings in ``run.db``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from keisei.errors import CheckpointWriteError, RunDatabaseError
from keisei.evaluation.ratings import Pairing, Rating, rate
from keisei.evaluation.statistics import Tally
from keisei.policies.players.player_document import DOCUMENT, PlayerDocument
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow
from keisei.runs.snapshots import SnapshotStore
from keisei.training.league.opponents import OpponentManager
from keisei.training.league.roster import Member
from keisei.training.standings import ANCHOR, connected

__all__ = ["LeagueRecords", "ratings_of"]

LEARNER = "learner"
"""The name of the learner before its first snapshot."""
RATED_ERAS = 64
"""The eras of the learner, newest last, whose games are rated. More would take longer with each snapshot."""


class LeagueRecords:
    """Writes the league after each update, before a checkpoint names its members."""

    def __init__(
        self,
        league: OpponentManager,
        store: SnapshotStore,
        archive: CheckpointArchive,
        database: RunDatabase,
        game: str,
        player: PlayerDocument,
        tell: Callable[[str, str], None],
    ) -> None:
        self._league, self._store, self._archive = league, store, archive
        self._database, self._game, self._player, self._tell = database, game, player, tell
        self._problems: set[str] = set()
        self._cells: dict[str, dict[int, LeagueResultRow]] = {}
        """The matrix, by the learner's last snapshot and the member's number."""

    def write(self, update: int) -> None:
        """Writes new members to the disk, removes those that nobody needs any more, and writes all standings."""
        with self._told("a member of the league is not on the disk yet"):
            self._store_members()
        with self._told("members that nobody needs any more are still on the disk"):
            self._store.prune(self._league.roster.members, self._archive.paths())
        with self._told("the standings of the league are not kept"):
            cells = list(self._result_rows(update))
            self._keep(cells)
            self._database.add_league(self._member_rows(update), cells)

    def _keep(self, cells: Iterable[LeagueResultRow]) -> None:
        """Keeps the newest rows of the matrix here, so that it is read once."""
        for cell in cells if self._cells else (*self._database.league_results(), *cells):
            self._cells.setdefault(cell.learner, {})[cell.number] = cell
        for old in list(self._cells)[:-RATED_ERAS]:
            del self._cells[old]

    def _store_members(self) -> None:
        """Writes new members. If one cannot be written, checkpoints hold its weights, and it is tried again."""
        for member, weights in self._league.unsaved():
            self._store.save(member.number, self._checkpoint(member, weights))
            member.is_stored = True

    @contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        """Reports a problem with the disk once, until it is over. Training continues."""
        try:
            yield
        except (CheckpointWriteError, RunDatabaseError, OSError) as error:
            if problem not in self._problems:
                self._tell(f"{problem}: {error}", "warning")
            self._problems.add(problem)
        else:
            self._problems.discard(problem)

    def _checkpoint(self, member: Member, weights: Mapping[str, Tensor]) -> Checkpoint:
        """Makes the checkpoint of a member. A snapshot plays as the run does in its evaluations, and another run as in
        the league."""
        own = {} if member.kind == "snapshot" else {"temperature": member.player.temperature}
        player = self._player.model_copy(update={"model": member.model, **own})
        return Checkpoint(
            game=self._game,
            counters={"update": member.update},
            tensors={"model": weights},
            documents={"member": member.document(), DOCUMENT: player.model_dump(mode="json")},
        )

    def _member_rows(self, update: int) -> list[LeagueMemberRow]:
        members = self._league.roster.members.values()
        ratings = ratings_of(members, [cell for row in self._cells.values() for cell in row.values()])
        forgotten = {member.number for member in self._league.forgotten()}
        now = time.time()
        return [
            _member_row(member, update, now, ratings.get(member.number), member.number in forgotten)
            for member in members
        ]

    def _result_rows(self, update: int) -> Iterator[LeagueResultRow]:
        """Yields the row of the matrix for the learner since its last snapshot."""
        snapshots = self._league.roster.snapshots
        learner = snapshots[-1].name if snapshots else LEARNER
        now = time.time()
        for member in self._league.roster.members.values():
            era, score = member.results.era, member.results.era_score
            if score is not None:
                yield LeagueResultRow(
                    learner, member.name, update, now, era.wins, era.draws, era.losses,
                    score.value, score.low, score.high, member.number, member.results.per_game,
                )  # fmt: skip


def _member_row(
    member: Member, update: int, now: float, rating: Rating | None, forgotten: bool
) -> LeagueMemberRow:
    results, score = member.results, member.results.score
    return LeagueMemberRow(
        number=member.number,
        update=update,
        time=now,
        name=member.name,
        kind=member.kind,
        joined=member.update,
        in_pool=member.in_pool,
        wins=results.total.wins,
        draws=results.total.draws,
        losses=results.total.losses,
        recent_games=results.recent_games,
        score=None if score is None else score.value,
        low=None if score is None else score.low,
        high=None if score is None else score.high,
        rating=None if rating is None else rating.elo,
        rating_low=None if rating is None else rating.low,
        rating_high=None if rating is None else rating.high,
        forgotten=forgotten,
        per_game=results.per_game,
    )


def ratings_of(members: Iterable[Member], cells: Iterable[LeagueResultRow]) -> dict[int, Rating]:
    """Rates members by the matrix. The learner changes, so between two snapshots it counts as a player of its own:
    members gain nothing by having met it when it was weak. The random player has rating 0 if it is one of them, else
    the oldest member. Members that no chain of games connects with it have no rating."""
    names = {member.number: member.name for member in members}
    pairings = [
        Pairing(cell.learner, str(cell.number), Tally(cell.wins, cell.draws, cell.losses), cell.per_game)
        for cell in cells
        if cell.number in names
    ]
    if not pairings:
        return {}
    played = sorted({int(pairing.second) for pairing in pairings})
    anchor = str(next((number for number in played if names[number] == ANCHOR), played[0]))
    ratings = {rating.player: rating for rating in rate(connected(pairings, anchor), anchor)}
    return {number: ratings[str(number)] for number in played if str(number) in ratings}
