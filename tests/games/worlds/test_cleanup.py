"""Cleanup: the contract, apples, dirt, beams and agents that rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_worlds_for_tests import drawn

from keisei import check_game, make_game
from keisei.errors import ConfigError
from keisei.games.worlds import Environment
from keisei.games.worlds.cleanup import Cleanup

UP, DOWN, LEFT, RIGHT, STAY, CLEAN, ZAP = range(7)
TURNS = ("in-order", "one-by-one", "at-once")
STILL = {"pollution": 0.0, "growth": 0.0}
"""Nothing changes by chance."""


@pytest.mark.parametrize("turns", TURNS)
def test_cleanup_keeps_the_contract(turns: str) -> None:
    check_game("cleanup", steps=40, height=6, width=10, max_turns=30, turns=turns, rest=3)


def ground(game: Environment) -> list[str]:
    """The world without agents and beams."""
    letters = np.array([kind.letter for kind in game.world.kinds])
    return ["".join(row) for row in letters[game.world.cells[0, ..., 0]]]


def test_a_new_map() -> None:
    game = make_game("cleanup", height=5, width=12, dirt=0.5, agents=1)
    assert isinstance(game, Cleanup)
    picture = [row.replace("w", "~") for row in ground(game)]
    assert picture == ["#" * 12, *["#~~~..,,,,,#"] * 3, "#" * 12]
    assert game.world.count("dirt").tolist() == [4]  # half of 9, rounded to even


def test_walking_turns_and_takes_apples() -> None:
    game = drawn("cleanup", "#########\n#~~~.^a,#\n#########", agents=1, **STILL)
    step = game.step([RIGHT])
    assert step.rewards.tolist() == [[1]]
    assert game.text().splitlines()[1] == "#~~~..>,#"
    assert game.step([LEFT]).rewards.tolist() == [[0]]
    assert game.step([RIGHT]).rewards.tolist() == [[0]]  # the apple is gone
    assert ground(game)[1] == "#~~~..,,#"
    game.step([UP])
    assert game.text().splitlines()[1] == "#~~~..^,#"


def test_the_river_cannot_be_entered() -> None:
    game = drawn("cleanup", "#########\n#~~~^.,,#\n#########", agents=1, **STILL)
    assert game.step([LEFT]).rewards.tolist() == [[0]]
    assert game.text().splitlines()[1] == "#~~~<.,,#"


def test_the_cleaning_beam_reaches_three_lanes() -> None:
    picture = """
        #########
        #www..,,#
        #www..,,#
        #www..<,#
        #www..,,#
        #www..,,#
        #########
    """
    game = drawn("cleanup", picture, agents=1, beam=4, limit=1.0, **STILL)
    game.step([CLEAN])
    assert ground(game)[1:6] == ["#www..,,#", "#w~~..,,#", "#w~~...,#", "#w~~..,,#", "#www..,,#"]
    assert [row.count("*") for row in game.text().splitlines()] == [0, 0, 4, 4, 4, 0, 0]


def test_a_wall_stops_a_lane() -> None:
    picture = """
        #########
        #www..,,#
        #ww#..<,#
        #www..,,#
        #########
    """
    game = drawn("cleanup", picture, agents=1, beam=5, **STILL)
    game.step([CLEAN])
    assert ground(game)[1:4] == ["#~~~..,,#", "#ww#...,#", "#~~~..,,#"]


@pytest.mark.parametrize("facing", "^v<>")
def test_beams_reach_into_all_directions(facing: str) -> None:
    rows = ["#" * 14, *["#~~~....,,,,,#"] * 9, "#" * 14]
    rows[5] = rows[5][:7] + facing + rows[5][8:]
    game = drawn("cleanup", "\n".join(rows), agents=1, beam=2, **STILL)
    game.step([ZAP])
    lit = {
        (r, c)
        for r, line in enumerate(game.text().splitlines())
        for c, sign in enumerate(line)
        if sign == "!"
    }
    down, right = {"^": (-1, 0), "v": (1, 0), "<": (0, -1), ">": (0, 1)}[facing]
    lanes = [(0, side) if down else (side, 0) for side in (-1, 0, 1)]
    assert lit == {(5 + k * down + a, 7 + k * right + b) for k in (1, 2) for a, b in lanes}


def zapping(turns: str = "in-order", **options: Any) -> Environment:
    picture = "##########\n#~~~.>.<,#\n##########"
    return drawn("cleanup", picture, agents=2, rest=3, zapped=-2.0, turns=turns, **STILL, **options)


def test_a_zapped_agent_loses_its_act_and_rests() -> None:
    game = zapping()
    step = game.step([ZAP, ZAP])
    assert step.rewards.tolist() == [[-1, -2]]
    for _ in range(3):
        assert game.rows().seat.tolist() == [0]
        assert game.text().splitlines()[1][5:8:2] == ">z"
        assert game.step([STAY]).rewards.tolist() == [[0, 0]]
    assert game.rows().seat.tolist() == [0, 1]
    assert game.text().splitlines()[1] == "#~~~.>.<,#"


def test_an_agent_that_rests_is_not_hit_again() -> None:
    game = zapping()
    game.step([ZAP, STAY])
    game.step([STAY])
    assert game.step([ZAP]).rewards.tolist() == [[-1, 0]]
    game.step([STAY])
    assert game.rows().seat.tolist() == [0, 1]


def test_agents_that_zap_each_other_at_once_both_fire_and_both_stay_awake() -> None:
    """Both would rest for the same time, and nobody could act: so both wake at once."""
    game = zapping("at-once")
    assert game.step([ZAP, ZAP]).rewards.tolist() == [[-3, -3]]
    assert game.rows().seat.tolist() == [0, 1]


def test_one_by_one_a_zapped_agent_is_passed_over() -> None:
    game = zapping("one-by-one")
    game.step([ZAP])
    for _ in range(3):
        assert game.rows().seat.tolist() == [0]
        assert game.text().splitlines()[1][5:8:2] == ">z"
        game.step([STAY])
    assert game.rows().seat.tolist() == [0]
    game.step([STAY])
    assert game.rows().seat.tolist() == [1]


def test_dirt_comes_up_to_the_limit() -> None:
    game = drawn("cleanup", "#########\n#~~~^.,,#\n#~~~..,,#\n#########", agents=1, pollution=1.0, limit=0.4)
    counts = []
    for _ in range(5):
        game.step([STAY])
        counts.append(int(game.world.count("dirt")[0]))
    assert counts == [1, 2, 3, 3, 3]  # 3 of 6 are more than the limit


@pytest.mark.parametrize(("river", "share"), [("~~~", 1.0), ("~~w", 1 - (1 / 3) / 0.5), ("~ww", 0.0)])
def test_apples_grow_as_fast_as_the_river_is_clean(river: str, share: float) -> None:
    picture = "\n".join(["#" * 60, f"#{river}^" + "," * 54 + "#", "#" * 60])
    game = drawn("cleanup", picture, batch=400, agents=1, pollution=0.0, growth=0.1, limit=0.5)
    game.step(np.full(400, STAY))
    assert game.world.count("apple").mean() == pytest.approx(54 * 0.1 * share, rel=0.1)


def test_a_map_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match="width"):
        make_game("cleanup", width=8)
    with pytest.raises(ConfigError, match="4 free cells, which is no room for 5 agents"):
        make_game("cleanup", height=3, width=9)
