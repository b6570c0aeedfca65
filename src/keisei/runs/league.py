"""The league of a run as ``run.db`` has it: who is in it now, who has left, and how the learner fares against each.

The command line and the dashboard both show this, so they always name the same members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keisei.runs.database import RunDatabase
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow

__all__ = ["ENOUGH_GAMES", "LeagueView"]

ENOUGH_GAMES = 50
"""Games that a score needs to count: for a new snapshot (``win_rate``), and for the worst member."""


@dataclass(frozen=True)
class LeagueView:
    """The league of a run after its newest update."""

    members: Sequence[LeagueMemberRow]
    """The members that are in the league now, by number."""
    former: Sequence[LeagueMemberRow]
    """The members that have left, each as it was last."""
    results: Sequence[LeagueResultRow]
    """The cells of the win-rate matrix, row by row."""

    @classmethod
    def of(cls, database: RunDatabase) -> LeagueView | None:
        """Reads the league; None if the run has none. A removed member's row keeps its ``in_pool``, so only the rows of
        the newest update tell who is in the league."""
        rows = database.league_members()
        if not rows:
            return None
        newest = max(row.update for row in rows)
        now = [row for row in rows if row.update == newest]
        return cls(now, [row for row in rows if row.update < newest], database.league_results())

    @property
    def pool(self) -> list[LeagueMemberRow]:
        """The members that may be drawn."""
        return [row for row in self.members if row.in_pool]

    @property
    def games(self) -> int:
        """All games against members, also against those that have left."""
        return sum(row.games for row in (*self.members, *self.former))

    @property
    def worst(self) -> LeagueMemberRow | None:
        """The member that the learner scores least against."""
        known = [row for row in self.pool if row.recent_games >= ENOUGH_GAMES and row.score is not None]
        return min(known, key=lambda row: row.score or 0.0, default=None)

    @property
    def forgotten(self) -> list[LeagueMemberRow]:
        return [row for row in self.pool if row.forgotten]

    def newest_results(self, rows: int) -> list[LeagueResultRow]:
        """Gets the newest ``rows`` rows of the matrix, without the members that may not be drawn."""
        numbers = {member.number for member in self.pool}
        cells = [cell for cell in self.results if cell.number in numbers]
        newest = set(list(dict.fromkeys(cell.learner for cell in cells))[-rows:])
        return [cell for cell in cells if cell.learner in newest]
