"""Stag hunt: the contract, and who catches what."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_worlds_for_tests import drawn, rows_of

from keisei import check_game, make_game
from keisei.errors import ConfigError
from keisei.games.worlds.stag_hunt import StagHunt

UP, DOWN, LEFT, RIGHT, STAY = range(5)
TURNS = ("in-order", "one-by-one", "at-once")


@pytest.mark.parametrize("turns", TURNS)
def test_stag_hunt_keeps_the_contract(turns: str) -> None:
    check_game("stag-hunt", steps=40, agents=4, height=7, width=7, max_turns=30, turns=turns)


def test_a_new_world_has_its_animals() -> None:
    game = make_game("stag-hunt", batch=20, seed=3)
    assert isinstance(game, StagHunt)
    assert (game.world.count("hare") == 4).all()
    assert (game.world.count("stag") == 2).all()


@pytest.mark.parametrize("turns", ["in-order", "at-once"])
def test_a_hare_is_caught_alone(turns: str) -> None:
    game = drawn("stag-hunt", "#####\n#Ah.#\n#..A#\n#####", back=0.0, hares=1, stags=0, turns=turns)
    step = game.step([RIGHT, STAY])
    assert step.rewards.tolist() == [[1, 0]]
    assert game.text().splitlines() == rows_of("#####\n#.A.#\n#..A#\n#####")


@pytest.mark.parametrize("turns", ["in-order", "at-once"])
def test_a_stag_is_not_caught_alone(turns: str) -> None:
    picture = "######\n#AS..#\n#...A#\n######"  # the other is not beside it
    game = drawn("stag-hunt", picture, back=0.0, hares=0, stags=1, turns=turns)
    step = game.step([RIGHT, UP])
    assert step.rewards.tolist() == [[-1, 0]]
    assert game.world.count("stag").tolist() == [1]


@pytest.mark.parametrize("turns", ["in-order", "at-once"])
@pytest.mark.parametrize("second", [STAY, LEFT])
def test_a_stag_is_caught_together(turns: str, second: int) -> None:
    """It is enough that the other stands beside it, and nobody is paid twice."""
    game = drawn(
        "stag-hunt", "######\n#ASA.#\n#..A.#\n######", back=0.0, agents=3, hares=0, stags=1, turns=turns
    )
    step = game.step([RIGHT, second, STAY])
    assert step.rewards.tolist() == [[5, 5, 0]]
    assert game.world.count("stag").tolist() == [0]


def test_in_order_a_stag_that_is_gone_can_be_walked_through() -> None:
    game = drawn("stag-hunt", "######\n#ASA.#\n######", back=0.0, hares=0, stags=1)
    step = game.step([RIGHT, LEFT])
    assert step.rewards.tolist() == [[5, 5]]
    assert game.text().splitlines()[1] == "#AA..#"


def test_animals_come_back_up_to_their_number() -> None:
    game = drawn("stag-hunt", "#####\n#A.A#\n#...#\n#####", back=1.0, hares=2, stags=1)
    counts = []
    for _ in range(3):
        game.step(np.array([STAY, STAY]))
        counts.append((int(game.world.count("hare")[0]), int(game.world.count("stag")[0])))
    assert counts == [(1, 1), (2, 1), (2, 1)]


def test_a_world_without_room_for_its_animals_is_refused() -> None:
    with pytest.raises(ConfigError, match="4 free cells, which is no room for 2 agents, 4 hares and 2 stags"):
        make_game("stag-hunt", height=4, width=4)
