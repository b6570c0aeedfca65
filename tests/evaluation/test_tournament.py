"""Round robins and ladders, and that their matches do not depend on who else takes part."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from keisei.errors import ConfigError
from keisei.evaluation import (
    MatchPlan,
    MatchResult,
    Player,
    Tally,
    Tournament,
    ladder,
    ladder_step,
    round_robin,
)
from keisei.policies import RandomPolicy

PLAN = MatchPlan("tictactoe", games=40, seed=3)


def met(tournament: Tournament) -> list[tuple[str, str]]:
    return [(pairing.first, pairing.second) for pairing in tournament.pairings]


def test_everybody_meets_everybody() -> None:
    seen: list[MatchResult] = []
    plan = MatchPlan("tictactoe", games=40, seed=3, on_match=seen.append)
    tournament = round_robin(plan, ["random", "greedy", "search:9"])
    assert met(tournament) == [("random", "greedy"), ("random", "search:9"), ("greedy", "search:9")]
    assert [match.players for match in seen] == met(tournament)
    assert [match.tally() for match in seen] == [pairing.tally for pairing in tournament.pairings]
    assert tournament.anchor == "random"
    assert [rating.player for rating in tournament.ratings] == ["search:9", "greedy", "random"]
    assert [rating.games for rating in tournament.ratings] == [80, 80, 80]
    assert tournament.ratings[-1].elo == 0
    json.dumps(asdict(tournament))  # plain data, for whoever keeps it


def test_a_match_is_the_same_whoever_else_takes_part() -> None:
    all_three = round_robin(PLAN, ["random", "greedy", "search:1"])
    two = round_robin(PLAN, ["greedy", "search:1"])
    assert two.pairings[0] in all_three.pairings


def test_a_ladder_has_rungs() -> None:
    names = ["random", "greedy", "search:1", "search:9"]
    assert met(ladder(PLAN, names)) == [
        ("greedy", "random"),
        ("search:1", "greedy"),
        ("search:9", "search:1"),
    ]
    wide = met(ladder(PLAN, names, back=2))
    assert wide == [
        ("greedy", "random"),
        ("search:1", "random"),
        ("search:1", "greedy"),
        ("search:9", "greedy"),
        ("search:9", "search:1"),
    ]


def test_one_more_player_is_rated_with_all_games_so_far() -> None:
    so_far = ladder(PLAN, ["random", "greedy"])
    grown = ladder_step(PLAN, "search:9", ["greedy"], so_far.pairings)
    assert grown == ladder(PLAN, ["random", "greedy", "search:9"])
    alone = ladder_step(PLAN, "greedy", ["random"])
    assert alone == so_far
    assert ladder_step(PLAN, "greedy", ["random"], anchor="greedy").anchor == "greedy"


def test_policies_take_part_under_their_names() -> None:
    players = [Player(name, RandomPolicy()) for name in ("checkpoint-1", "checkpoint-2", "checkpoint-3")]
    tournament = round_robin(PLAN, players)
    assert sum((pairing.tally for pairing in tournament.pairings), Tally()).games == 120
    assert len({pairing.tally for pairing in tournament.pairings}) > 1  # seeds follow from whole names


def test_what_cannot_be_a_tournament() -> None:
    with pytest.raises(ConfigError, match="'random' is there more than once"):
        round_robin(PLAN, ["random", "greedy", "random"])
    with pytest.raises(ConfigError, match="two players or more; got 1"):
        ladder(PLAN, ["random"])
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        ladder(PLAN, ["random", "greedy"], back=0)
