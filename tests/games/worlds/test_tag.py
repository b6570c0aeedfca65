"""Tag: the contract, and the rules of tagging and resting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_worlds_for_tests import drawn, rows_of

from keisei import check_game, make_game
from keisei.errors import ConfigError
from keisei.games.worlds.tag import Tag

UP, DOWN, LEFT, RIGHT, STAY = range(5)
TURNS = ("in-order", "one-by-one", "at-once")
CORRIDOR = """
    ########
    #.Ir...#
    ########
"""


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("options", [{}, {"agents": 2, "rest": 0, "height": 5, "width": 5}], ids=str)
def test_tag_keeps_the_contract(options: dict[str, Any], turns: str) -> None:
    check_game("tag", steps=40, max_turns=30, turns=turns, **options)


def test_a_random_agent_begins_as_it() -> None:
    game = make_game("tag", batch=200, seed=3)
    assert isinstance(game, Tag)
    seats = np.nonzero(game.world.observe(game.world.agents) == game.world.number("it"))[1]
    assert len(seats) == 200
    assert (np.bincount(seats, minlength=4) > 30).all()


@pytest.mark.parametrize("turns", ["in-order", "at-once"])
def test_tagging_turns_the_chase_around(turns: str) -> None:
    game = drawn("tag", CORRIDOR, agents=2, turns=turns)
    step = game.step([RIGHT, STAY])
    assert game.text().splitlines() == rows_of(CORRIDOR.replace("Ir", "rI"))
    assert step.rewards.tolist() == [[5, -5 - 1]]


def test_the_tagged_agent_rests_and_still_gets_its_rewards() -> None:
    game = drawn("tag", CORRIDOR, agents=2, rest=2)
    game.step([RIGHT, STAY])
    for _ in range(2):
        assert game.rows().seat.tolist() == [0]
        assert game.step([STAY]).rewards.tolist() == [[0, -1]]
    assert game.rows().seat.tolist() == [0, 1]
    assert game.returns.tolist() == [[5, -8]]


def test_one_by_one_passes_over_the_agent_that_rests() -> None:
    game = drawn("tag", CORRIDOR, agents=2, rest=2, turns="one-by-one")
    game.step([RIGHT])
    assert game.rows().seat.tolist() == [0]  # the turn has ended, since seat 1 rests
    assert game.returns.tolist() == [[5, -6]]
    game.step([LEFT])
    game.step([LEFT])
    assert game.rows().seat.tolist() == [0]
    game.step([STAY])
    assert game.rows().seat.tolist() == [1]


def test_who_runs_away_at_the_same_time_is_not_tagged() -> None:
    game = drawn("tag", CORRIDOR, agents=2, turns="at-once")
    step = game.step([RIGHT, RIGHT])
    assert game.text().splitlines() == rows_of(CORRIDOR.replace(".Ir.", "..Ir"))
    assert step.rewards.tolist() == [[-1, 0]]


def test_who_runs_into_it_at_the_same_time_is_tagged() -> None:
    game = drawn("tag", CORRIDOR, agents=2, turns="at-once")
    step = game.step([RIGHT, LEFT])
    assert game.text().splitlines() == rows_of(CORRIDOR.replace("Ir", "rI"))
    assert step.rewards.tolist() == [[5, -6]]


def test_runners_do_not_tag() -> None:
    game = drawn("tag", CORRIDOR.replace("Ir..", "rr.I"), agents=3)
    step = game.step([RIGHT, LEFT, STAY])
    assert step.rewards.tolist() == [[0, 0, -1]]


def test_tag_needs_two_agents() -> None:
    with pytest.raises(ConfigError, match="agents"):
        make_game("tag", agents=1)
