"""What the engine's players find: legal lines, in order, with scores from the view of the side to move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keisei import make_game
from keisei.games.contract import Array, BoolArray, FloatArray
from keisei.games.shogi import Board
from keisei.interfaces.usi.engine import Mind, Task, Tell
from keisei.interfaces.usi.protocol import EngineOptions, Insight, Limits
from keisei.interfaces.usi.thinkers import NetworkMind, PolicyMind, SearchMind, mind_of
from keisei.policies import NeuralPolicy, build_network, named_player

SHOGI = make_game("shogi")
HANGING = "startpos moves 7g7f 3c3d 8h3c"
"""A bishop that white's knight or bishop can take."""
MATE_IN_ONE = "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
MATED = "sfen 4k4/4G4/4P4/9/9/9/9/9/4K4 w 2r2b3g4s4n4l17p 1"
ENTERED = "sfen 4K4/PPPPPPPPP/+R+R+B+B5/9/9/9/9/9/4k4 b GSNL3g3s3n3l9p 1"


def network_mind() -> Mind:
    network = build_network({"network": "mlp", "hidden_dim": 8, "num_layers": 1}, SHOGI.spec, seed=3)
    return mind_of(NeuralPolicy(network, SHOGI.spec))


def search_mind(name: str = "search:2") -> Mind:
    policy = named_player(name, SHOGI.spec)
    assert policy is not None
    return mind_of(policy)


def task(tell: Tell, go: str = "", seconds: float | None = None, **options: Any) -> Task:
    return Task(EngineOptions(**options), Limits.parse(go.split()), seconds, tell, lambda: False)


def found(mind: Mind, position: str, go: str = "", **options: Any) -> list[Insight]:
    insights: list[Insight] = []
    mind.study(position).think(task(insights.append, go, **options))
    for insight in insights:
        for line in insight.lines:
            board = Board.from_usi_position(position)
            for move in line.moves:
                board.push_usi(move)
    return insights


def test_each_player_has_its_kind_of_mind() -> None:
    assert isinstance(network_mind(), NetworkMind)
    assert isinstance(search_mind(), SearchMind)
    assert isinstance(search_mind("greedy"), PolicyMind)


@pytest.mark.parametrize("position", ["startpos", HANGING])
def test_a_network_plays_its_likeliest_move_and_says_what_follows(position: str) -> None:
    mind = network_mind()
    assert isinstance(mind, NetworkMind)
    ranked = mind._ranked(Board.from_usi_position(position))
    assert sum(np.exp([*ranked.values()])) == pytest.approx(1, abs=1e-4)
    first, *_, last = found(mind, position)
    assert first.lines[0].moves == (next(iter(ranked)).usi(),)
    assert first.lines[0].score.startswith("cp ")
    assert len(last.lines[0].moves) == 5
    assert last.nodes == 5


def test_a_network_tells_several_lines() -> None:
    last = found(network_mind(), "startpos", lines=4)[-1]
    assert len({line.moves[0] for line in last.lines}) == 4
    assert found(network_mind(), MATE_IN_ONE, lines=600)[-1].lines[0].score != ""


def test_a_temperature_brings_other_moves() -> None:
    mind = network_mind()
    for temperature, least, most in ((5.0, 4, 20), (1e-6, 1, 1)):
        drawn = [found(mind, "startpos", temperature=temperature)[-1] for _ in range(20)]
        assert least <= len({insight.lines[0].moves[0] for insight in drawn}) <= most


class Judge:
    """A policy that likes every move, and values positions by one number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def log_probabilities(self, observations: Array, legal: BoolArray) -> FloatArray:
        return np.where(legal, 0.0, -1e9).astype(np.float32)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return np.full(len(observations), self.value, np.float32)


@pytest.mark.parametrize(
    ("value", "score", "chance"), [(0, "cp 0", 0.5), (0.5, "cp 659", 0.75), (-2, "cp -9999", 0)]
)
def test_values_become_scores(value: float, score: str, chance: float) -> None:
    line = found(NetworkMind(Judge(value), SHOGI), "startpos")[0].lines[0]  # type: ignore[arg-type]
    assert line.score == score
    assert line.chance == pytest.approx(chance, abs=1e-5)


def test_a_move_that_gives_a_good_position_away_scores_low() -> None:
    lines = found(NetworkMind(Judge(0.5), SHOGI), "startpos", lines=3)[-1].lines  # type: ignore[arg-type]
    assert [line.score for line in lines] == ["cp -659"] * 3


def test_a_search_goes_deeper_and_takes_what_hangs() -> None:
    insights = found(search_mind("search:3"), HANGING)
    assert [insight.depth for insight in insights] == [1, 2, 3]
    assert [insight.nodes for insight in insights] == sorted(insight.nodes for insight in insights)
    assert insights[-1].lines[0].moves[0] in ("2b3c", "2a3c", "2b3c+")
    assert len(insights[-1].lines[0].moves) == 3
    assert insights[-1].lines[0].score.startswith("cp ")


def test_a_search_orders_its_lines() -> None:
    lines = found(search_mind(), HANGING, lines=5)[-1].lines
    scores = [int(line.score.removeprefix("cp ")) for line in lines]
    assert len(lines) == 5
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


def test_a_search_sees_mates() -> None:
    line = found(search_mind("search:3"), MATE_IN_ONE)[-1].lines[0]
    assert (line.moves, line.score, line.chance) == (("G*5b",), "mate 1", 1.0)
    threat = "sfen 4k4/9/4P4/9/9/9/9/9/4K4 w G2r2b3g4s4n4l17p 1"
    lines = found(search_mind(), threat, lines=600)[-1].lines
    assert "mate -2" in {line.score for line in lines}


@pytest.mark.parametrize(
    ("go", "options", "depths"),
    [
        ("depth 2", {}, [1, 2]),
        ("", {"depth": 1}, [1]),
        ("depth 2", {"depth": 3}, [1, 2]),
        ("nodes 100", {}, [1]),
        ("", {"nodes": 1}, [1]),
    ],
)
def test_limits_of_a_search(go: str, options: dict[str, int], depths: list[int]) -> None:
    insights = found(search_mind("search:4"), "startpos", go, **options)
    assert [insight.depth for insight in insights] == depths


def test_a_search_that_is_stopped_keeps_what_it_has() -> None:
    insights: list[Insight] = []
    study = search_mind("search:9").study("startpos")
    study.think(replace(task(insights.append), stopped=lambda: len(insights) >= 2))
    assert len(insights) == 2


def test_a_search_that_has_no_time_ends_soon() -> None:
    insights: list[Insight] = []
    search_mind("search:9").study("startpos").think(task(insights.append, seconds=0.0))
    assert len(insights) == 1


def test_other_policies_play_without_scores() -> None:
    (insight,) = found(search_mind("random"), HANGING)
    assert insight.lines[0].score == ""


def test_what_is_settled_and_what_is_not() -> None:
    mind = search_mind()
    assert mind.study("startpos").settled() is None
    assert mind.study(MATED).settled() == "resign"
    assert mind.study(ENTERED).settled() == "win"
    assert mind.study("startpos moves 7g7f").turn == 1
    assert mind.study("startpos").any_move() in {move.usi() for move in Board().legal_moves}


def test_mates_in_words() -> None:
    assert search_mind().study(MATE_IN_ONE).mate(lambda: False) == "G*5b"
    assert search_mind().study("startpos").mate(lambda: False) == "nomate"
    assert search_mind().study(MATE_IN_ONE).mate(lambda: True) == "timeout"
