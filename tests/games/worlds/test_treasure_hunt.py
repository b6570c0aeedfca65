"""Treasure hunt: the contract, the batch beside a plain field, pictures, and bad input."""

from __future__ import annotations

import random
import re
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_field_for_tests import Rules, SlowField

from keisei import check_game, make_game
from keisei.errors import ConfigError
from keisei.games.contract import Step
from keisei.games.offers import HasHeuristic
from keisei.games.worlds.colours import agent_colour, hexadecimal
from keisei.games.worlds.treasure_hunt import TreasureHunt

SEED, FIRST = 11, 5
TURNS = ("in-order", "one-by-one", "at-once")
CROWDED = Rules(agents=7, height=6, width=6, max_turns=30, spawn=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"turns": "one-by-one", "agents": 3, "max_turns": 20},
        {"turns": "at-once", "agents": 5, "height": 5, "width": 5, "spawn": 0.2, "max_turns": 30},
        {"vision": None, "height": 6, "width": 8, "max_turns": 30},
        {"observation": "rgb", "vision": None, "height": 6, "width": 8, "max_turns": 30},
        {"observation": "ascii", "agents": 1, "max_turns": 30},
        {"vision": 0, "spawn": 1.0, "height": 4, "width": 4, "max_turns": 10},
    ],
    ids=str,
)
def test_treasure_hunt_keeps_the_contract(options: dict[str, Any]) -> None:
    check_game("treasurehunt", steps=40, **options)


def test_the_spec_tells_what_treasure_hunt_is() -> None:
    game = make_game("treasurehunt")
    spec = game.spec
    assert (spec.name, spec.seats, spec.num_actions, spec.max_plies) == ("treasurehunt", 2, 4, 100)
    assert (spec.simultaneous, spec.zero_sum, spec.chance) == (True, False, True)
    assert (isinstance(game, HasHeuristic), spec.scored_by_rewards) == (True, True)
    assert (spec.observation.shape, spec.packed_bytes) == ((5, 5, 5), 25)


def test_a_turn_of_one_by_one_has_a_step_for_each_agent() -> None:
    spec = make_game("treasurehunt", turns="one-by-one", agents=3, max_turns=10).spec
    assert (spec.simultaneous, spec.max_plies) == (False, 30)


class Twins:
    """A batch, and a plain field for each of its games."""

    def __init__(self, batch: int, rules: Rules) -> None:
        self.rules = rules
        game = make_game("treasurehunt", batch=batch, seed=SEED, first_game=FIRST, **asdict(rules))
        assert isinstance(game, TreasureHunt)
        self.game = game
        self.fields = [SlowField(rules, SEED, FIRST + index, 0) for index in range(batch)]
        self.finished = 0

    def assert_same(self) -> None:
        rows, seen = self.game.rows(), self.game.observe()
        expected = [(index, seat) for index, field in enumerate(self.fields) for seat in field.acting]
        assert list(zip(rows.game.tolist(), rows.seat.tolist(), strict=True)) == expected
        for index, field in enumerate(self.fields):
            assert self.game.text(index) == field.text()
            gained = [walker.gained for walker in field.walkers]
            np.testing.assert_allclose(self.game.returns[index], gained, atol=1e-4)
        for row, (index, seat) in enumerate(expected):
            np.testing.assert_array_equal(seen[row], self.fields[index].observation(seat))

    def play(self, actions: list[int]) -> None:
        """One step of the batch and of every field."""
        step = self.game.step(np.array(actions))
        at = 0
        for index, field in enumerate(self.fields):
            count = len(field.acting)
            rewards = field.play(actions[at : at + count])
            at += count
            np.testing.assert_allclose(step.rewards[index], rewards, atol=1e-6)
            self.assert_same_end(step, index)

    def assert_same_end(self, step: Step, index: int) -> None:
        field = self.fields[index]
        assert (step.terminated[index], step.truncated[index]) == (False, field.is_over)
        if not field.is_over:
            return
        gained = [walker.gained for walker in field.walkers]
        np.testing.assert_allclose(step.scores[index], gained, atol=1e-3)
        mine = step.final.game == index
        assert step.final.seat[mine].tolist() == field.acting
        seen, _ = self.game.unpack(step.final.packed[mine])
        for row, seat in enumerate(field.acting):
            np.testing.assert_array_equal(seen[row], field.observation(seat))
        self.fields[index] = SlowField(self.rules, SEED, FIRST + index, field.episode + 1)
        self.finished += 1


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize(
    "rules",
    [
        Rules(max_turns=25),
        CROWDED,
        Rules(agents=4, height=5, width=9, max_turns=12, spawn=0.3, vision=None, wall=-2.5, gem=1),
        Rules(agents=1, height=3, width=4, max_turns=7, spawn=1.0, vision=1),
    ],
    ids=["usual", "crowded", "whole", "tiny"],
)
def test_the_batch_equals_plain_fields_step_by_step(rules: Rules, turns: str) -> None:
    rng = random.Random(3)
    twins = Twins(2, Rules(**{**asdict(rules), "turns": turns}))
    for _ in range(60):
        twins.assert_same()
        twins.play([rng.randrange(4) for _ in range(len(twins.game.rows()))])
    assert twins.finished >= 2 or turns == "one-by-one"


@settings(max_examples=60)
@given(
    st.sampled_from(TURNS),
    st.integers(3, 6),
    st.integers(3, 6),
    st.data(),
)
def test_the_batch_equals_a_plain_field_in_small_worlds(
    turns: str, height: int, width: int, data: Any
) -> None:
    """Small worlds are full of agents, so that they stand in each other's way."""
    agents = data.draw(st.integers(1, (height - 2) * (width - 2)))
    spawn = data.draw(st.sampled_from([0.0, 0.05, 0.5]))
    twins = Twins(1, Rules(agents=agents, height=height, width=width, turns=turns, spawn=spawn, vision=1))
    for _ in range(6):
        rows = len(twins.game.rows())
        twins.play(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)))
        twins.assert_same()


def test_things_appear_as_often_as_the_rules_say() -> None:
    """Of 361 cells, 0.5 % of those that are empty in each turn; a third of each kind."""
    game = make_game("treasurehunt", batch=200, seed=1, agents=1)
    assert isinstance(game, TreasureHunt)
    for _ in range(20):
        game.step(np.zeros(200, np.int32))
    counts = [game.world.count(kind).mean() for kind in ("gem", "food", "bone")]
    assert sum(counts) == pytest.approx(361 * (1 - 0.995**20), rel=0.05)
    assert min(counts) > 0.9 * max(counts)


def test_the_picture_of_a_field() -> None:
    game = make_game("treasurehunt", seed=4, height=7, width=12, spawn=0.1)
    assert isinstance(game, TreasureHunt)
    for _ in range(3):
        game.step(np.array([1, 2]))
    assert game.text().splitlines() == [
        "############",
        "#......f...#",
        "#..g.b.gf..#",
        "#A..f..g...#",
        "#.....b...f#",
        "#....A.....#",
        "############",
    ]
    colours = game.colours()
    assert colours.shape == (7, 12, 3)
    assert colours[0, 0].tolist() == [92, 92, 100]
    svg = game.svg()
    fills = re.findall(r'class="agent".*fill="(#\w+)"', svg)
    assert sorted(fills) == sorted(hexadecimal(agent_colour(seat)) for seat in (0, 1))
    assert svg.count('class="wall"') == 2 * 12 + 2 * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": 0}, "agents"),
        ({"agents": 362}, "361 free cells, which is no room for 362 agents"),
        ({"height": 2}, "0 free cells, which is no room for 2 agents"),
        ({"vision": 21}, "radius 21 is wider than the world"),
        ({"vision": -1}, "vision"),
        ({"turns": "in-turns"}, "turns"),
        ({"observation": "smell"}, "observation"),
        ({"spawn": 1.5}, "spawn"),
        ({"max_turns": 0}, "max_turns"),
        ({"gems": 3}, "gems"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_game("treasurehunt", **options)


def test_a_state_of_other_options_is_refused() -> None:
    from keisei.errors import SavedStateError

    with pytest.raises(SavedStateError, match="other options"):
        make_game("treasurehunt", gem=3).load(make_game("treasurehunt").save())
