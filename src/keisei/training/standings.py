"""Ratings within a run: all matches in ``run.db``, on one Bradley-Terry scale."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from keisei.evaluation.ratings import Pairing, rate
from keisei.evaluation.statistics import Tally
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import RatingRow

__all__ = ["anchor_of", "connected", "pairings_of", "rate_run", "save_ratings"]

ANCHOR = "random"
"""Has rating 0 in every run that plays against it, so runs can be compared."""


def pairings_of(database: RunDatabase) -> list[Pairing]:
    """Lists the matches of a run, in the order of updates."""
    return [
        Pairing(row.player, row.opponent, Tally(row.wins, row.draws, row.losses), row.comparisons)
        for row in database.evaluations()
    ]


def rate_run(database: RunDatabase, update: int, further: Iterable[Pairing] = ()) -> list[RatingRow]:
    """Rates all players by the matches in ``run.db`` and the ``further`` ones; ``add_ratings`` stores the rows.

    Players that no chain of games connects with the anchor cannot be compared, and are left out. Games of a player
    against itself do not count. Without games there are no ratings.
    """
    played = [
        pairing
        for pairing in (*pairings_of(database), *further)
        if pairing.tally.games and pairing.first != pairing.second
    ]
    if not played:
        return []
    now = time.time()
    # Opponents first: they stay the same between evaluations, while the player is new each time.
    anchor = anchor_of([name for pairing in played for name in (pairing.second, pairing.first)])
    return [
        RatingRow(rating.player, update, now, rating.elo, rating.low, rating.high, rating.games)
        for rating in rate(connected(played, anchor), anchor)
    ]


def save_ratings(run: RunDirectory, update: int, further: Iterable[Pairing]) -> list[RatingRow]:
    """Rates a run and stores the ratings; raises ``RunLockedError`` if the run is being trained."""
    with run.lock(), RunDatabase(run.database) as database:
        rows = rate_run(database, update, further)
        database.add_ratings(rows)
    return rows


def anchor_of(players: Sequence[str]) -> str:
    """Chooses the player with rating 0: the random player if it takes part, else the first player."""
    return ANCHOR if ANCHOR in players else players[0]


def connected(pairings: Sequence[Pairing], anchor: str) -> list[Pairing]:
    """Lists the pairings that a chain of games connects with the anchor."""
    reached, before = {anchor}, 0
    while len(reached) > before:
        before = len(reached)
        for pairing in pairings:
            if not reached.isdisjoint((pairing.first, pairing.second)):
                reached |= {pairing.first, pairing.second}
    return [pairing for pairing in pairings if pairing.first in reached]
