"""Ratings of many players from who beat whom: the Bradley-Terry model by maximum likelihood.

The model gives each player a strength. The stronger of two wins with probability 1 / (1 + 10^(-difference/400)). A
draw counts as half a win and half a loss, so intervals are a little too wide rather than too narrow.

Without a prior, the strength of a player who won all games would be infinite. So strengths have a prior around the mean
of all players, with a standard deviation of ``prior``. It is wide: ten games outweigh it. A common alternative is extra
drawn games for each pair, but they add up along a ladder and compress it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.evaluation.statistics import Tally, normal_quantile

__all__ = ["ELO_PER_UNIT", "Pairing", "Rating", "rate"]

ELO_PER_UNIT = 400 / log(10)
_STEPS = 100
_SMALLEST_STEP = 1e-10

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairing:
    """The games of two players, as the first one sees them."""

    first: str
    second: str
    tally: Tally
    per_game: int = 1
    """Comparisons of one game, as in games of three seats and more. They are not independent, so together they count as
    one game."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A player's strength in Elo, relative to an anchor with a fixed rating."""

    player: str
    elo: float
    low: float
    high: float
    games: int
    score: float
    """Points per game, over all games against all opponents."""


def rate(
    pairings: Iterable[Pairing],
    anchor: str,
    anchor_elo: float = 0.0,
    prior: float = 1500.0,
    confidence: float = 0.95,
) -> tuple[Rating, ...]:
    """Rates all players, best first. The anchor's rating is exact. The intervals of the others are those of their
    difference to it. ``prior`` is in Elo."""
    played = [pairing for pairing in pairings if pairing.tally.games]
    if not 0 < prior < inf:
        raise ConfigError(
            f"prior is a standard deviation in Elo, finite and above 0, or unbeaten players rise for ever; got {prior}"
        )
    players = list(dict.fromkeys(name for pairing in played for name in (pairing.first, pairing.second)))
    points = _points(played, players)
    _need_anchor(players, points, anchor)
    strengths, covariance = _fit(points, (ELO_PER_UNIT / prior) ** 2, players.index(anchor))
    elo = anchor_elo + ELO_PER_UNIT * strengths
    margin = normal_quantile(confidence) * ELO_PER_UNIT * np.sqrt(np.diag(covariance))
    games = (points + points.T).sum(axis=1)
    ratings = [
        Rating(
            player,
            float(elo[i]),
            float(elo[i] - margin[i]),
            float(elo[i] + margin[i]),
            round(games[i]),
            float(points[i].sum() / games[i]),
        )
        for i, player in enumerate(players)
    ]
    return tuple(sorted(ratings, key=lambda rating: (-rating.elo, rating.player)))


def _points(pairings: Sequence[Pairing], players: Sequence[str]) -> _Floats:
    """[i, j]: the points of i against j."""
    place = {player: i for i, player in enumerate(players)}
    points = np.zeros((len(players), len(players)))
    for pairing in pairings:
        if pairing.first == pairing.second:
            raise ConfigError(
                f"{pairing.first!r} cannot be rated by games against itself; name players apart"
            )
        first, second = place[pairing.first], place[pairing.second]
        points[first, second] += pairing.tally.points / pairing.per_game
        points[second, first] += pairing.tally.reversed().points / pairing.per_game
    return points


def _need_anchor(players: Sequence[str], points: _Floats, anchor: str) -> None:
    """Checks that a chain of games connects all players; otherwise strengths cannot be compared."""
    if anchor not in players:
        raise ConfigError(
            f"the anchor {anchor!r} has played no game; players: {', '.join(players) or 'none'}"
        )
    met = points + points.T > 0
    reached = {players.index(anchor)}
    frontier = list(reached)
    while frontier:
        new = [int(i) for i in np.flatnonzero(met[frontier.pop()]) if int(i) not in reached]
        reached.update(new)
        frontier += new
    apart = [player for i, player in enumerate(players) if i not in reached]
    if apart:
        raise ConfigError(
            f"no chain of games connects {', '.join(apart)} with the anchor {anchor!r}; let one of them meet a player "
            f"who is connected"
        )


def _fit(points: _Floats, precision: float, anchor: int) -> tuple[_Floats, _Floats]:
    """Computes strengths in natural units, with the anchor at 0, and their covariance, by Newton's method. The
    likelihood is concave; a step that is too long is halved."""
    strengths = np.zeros(len(points))
    free = np.arange(len(points)) != anchor
    for _ in range(_STEPS):
        slope, curvature = _derivatives(points, precision, strengths)
        step = np.zeros_like(strengths)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        before = _likelihood(points, precision, strengths)
        while (
            _likelihood(points, precision, strengths + step) < before and np.abs(step).max() > _SMALLEST_STEP
        ):
            step /= 2
        strengths = strengths + step
        if np.abs(step).max() <= _SMALLEST_STEP:
            break
    covariance = np.zeros_like(points)
    curvature = _derivatives(points, precision, strengths)[1]
    covariance[np.ix_(free, free)] = np.linalg.inv(curvature[np.ix_(free, free)])
    return strengths, covariance


def _expected(strengths: _Floats) -> _Floats:
    """[i, j]: the probability that i beats j."""
    difference = strengths[:, None] - strengths[None, :]
    return np.exp(-np.logaddexp(0, -difference))


def _likelihood(points: _Floats, precision: float, strengths: _Floats) -> float:
    """Computes the logarithm of the probability of all games and of these strengths. ``precision`` is that of the
    prior: 1 / variance."""
    difference = strengths[:, None] - strengths[None, :]
    of_games = (points * np.logaddexp(0, -difference)).sum()
    return -float(of_games + precision / 2 * np.square(strengths - strengths.mean()).sum())


def _derivatives(points: _Floats, precision: float, strengths: _Floats) -> tuple[_Floats, _Floats]:
    """Computes the gradient of the log-likelihood, and its negative Hessian (the information)."""
    chances, games = _expected(strengths), points + points.T
    slope = (points - games * chances).sum(axis=1) - precision * (strengths - strengths.mean())
    weights = games * chances * chances.T + precision / len(points)
    return slope, np.diag(weights.sum(axis=1)) - weights
