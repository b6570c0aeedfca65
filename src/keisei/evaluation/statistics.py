"""Statistics of a match: score, Elo difference, and which player is better.

A draw is half a win. The **score interval** is Wilson's, extended to three outcomes. It contains each mean score p
that Rao's score test does not reject, with the most likely share of draws for that p. Without draws it is exactly
Wilson's interval. It never leaves 0 … 1, and ten draws in ten games still give it a width.

Games are treated as independent. Pairs with one opening are not fully independent, so the true uncertainty is
usually smaller than the one given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, log10, sqrt
from statistics import NormalDist

from keisei.errors import ConfigError

__all__ = [
    "EloDifference",
    "Interval",
    "Tally",
    "elo_difference",
    "likelihood_of_superiority",
    "normal_quantile",
    "score_interval",
]

_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Tally:
    """Results of one player against another."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    def __post_init__(self) -> None:
        if min(self.wins, self.draws, self.losses) < 0:
            raise ConfigError(f"a tally counts games and cannot be negative, got {self}")

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """Points per game, 0 … 1."""
        return self.points / self._need_games()

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)

    def reversed(self) -> Tally:
        """Gives the same games from the other player's view."""
        return Tally(self.losses, self.draws, self.wins)

    def _need_games(self) -> int:
        if self.games == 0:
            raise ConfigError("no game was played, so there is no score; play at least one")
        return self.games


@dataclass(frozen=True, slots=True)
class Interval:
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EloDifference:
    """How much stronger a player is, in Elo. None means no bound: a player who won every game may be better by any
    amount, and only ``low`` is known."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.value:+.0f} ({self.interval})"
        if self.low is not None:
            return f"at least {self.low:+.0f}"
        return f"at most {self.high:+.0f}" if self.high is not None else "unknown"

    @property
    def interval(self) -> str:
        return f"{_bound(self.low, '-∞')} … {_bound(self.high, '+∞')}"


def score_interval(tally: Tally, confidence: float = 0.95) -> Interval:
    """Computes the score, and the lowest and highest mean score that are compatible with these games."""
    score, games = tally.score, tally.games
    limit = normal_quantile(confidence) ** 2

    def rejected(p: float) -> bool:
        return games * (score - p) ** 2 > limit * _variance(tally, p)

    low = 0.0 if score == 0 else _edge(rejected, 0.0, score)
    high = 1.0 if score == 1 else _edge(rejected, 1.0, score)
    return Interval(score, low, high)


def elo_difference(tally: Tally, confidence: float = 0.95) -> EloDifference:
    """Computes the score interval on the Elo scale, where a score of 10/11 is 400 points."""
    interval = score_interval(tally, confidence)
    return EloDifference(_elo(interval.value), _elo(interval.low), _elo(interval.high))


def likelihood_of_superiority(tally: Tally) -> float:
    """Computes the probability that the player wins more of the decided games than the other, with a uniform prior:
    that Beta(wins + 1, losses + 1) is above one half. Draws do not count."""
    trials = tally.wins + tally.losses + 1
    scale = lgamma(trials + 1) - trials * log(2)
    # The tail of the beta distribution as a sum of binomial probabilities, smallest terms first.
    terms = sorted(exp(scale - lgamma(k + 1) - lgamma(trials - k + 1)) for k in range(tally.wins + 1))
    return min(1.0, sum(terms))


def normal_quantile(confidence: float) -> float:
    """Gives the number of standard deviations to each side that contain this share of a normal distribution."""
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is a share between 0 and 1, such as 0.95; got {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _variance(tally: Tally, p: float) -> float:
    """Computes the variance of one game's points, with mean p and the most likely share of draws 2x: x is the
    smaller root of n x² - (D + W(1-p) + Lp) x + D p (1-p) = 0, where the likelihood's slope is zero."""
    middle = tally.draws + tally.wins * (1 - p) + tally.losses * p
    under_root = max(0.0, middle**2 - 4 * tally.games * tally.draws * p * (1 - p))
    half_draws = (middle - sqrt(under_root)) / (2 * tally.games)
    return max(0.0, p * (1 - p) - half_draws / 2)


def _edge(rejected: Callable[[float], bool], outside: float, inside: float) -> float:
    """Finds where rejection begins, between the edge of the scale and a value that is not rejected."""
    for _ in range(_BISECTIONS):
        middle = (outside + inside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def _elo(score: float) -> float | None:
    return 400 * log10(score / (1 - score)) if 0 < score < 1 else None


def _bound(elo: float | None, unbounded: str) -> str:
    return unbounded if elo is None else f"{elo:+.0f}"
