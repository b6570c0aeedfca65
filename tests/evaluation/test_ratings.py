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


def by_minorization(pairings: list[Pairing], anchor: str, prior: float) -> dict[str, float]:
    """Hunter's MM algorithm (2004), step by step: another way to the same likelihood."""
    names = sorted({name for pairing in pairings for name in (pairing.first, pairing.second)})
    points = {(a, b): 0.0 for a in names for b in names}
    for pairing in pairings:
        points[pairing.first, pairing.second] += pairing.tally.points
        points[pairing.second, pairing.first] += pairing.tally.games - pairing.tally.points
    met = {(a, b) for a in names for b in names if points[a, b] + points[b, a]}
    for pair in met:
        points[pair] += prior / 2
    strength = dict.fromkeys(names, 1.0)
    for _ in range(20_000):
        strength = {
            a: sum(points[a, b] for b in names)
            / sum((points[a, b] + points[b, a]) / (strength[a] + strength[b]) for b in names if (a, b) in met)
            for a in names
        }
    return {name: 400 * log10(strength[name] / strength[anchor]) for name in names}


def test_two_players_have_a_closed_form() -> None:
    """With the prior's one drawn game, 60 points of 100 become 60.5 of 101."""
    first, second = rate([Pairing("a", "b", Tally(55, 10, 35))], anchor="b")
    p = 60.5 / 101
    assert (first.player, second.player) == ("a", "b")
    assert first.elo == pytest.approx(-400 * log10(1 / p - 1))
    assert (second.elo, second.low, second.high) == (0, 0, 0)
    margin = 1.959963984540054 * ELO_PER_UNIT / np.sqrt(101 * p * (1 - p))
    assert first.high - first.elo == pytest.approx(margin)
    assert first.elo - first.low == pytest.approx(margin)
    assert (first.games, first.score) == (100, 0.6)
    assert (second.games, second.score) == (100, 0.4)


def test_another_algorithm_agrees() -> None:
    pairings = [
        Pairing("a", "b", Tally(12, 5, 3)),
        Pairing("b", "c", Tally(4, 0, 16)),
        Pairing("c", "a", Tally(9, 2, 9)),
        Pairing("d", "a", Tally(0, 0, 10)),
        Pairing("b", "d", Tally(7, 1, 2)),
    ]
    found, expected = elos(pairings, "c"), by_minorization(pairings, "c", 1.0)
    assert found.keys() == expected.keys()
    for name, elo in found.items():
        assert elo == pytest.approx(expected[name], abs=0.01)


def test_intervals_hold_the_true_strengths() -> None:
    strengths = {"anchor": 0.0, "b": 100.0, "c": -150.0, "d": 350.0, "e": 220.0}
    inside = total = 0
    for seed in range(60):
        for rating in rate(drawn(strengths, 40, seed), "anchor"):
            if rating.player != "anchor":
                total += 1
                inside += rating.low <= strengths[rating.player] <= rating.high
    assert 0.90 < inside / total < 0.99


def test_unbeaten_players_have_finite_ratings_that_grow_with_their_wins() -> None:
    few, many = (elos([Pairing("a", "b", Tally(wins, 0, 0))], "b")["a"] for wins in (5, 50))
    assert 0 < few < many < 2000
    chain = [Pairing(f"p{i + 1}", f"p{i}", Tally(40, 0, 0)) for i in range(20)]
    ratings = rate(chain, "p0")
    assert [rating.player for rating in ratings] == [f"p{i}" for i in range(20, -1, -1)]
    steps = np.diff([rating.elo for rating in ratings])
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
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
    with pytest.raises(ConfigError, match="above 0"):
        rate(apart[:1], "a", prior=0)
