"""Bradley-Terry: closed forms, another algorithm, known strengths, and what cannot be rated."""

from __future__ import annotations

from itertools import combinations
from math import log10

import numpy as np
import pytest

from keisei.errors import ConfigError
from keisei.evaluation import Pairing, Tally, rate
from keisei.evaluation.ratings import ELO_PER_UNIT


def elos(pairings: list[Pairing], anchor: str, **settings: float) -> dict[str, float]:
    return {rating.player: rating.elo for rating in rate(pairings, anchor, **settings)}


def drawn(strengths: dict[str, float], games: int, seed: int) -> list[Pairing]:
    """Pairings of players whose true strengths, in Elo, are known."""
    rng = np.random.default_rng(seed)
    pairings = []
    for first, second in combinations(strengths, 2):
        wins = int(rng.binomial(games, 1 / (1 + 10 ** ((strengths[second] - strengths[first]) / 400))))
        pairings.append(Pairing(first, second, Tally(wins, 0, games - wins)))
    return pairings


def by_bisection(pairings: list[Pairing], anchor: str, prior: float) -> dict[str, float]:
    """The same estimate in the slow way: one player after the other moves to where the slope of the likelihood is 0,
    until nobody moves."""
    names = sorted({name for pairing in pairings for name in (pairing.first, pairing.second)})
    elo = dict.fromkeys(names, 0.0)

    def slope(player: str, at: float) -> float:
        moved = {**elo, player: at}
        found = -(at - sum(moved.values()) / len(moved)) / prior**2
        for pairing in pairings:
            for first, second, tally in (
                (pairing.first, pairing.second, pairing.tally),
                (pairing.second, pairing.first, pairing.tally.reversed()),
            ):
                if first == player:
                    chance = 1 / (1 + 10 ** ((moved[second] - at) / 400))
                    found += (tally.points - tally.games * chance) / ELO_PER_UNIT
        return found

    for _ in range(300):
        for name in names:
            low, high = -5000.0, 5000.0
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if slope(name, middle) > 0 else (low, middle)
            elo[name] = low
    return {name: elo[name] - elo[anchor] for name in names}


def test_two_players_have_a_closed_form() -> None:
    """With as good as no prior, the rating is that of the score, and its variance 1 / (n p (1 - p))."""
    first, second = rate([Pairing("a", "b", Tally(55, 10, 35))], anchor="b", prior=1e6)
    assert (first.player, second.player) == ("a", "b")
    assert first.elo == pytest.approx(-400 * log10(1 / 0.6 - 1))
    assert (second.elo, second.low, second.high) == (0, 0, 0)
    margin = 1.959963984540054 * ELO_PER_UNIT / np.sqrt(100 * 0.6 * 0.4)
    assert first.high - first.elo == pytest.approx(margin)
    assert first.elo - first.low == pytest.approx(margin)
    assert (first.games, first.score) == (100, 0.6)
    assert (second.games, second.score) == (100, 0.4)


def test_a_prior_alone_gives_its_own_interval() -> None:
    """Games that say nothing leave the belief: the difference of two players has twice the variance of one. A game
    drawn by equals has the information 1/4."""
    (first, _) = rate([Pairing("a", "b", Tally(0, 1, 0))], anchor="b", prior=100)
    information = 1 / (2 * 100**2) + 0.25 / ELO_PER_UNIT**2
    assert first.elo == pytest.approx(0)
    assert first.high == pytest.approx(1.959963984540054 / np.sqrt(information))


@pytest.mark.parametrize("prior", [200.0, 1500.0])
def test_another_algorithm_agrees(prior: float) -> None:
    pairings = [
        Pairing("a", "b", Tally(12, 5, 3)),
        Pairing("b", "c", Tally(4, 0, 16)),
        Pairing("c", "a", Tally(9, 2, 9)),
        Pairing("d", "a", Tally(0, 0, 10)),
        Pairing("b", "d", Tally(7, 1, 2)),
    ]
    found, expected = elos(pairings, "c", prior=prior), by_bisection(pairings, "c", prior)
    assert found.keys() == expected.keys()
    for name, elo in found.items():
        assert elo == pytest.approx(expected[name], abs=0.01)


LADDER = [(place, place + 1) for place in range(12)]
LEAGUE = [(0, member) for member in range(1, 12)]
TOURNAMENTS = {
    "a ladder of 1800": (np.arange(13) * 150.0, LADDER, 40),
    "a ladder of few games": (np.arange(13) * 150.0, LADDER, 5),
    "a steep ladder": (np.arange(7) * 300.0, LADDER[:6], 20),
    "a round robin": (np.linspace(0, 800, 6), [*combinations(range(6), 2)], 20),
    "a wide round robin": (np.linspace(0, 1800, 10), [*combinations(range(10), 2)], 10),
    "a league of equals": (np.r_[0, np.linspace(-300, 300, 11)], LEAGUE, 50),
    "a league and a random player": (np.r_[0, -1500, np.linspace(-400, 100, 10)], LEAGUE, 200),
}


@pytest.mark.parametrize("tournament", TOURNAMENTS)
def test_intervals_hold_the_true_strengths(tournament: str) -> None:
    """So many of them as they promise: 95 %, in tournaments of players whose true strengths are known."""
    strengths, pairs, games = TOURNAMENTS[tournament]
    anchor = int(np.argmin(strengths))
    true = strengths - strengths[anchor]
    rng = np.random.default_rng(7)
    inside, best = [], []
    for _ in range(200):
        pairings = []
        for first, second in pairs:
            wins = int(rng.binomial(games, 1 / (1 + 10 ** ((true[second] - true[first]) / 400))))
            pairings.append(Pairing(f"{first}", f"{second}", Tally(wins, 0, games - wins)))
        for rating in rate(pairings, str(anchor)):
            if rating.player != str(anchor):
                inside.append(rating.low <= true[int(rating.player)] <= rating.high)
            if int(rating.player) == np.argmax(true):
                best.append(rating.elo)
    assert 0.90 <= np.mean(inside) <= 0.99
    assert np.median(best) == pytest.approx(true.max(), rel=0.12), "nothing is pressed together"


def test_unbeaten_players_have_finite_ratings_that_grow_with_their_wins() -> None:
    few, many = (elos([Pairing("a", "b", Tally(wins, 0, 0))], "b")["a"] for wins in (5, 50))
    assert 200 < few < many < 2000
    chain = [Pairing(f"p{i + 1}", f"p{i}", Tally(40, 0, 0)) for i in range(20)]
    ratings = rate(chain, "p0")
    assert [rating.player for rating in ratings] == [f"p{i}" for i in range(20, -1, -1)]
    steps = np.diff([rating.elo for rating in ratings])
    np.testing.assert_allclose(steps, steps[::-1], rtol=1e-6)
    assert (steps < -300).all()
    widths = [rating.high - rating.low for rating in ratings]
    assert widths == sorted(widths, reverse=True)  # the further from the anchor, the less is known


def test_the_anchor_moves_all_alike() -> None:
    pairings = drawn({"a": 0.0, "b": 60.0, "c": 200.0}, 50, 1)
    from_a, from_b = elos(pairings, "a"), elos(pairings, "b", anchor_elo=1500.0)
    assert from_b["b"] == 1500
    for name in from_a:
        assert from_b[name] - 1500 == pytest.approx(from_a[name] - from_a["b"])


def test_pairings_add_up_whichever_way_they_are_told() -> None:
    together = elos([Pairing("a", "b", Tally(7, 2, 4))], "b")
    apart = elos(
        [Pairing("a", "b", Tally(5, 0, 1)), Pairing("b", "a", Tally(3, 2, 2)), Pairing("a", "z", Tally())],
        "b",
    )
    assert apart == pytest.approx(together)


def test_what_cannot_be_rated() -> None:
    apart = [Pairing("a", "b", Tally(1, 0, 0)), Pairing("c", "d", Tally(1, 0, 0))]
    with pytest.raises(ConfigError, match="no chain of games connects c, d with the anchor 'a'"):
        rate(apart, "a")
    with pytest.raises(ConfigError, match="the anchor 'x' has played no game; players: a, b, c, d"):
        rate(apart, "x")
    with pytest.raises(ConfigError, match="against itself"):
        rate([Pairing("a", "a", Tally(1, 0, 0))], "a")
    for prior in (0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="above 0"):
            rate(apart[:1], "a", prior=prior)
