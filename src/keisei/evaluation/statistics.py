"""Statistics of a match: score, Elo difference, and which player is better.

A draw is half a win. The **score interval** is Wilson's, extended to three outcomes. It contains each mean score p
that Rao's score test does not reject, with the most likely share of draws for that p. Without draws it is exactly
Wilson's interval. It never leaves 0 … 1, and ten draws in ten games still give it a width.

Games are treated as independent. Pairs with one opening are not fully independent, so the true uncertainty is
usually smaller than the one given.

Games that are judged by returns have an interval of the **mean return**: Student's, over rounds. A round is a few games
with the same opening, in which the player has each seat once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan, cos, exp, inf, lgamma, log, log10, pi, sin, sqrt
from statistics import NormalDist, fmean, stdev

from keisei.errors import ConfigError

__all__ = [
    "EloDifference",
    "Interval",
    "Tally",
    "elo_difference",
    "elo_of",
    "likelihood_of_superiority",
    "mean_interval",
    "normal_quantile",
    "score_interval",
    "share_interval",
    "student_quantile",
]

_BISECTIONS = 60
_LIKE_NORMAL = 1000
"""Degrees of freedom from which Student's distribution is taken as normal."""


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
        """Computes the tally of the same games from the other player's view."""
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
    return elo_of(score_interval(tally, confidence))


def elo_of(interval: Interval) -> EloDifference:
    """Converts the interval of a score to the Elo scale."""
    return EloDifference(_elo(interval.value), _elo(interval.low), _elo(interval.high))


def share_interval(share: float, games: int, confidence: float = 0.95) -> Interval:
    """Computes Wilson's interval for the mean of one number in 0 … 1 per game. Such numbers vary the most if they are
    only 0 and 1, which Wilson's interval assumes. So it is not too narrow for other ones."""
    limit = normal_quantile(confidence) ** 2
    centre = (share + limit / (2 * games)) / (1 + limit / games)
    spread = sqrt(limit * (share * (1 - share) + limit / (4 * games)) / games) / (1 + limit / games)
    low = 0.0 if share == 0 else max(0.0, centre - spread)
    return Interval(share, low, 1.0 if share == 1 else min(1.0, centre + spread))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Computes the mean of independent values, and Student's interval of it. A single value has no bounds."""
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, -inf, inf)
    margin = student_quantile(len(values) - 1, confidence) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - margin, mean + margin)


def student_quantile(freedom: int, confidence: float) -> float:
    """Computes how many standard errors to each side contain this share of Student's distribution."""
    normal = normal_quantile(confidence)
    if freedom >= _LIKE_NORMAL:
        return normal
    low, high = normal, 2.0 * normal
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Computes the share of Student's distribution between -t and t, by the finite sums of Abramowitz and Stegun
    (26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term, total = (cos(angle), cos(angle)) if odd else (1.0, 1.0)
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    if not odd:
        return sin(angle) * total
    return 2 / pi * (angle + sin(angle) * (total if freedom > 1 else 0.0))


def likelihood_of_superiority(tally: Tally) -> float:
    """Computes the probability that the player wins more of the decided games than the other, with a uniform prior:
    that Beta(wins + 1, losses + 1) is above one half. Draws do not count."""
    trials = tally.wins + tally.losses + 1
    scale = lgamma(trials + 1) - trials * log(2)
    # The tail of the beta distribution as a sum of binomial probabilities, smallest terms first.
    terms = sorted(exp(scale - lgamma(k + 1) - lgamma(trials - k + 1)) for k in range(tally.wins + 1))
    return min(1.0, sum(terms))


def normal_quantile(confidence: float) -> float:
    """Computes how many standard deviations to each side contain this share of a normal distribution."""
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
