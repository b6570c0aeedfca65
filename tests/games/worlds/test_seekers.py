"""The scripted player of treasure hunt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_worlds_for_tests import drawn

from keisei.errors import ConfigError
from keisei.evaluation import play_match
from keisei.games.worlds.treasure_hunt import TreasureHunt

UP, DOWN, LEFT, RIGHT = range(4)
KEYS = np.arange(64, dtype=np.uint64)


def field_of(picture: str, **options: Any) -> TreasureHunt:
    game = drawn("treasurehunt", picture, agents=picture.count("A"), **{"spawn": 0.0, **options})
    assert isinstance(game, TreasureHunt)
    return game


def choices(game: TreasureHunt) -> list[set[int]]:
    """What each agent may choose, over many keys."""
    rows = len(game.rows())
    drawn = [game.heuristic_actions(None, KEYS[:rows] + np.uint64(1000 * key)) for key in range(60)]
    return [set(column) for column in np.stack(drawn, axis=1).tolist()]


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("#######\n#g....#\n#.....#\n#..A.f#\n#.....#\n#.....#\n#######", {RIGHT}),  # nearer, though worth less
        ("#######\n#..g..#\n#..b..#\n#..A..#\n#.....#\n#.....#\n#######", {LEFT, RIGHT}),  # around the bone
        ("#######\n#..g..#\n#..#..#\n#..A..#\n#.....#\n#.....#\n#######", {LEFT, RIGHT}),  # around the wall
        ("#######\n#..A..#\n#..g..#\n#..A..#\n#..f..#\n#.....#\n#######", {DOWN}),
        ("#######\n#.....#\n#.....#\n#..A..#\n#.....#\n#.....#\n#######", {UP, DOWN, LEFT, RIGHT}),
        ("#####\n#b..#\n#.A.#\n#...#\n#####", {UP, DOWN, LEFT, RIGHT}),
        ("#####\n#.b.#\n#bA.#\n#.b.#\n#####", {RIGHT}),  # what costs nothing
        ("#####\n#.b.#\n#bAb#\n#.b.#\n#####", {UP, DOWN, LEFT, RIGHT}),
        ("#########\n#.......#\n#.......#\n#.......#\n#...A..g#\n#.......#\n#.......#\n#.......#\n#########",
         {UP, DOWN, LEFT, RIGHT}),  # too far away to be seen
    ],
)  # fmt: skip
def test_it_walks_to_the_nearest_treasure(picture: str, expected: set[int]) -> None:
    assert choices(field_of(picture))[0] == expected


def test_it_sees_as_far_as_its_vision_goes() -> None:
    picture = (
        "#########\n#.......#\n#.......#\n#.......#\n#...A..g#\n#.......#\n#.......#\n#.......#\n#########"
    )
    assert choices(field_of(picture, vision=3)) == [{RIGHT}]
    assert choices(field_of(picture, vision=None)) == [{RIGHT}]
    assert choices(field_of(picture, vision=0)) == [{UP, DOWN, LEFT, RIGHT}]


def test_a_bone_with_a_value_above_0_is_a_treasure() -> None:
    picture = "#####\n#...#\n#.Ab#\n#...#\n#####"
    assert choices(field_of(picture, bone=2.0)) == [{RIGHT}]
    assert RIGHT not in choices(field_of(picture))[0]


@pytest.mark.parametrize("turns", ["in-order", "one-by-one", "at-once"])
def test_it_gains_far_more_than_random_agents(turns: str) -> None:
    match = play_match("treasurehunt", {"turns": turns, "max_turns": 50}, "heuristic", "random", games=40)
    assert match.mean_return.low > match.opponent_return + 50


def test_games_without_a_script_refuse_it() -> None:
    with pytest.raises(ConfigError, match=r"tag has no heuristic of its own .*; take 'random' instead"):
        play_match("tag", None, "heuristic", "random", games=4)
