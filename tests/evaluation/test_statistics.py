"""Intervals and likelihoods against published numbers, exact sums and brute force."""

from __future__ import annotations

from math import comb, inf, log10, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import ConfigError
from keisei.evaluation import (
    Interval,
    Tally,
    elo_difference,
    likelihood_of_superiority,
    mean_interval,
    score_interval,
    share_interval,
)
from keisei.evaluation.statistics import normal_quantile, student_quantile

COUNTS = st.integers(0, 60)


def wilson(wins: int, games: int) -> tuple[float, float]:
    """The closed form, for games without draws."""
    z = 1.959963984540054
    centre = (wins + z * z / 2) / (games + z * z)
    half = z / (games + z * z) * sqrt(wins * (games - wins) / games + z * z / 4)
    return centre - half, centre + half


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    # Newcombe (1998), table I, method 3: the score method.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals_without_draws(wins: int, games: int, low: float, high: float) -> None:
    interval = score_interval(Tally(wins, 0, games - wins))
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(COUNTS, COUNTS)
def test_without_draws_it_is_wilson(wins: int, losses: int) -> None:
    if wins + losses:
        interval = score_interval(Tally(wins, 0, losses))
        np.testing.assert_allclose((interval.low, interval.high), wilson(wins, wins + losses), atol=1e-9)


@given(COUNTS, COUNTS, COUNTS)
def test_an_interval_is_one_and_mirrors(wins: int, draws: int, losses: int) -> None:
    if wins + draws + losses == 0:
        return
    tally = Tally(wins, draws, losses)
    interval, mirrored = score_interval(tally), score_interval(tally.reversed())
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    np.testing.assert_allclose(
        (interval.low, interval.high), (1 - mirrored.high, 1 - mirrored.low), atol=1e-9
    )
    wide, narrow = score_interval(tally, 0.99), score_interval(tally, 0.5)
    assert wide.low <= interval.low <= narrow.low
    assert narrow.high <= interval.high <= wide.high


@pytest.mark.parametrize("counts", [(3, 4, 5), (10, 0, 0), (0, 8, 0), (7, 20, 1), (1, 1, 0), (0, 5, 9)])
def test_the_interval_is_where_the_fit_is_not_rejected(counts: tuple[int, int, int]) -> None:
    """Pearson's statistic of the likeliest shares with a mean of p, found by trying all of them."""
    tally = Tally(*counts)
    interval, games = score_interval(tally), tally.games

    def statistic(p: float) -> float:
        best, shares = -np.inf, None
        for draws in np.linspace(0, 2 * min(p, 1 - p), 2001):
            tried = np.array([p - draws / 2, draws, 1 - p - draws / 2])
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(np.array(counts) > 0, counts * np.log(np.maximum(tried, 0)), 0.0)
            if terms.sum() > best:
                best, shares = terms.sum(), tried
        assert shares is not None
        expected = games * shares
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(expected > 1e-12, (counts - expected) ** 2 / expected, 0.0).sum())

    limit = normal_quantile(0.95) ** 2
    for edge, outwards in ((interval.low, -1), (interval.high, 1)):
        if 0 < edge < 1:
            assert statistic(edge - outwards * 0.004) < limit < statistic(edge + outwards * 0.004)


@pytest.mark.parametrize(("win", "draw"), [(0.4, 0.3), (0.7, 0.1), (0.1, 0.8), (0.25, 0.0)])
def test_it_covers_the_truth_as_often_as_it_says(win: float, draw: float) -> None:
    """All results of 30 games, each with its probability."""
    games, truth, covered = 30, win + draw / 2, 0.0
    for wins in range(games + 1):
        for draws in range(games + 1 - wins):
            losses = games - wins - draws
            chance = comb(games, wins) * comb(games - wins, draws)
            interval = score_interval(Tally(wins, draws, losses))
            if interval.low <= truth <= interval.high:
                covered += chance * win**wins * draw**draws * (1 - win - draw) ** losses
    assert 0.92 < covered < 0.98


def test_draws_alone_do_not_make_certain() -> None:
    interval = score_interval(Tally(0, 10, 0))
    assert interval.value == 0.5
    assert 0.3 < interval.low < 0.45
    assert interval.high == pytest.approx(1 - interval.low)


def test_elo() -> None:
    assert elo_difference(Tally(10, 0, 1)).value == pytest.approx(400)
    even = elo_difference(Tally(5, 3, 5))
    assert str(even).startswith("+0 (-")
    assert even.value == 0
    assert even.low is not None
    assert even.high == pytest.approx(-even.low)
    tally = Tally(30, 10, 20)
    interval, elo = score_interval(tally), elo_difference(tally)
    for score, points in ((interval.value, elo.value), (interval.low, elo.low), (interval.high, elo.high)):
        assert points == pytest.approx(-400 * log10(1 / score - 1))


def test_elo_without_bound() -> None:
    won, lost = elo_difference(Tally(20, 0, 0)), elo_difference(Tally(0, 0, 20))
    assert won.value is None
    assert won.high is None
    assert won.low == pytest.approx(-400 * log10(1 / wilson(20, 20)[0] - 1))
    assert (lost.value, lost.low) == (None, None)
    assert lost.high == pytest.approx(-won.low)
    assert str(won) == f"at least {won.low:+.0f}"
    assert str(lost) == f"at most {lost.high:+.0f}"


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (5, 3), (0, 7), (40, 25), (300, 260)])
def test_likelihood_of_superiority_is_the_beta_tail(wins: int, losses: int) -> None:
    """By adding up the density of Beta(wins + 1, losses + 1) on a fine grid."""
    x = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(wins * np.log(x) + losses * np.log1p(-x) - wins * np.log(0.6) - losses * np.log(0.4))
    expected = density[x > 0.5].sum() / density.sum()
    assert likelihood_of_superiority(Tally(wins, 9, losses)) == pytest.approx(expected, abs=1e-6)


@given(COUNTS, COUNTS)
def test_superiority_is_one_player_s_or_the_other_s(wins: int, losses: int) -> None:
    tally = Tally(wins, 0, losses)
    assert likelihood_of_superiority(tally) + likelihood_of_superiority(tally.reversed()) == pytest.approx(1)


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="no game was played"):
        score_interval(Tally())
    with pytest.raises(ConfigError, match="cannot be negative"):
        Tally(1, -1, 0)
    with pytest.raises(ConfigError, match="confidence is a share between 0 and 1"):
        score_interval(Tally(1, 0, 0), 95)
    assert (Tally(1, 2, 3) + Tally(1, 0, 0)).points == 3


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (10, 2.2281),
        (29, 2.0452),
        (120, 1.9799),
        (5000, 1.96),
    ],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert student_quantile(freedom, 0.95) == pytest.approx(expected, abs=1e-4)


def test_an_interval_of_a_mean_by_hand() -> None:
    """Mean 3, standard deviation sqrt(5/2), five values: 2.7764 standard errors to each side."""
    interval = mean_interval([1, 2, 3, 4, 5])
    assert interval.value == 3
    assert interval.high - 3 == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, abs=1e-3)
    assert mean_interval([4.0]) == Interval(4.0, -inf, inf)
    assert mean_interval([4.0, 4.0]) == Interval(4.0, 4.0, 4.0)


@given(st.integers(0, 60), st.integers(1, 60))
def test_a_share_without_draws_has_wilsons_interval(wins: int, games: int) -> None:
    wins = min(wins, games)
    found, expected = share_interval(wins / games, games), score_interval(Tally(wins, 0, games - wins))
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-9
    )
