"""How the learner fares against a member of the league.

Games count as in matches: the learner's score is compared with that of each other seat. So the share of comparisons
that it wins is 1/2 between equals, whatever the number of seats.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keisei.evaluation.statistics import Interval, Tally, score_interval, share_interval
from keisei.experience.collected import CollectedSlab
from keisei.policies.seating import CHANCE, learner_seat
from keisei.runs.json_values import Json

__all__ = ["NO_GAMES", "RECENT", "Results", "compared"]

RECENT = 200
"""How many of the last games against a member tell how the learner fares now."""
SPAN = 100
"""Games after which it is tested whether the learner has surely scored more than a threshold."""
ERROR = 0.05
"""The probability that this is ever said of an equal, however many games are played."""
NO_GAMES = Tally()
_SIGNS = {1: "w", 0: "d", -1: "l"}


@dataclass
class Results:
    """Games of the learner against one member, as the learner sees them. Tallies count comparisons."""

    total: Tally = NO_GAMES
    era: Tally = NO_GAMES
    """Since the last snapshot was added."""
    per_game: int = 1
    """Comparisons in one game: one for each seat of the member."""
    recent: deque[int] = field(init=False)
    """The comparisons of the last games: 1 won, 0 drawn, -1 lost."""
    was_beaten: bool = False
    """Whether the learner has once surely scored more than the threshold, in a span of games."""
    now: Tally = NO_GAMES
    """The last games, counted."""
    score: Interval | None = None
    """The score in the last games, with its 95 % interval; None before the first game."""

    def __post_init__(self) -> None:
        self.recent = deque(maxlen=RECENT * self.per_game)

    def add(self, outcomes: Sequence[int], threshold: float) -> None:
        """Adds the comparisons of whole games."""
        while outcomes:
            left = SPAN * self.per_game - self.total.games % (SPAN * self.per_game)
            some, outcomes = outcomes[:left], outcomes[left:]
            counted = _tally(some)
            self.total, self.era = self.total + counted, self.era + counted
            self._remember(some)
            if len(some) == left:
                self.was_beaten |= self._beats(threshold)

    def _beats(self, threshold: float) -> bool:
        """Tests if the learner surely won the last span of games. Repeated tests find anything by chance at some time.
        So test number n may err with the probability ERROR / (n · (n + 1)), which adds up to ERROR over all n."""
        number = min(self.total.games // (SPAN * self.per_game), 10**6)
        confidence = 1 - 2 * ERROR / (number * (number + 1))
        span = list(self.recent)[-SPAN * self.per_game :]
        score = self._interval(_tally(span), confidence)
        return score is not None and score.low > threshold

    def _remember(self, outcomes: Iterable[int]) -> None:
        self.recent.extend(outcomes)
        self.now = _tally(self.recent)
        self.score = self._interval(self.now)

    @property
    def recent_games(self) -> int:
        """The games that the score is of."""
        return len(self.recent) // self.per_game

    @property
    def era_score(self) -> Interval | None:
        """The score since the last snapshot was added; None before the first game."""
        return self._interval(self.era)

    def _interval(self, tally: Tally, confidence: float = 0.95) -> Interval | None:
        if not tally.games:
            return None
        if self.per_game == 1:
            return score_interval(tally, confidence)
        # Comparisons of one game are not independent, so the number of games decides.
        return share_interval(tally.score, tally.games // self.per_game, confidence)

    def is_forgotten(self, threshold: float) -> bool:
        """Checks if the learner surely scores less than the threshold, and once surely scored more."""
        return self.was_beaten and self.score is not None and self.score.high < threshold

    def document(self) -> Json:
        return {
            "total": _counts(self.total),
            "era": _counts(self.era),
            "per_game": self.per_game,
            "recent": "".join(_SIGNS[outcome] for outcome in self.recent),
            "was_beaten": self.was_beaten,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Results:
        outcomes = {sign: outcome for outcome, sign in _SIGNS.items()}
        # Earlier versions had one outcome in each game.
        per_game = int(document.get("per_game", 1))
        counts = (*document["total"], *document["era"])
        if not 1 <= per_game < 1 << 16 or any(type(n) is not int or not 0 <= n < 1 << 53 for n in counts):
            raise ValueError(f"{counts} are not counts of games")
        results = cls(Tally(*document["total"]), Tally(*document["era"]), per_game)
        results._remember(outcomes[sign] for sign in document["recent"])
        results.was_beaten = bool(document["was_beaten"])
        return results


def compared(item: CollectedSlab, truncated_is_drawn: bool) -> Iterator[tuple[int, list[int]]]:
    """Yields the opponent of each game that ended in a slab, and how the learner did in comparison with each other
    seat: 1 won, 0 drawn, -1 lost. Games that chance ended within their opening do not count: no player has decided."""
    slab, seats = item.slab, item.slab.shape.seats
    by_seat = (*slab.terminated.shape, -1)
    by_chance = (slab.policy == CHANCE).reshape(by_seat).any(axis=2)
    step, game = np.nonzero((slab.terminated | slab.truncated) & ~by_chance)
    # If several seats act at once, slots of seats that rest are 0.
    episode = slab.episode.reshape(by_seat).max(axis=2)[step, game]
    scores = slab.score[step, game]
    if truncated_is_drawn:
        scores[slab.truncated[step, game]] = 0
    own = np.arange(seats) == learner_seat(game + item.first_game, episode, seats)[:, None]
    outcomes = np.sign(scores[own][:, None] - scores)[~own].reshape(len(game), seats - 1)
    yield from zip(slab.opponent[step, game].tolist(), outcomes.astype(int).tolist(), strict=True)


def _tally(outcomes: Iterable[int]) -> Tally:
    counted = Counter(outcomes)
    return Tally(counted[1], counted[0], counted[-1])


def _counts(tally: Tally) -> Json:
    return [tally.wins, tally.draws, tally.losses]
