"""Results of a match: who won or lost against whom, and with which returns.

A match has two players, whatever the number of seats. The first player has one seat, and the second all others. In
games of one seat, both play the same games, each alone. Every game compares the score of the first player with each
score of the second: higher is a win, equal a draw, lower a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from keisei.evaluation.statistics import (
    EloDifference,
    Interval,
    Tally,
    elo_of,
    mean_interval,
    score_interval,
    share_interval,
)
from keisei.games.contract import GameSpec
from keisei.games.offers import RecordFormat

__all__ = ["MatchResult", "PlayedGame", "judged_by_returns"]


def judged_by_returns(spec: GameSpec) -> bool:
    """Checks if a match of this game reports returns and ranks. Games of two seats in which one wins what the other
    loses need neither: wins, draws and losses tell all."""
    return spec.seats != 2 or (spec.scored_by_rewards and not spec.zero_sum)


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """One game of a match."""

    round: int
    """The number of the round. Games of a round have the same opening, and the first player has each seat once."""
    seat: int
    """The seat of the first player."""
    scores: tuple[float, ...]
    """The score of each seat. In games of one seat: that of the first player, and that of the second in the same
    game."""
    plies: int
    ending: str
    """One of the game's own endings."""
    truncated: bool
    actions: tuple[int, ...] = ()
    """All actions, opening included; empty if they were not recorded."""

    @property
    def score(self) -> float:
        """The score of the first player."""
        return self.scores[self.seat]

    @property
    def others(self) -> tuple[float, ...]:
        """The scores of the second player."""
        return self.scores[: self.seat] + self.scores[self.seat + 1 :]

    @property
    def tally(self) -> Tally:
        """Compares the first player with each seat of the second."""
        wins = sum(self.score > other for other in self.others)
        draws = sum(self.score == other for other in self.others)
        return Tally(wins, draws, len(self.others) - wins - draws)


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The games of two players, in the order of their numbers."""

    game: str
    players: tuple[str, str]
    seed: int
    opening_plies: int
    games: tuple[PlayedGame, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    seats: int = 2
    by_returns: bool = False
    """Whether returns and ranks tell more than wins, draws and losses."""
    record_format: RecordFormat | None = field(default=None, compare=False, repr=False)
    """The game's format for records; see ``keisei.evaluation.records``."""

    def tally(self, seat: int | None = None) -> Tally:
        """Counts the comparisons of the first player, in one seat only if it is given. A game has one comparison for
        each seat of the second player."""
        return sum((game.tally for game in self.games if seat in (None, game.seat)), Tally())

    @property
    def comparisons(self) -> int:
        """Comparisons in one game."""
        return max(1, self.seats - 1)

    @property
    def score(self) -> Interval:
        """The share of comparisons that the first player won, with its 95 % interval; a draw is half a win."""
        if self.comparisons == 1:
            return score_interval(self.tally())
        # Comparisons of one game are not independent, so the number of games decides.
        return share_interval(self.tally().score, len(self.games))

    @property
    def elo(self) -> EloDifference:
        return elo_of(self.score)

    @property
    def mean_return(self) -> Interval:
        """The mean score of the first player, with its 95 % interval."""
        return self._over_rounds([game.score for game in self.games])

    @property
    def opponent_return(self) -> float:
        """The mean score of the second player, over its seats."""
        return fmean(fmean(game.others) for game in self.games)

    @property
    def lead(self) -> Interval:
        """How much more the first player scores than the second does in the mean of its seats."""
        return self._over_rounds([game.score - fmean(game.others) for game in self.games])

    @property
    def mean_rank(self) -> float:
        """The mean rank of the first player at its table: 1 is the best, and equal scores share their ranks."""
        return 1 + self.comparisons * (1 - self.tally().score)

    @property
    def endings(self) -> dict[str, int]:
        """Counts the games by their ending, the most frequent first."""
        return dict(Counter(game.ending for game in self.games).most_common())

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(game.plies for game in self.games)

    @property
    def mean_length(self) -> float:
        return sum(self.lengths) / len(self.games)

    def _over_rounds(self, values: list[float]) -> Interval:
        """Computes the mean and its interval over rounds. Rounds are independent, and their means do not depend on how
        good each seat is."""
        starts = range(0, len(values), self.seats)
        return mean_interval([fmean(values[start : start + self.seats]) for start in starts])
