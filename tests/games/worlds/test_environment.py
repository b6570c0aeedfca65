"""Environments: a world of one's own, ends, turns, and states that cannot be."""

from __future__ import annotations

import runpy
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_worlds_for_tests import draw

from keisei import check_game, make_game, registered_games
from keisei.errors import ConfigError, GameError, SavedStateError
from keisei.games.adapters.to_pettingzoo import to_pettingzoo_parallel
from keisei.games.contract import BoolArray
from keisei.games.saved import unwrap, wrap
from keisei.games.worlds import (
    MOVES,
    ActionSpec,
    Agent,
    Empty,
    Entity,
    Environment,
    OneHotObservationSpec,
    Wall,
    World,
    walled,
)

ROOT = Path(__file__).parents[3]
SEEN = OneHotObservationSpec(radius=1)


class Ember(Entity):
    """Goes out at the end of a turn."""

    passable, value, letter = True, 1.0, "e"

    def transition(self, world: World) -> None:
        world.remove(world.entities(self))


class Seeker(Agent):
    """Has finished when it stands in the leftmost column inside the walls."""

    def is_done(self, world: World) -> BoolArray:
        return world.coordinates(world.agents[:, self.seat])[2] == 1


class Race(Environment):
    name = "race"

    def __init__(
        self, *, batch: int = 1, seed: int = 0, first_game: int = 0, agents: int = 2, **others: Any
    ) -> None:
        numbering = {"batch": batch, "seed": seed, "first_game": first_game}
        racers = [Seeker(SEEN) for _ in range(agents)]
        super().__init__(
            walled(6, 6), [Empty(), Wall(), Ember()], racers, max_turns=40, **others, **numbering
        )


@pytest.mark.parametrize("turns", ["in-order", "one-by-one", "at-once"])
def test_a_world_that_ends_by_its_rules_keeps_the_contract(turns: str) -> None:
    check_game(Race, steps=60, turns=turns)


def test_a_world_ends_when_all_agents_have_finished() -> None:
    game = Race()
    draw(game, "######\n#A...#\n#....#\n#..A.#\n#....#\n######")
    for actions in ([2, 2], [2, 3]):
        assert not game.step(actions).done.any()
    game.step([2, 2])
    step = game.step([2, 2])
    assert step.terminated.tolist() == [True]
    assert game.rows().episode.tolist() == [1, 1]


def test_one_by_one_changes_entities_only_where_a_turn_ends() -> None:
    """Two worlds of one batch in different parts of their turns."""
    game = Race(batch=2, turns="one-by-one")
    game._mover[:] = [0, 1]
    ember = game.world.place([0, 1], 4, 4)
    game.world.remove(game.world.agents.ravel())
    game.world.agents[...] = game.world.place([[0], [1]], 2, [[2, 3], [2, 3]])
    for agent in game.agents:
        game.world.add(agent, game.world.agents[:, agent.seat])
    game.world.add(Ember, ember)
    game.step([0, 0])
    assert game.world.observe(ember).tolist() == [game.world.number(Ember), 0]
    assert game.rows().seat.tolist() == [1, 0]


class Other(Agent):
    kind = "other"


class Bird(Agent):
    layer = 1


@pytest.mark.parametrize(
    ("layout", "agents", "options", "message"),
    [
        (walled(4, 4), [], {}, "race needs at least one agent"),
        (["...", "...."], [Seeker(SEEN)], {}, r"rows of one length.*\[3, 4\]"),
        ([], [Seeker(SEEN)], {}, "rows of one length"),
        (["##"], [Seeker(SEEN)], {}, "0 free cells, which is no room for 1 agents"),
        (walled(4, 4), [Seeker(SEEN)], {"turns": "random"}, "turns of race must be one of in-order"),
        (walled(4, 4), [Seeker(SEEN)], {"max_turns": 0}, "max_turns must be a whole number"),
        (walled(4, 4), [Seeker(OneHotObservationSpec(4))], {}, "radius 4 is wider than the world"),
        (
            walled(4, 4),
            [Seeker(SEEN), Other(OneHotObservationSpec(2))],
            {},
            "must have the same observation",
        ),
        (walled(4, 4), [Seeker(SEEN), Other(SEEN, ActionSpec(("stay",)))], {}, "the same actions"),
        (walled(4, 4), [Seeker(SEEN), Bird(SEEN)], {}, "must be in one layer"),
    ],
)
def test_impossible_worlds_are_refused(
    layout: list[str], agents: list[Agent], options: dict[str, Any], message: str
) -> None:
    class Own(Environment):
        name = "race"

    with pytest.raises(ConfigError, match=message):
        Own(layout, [Empty(), Wall()], agents, **options)


@pytest.mark.parametrize("names", [(), ("up", "up")])
def test_actions_have_distinct_names(names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="one or more distinct names"):
        ActionSpec(names)


def test_a_radius_is_not_negative() -> None:
    with pytest.raises(ConfigError, match="radius of a view must be 0 or more"):
        OneHotObservationSpec(-1)


def test_an_agent_sees_what_its_rows_show() -> None:
    game = make_game("treasurehunt", batch=3, spawn=0.2)
    assert isinstance(game, Environment)
    for _ in range(4):
        game.step(game.random_actions())
    seen = game.observe().reshape(3, 2, 5, 5, 5)
    for agent in game.agents:
        np.testing.assert_array_equal(agent.pov(game.world), seen[:, agent.seat])


@pytest.mark.parametrize(
    ("part", "number"),
    [
        ("episode", -1), ("ply", 100), ("returns", np.inf), ("grid", 99), ("agents", 0), ("agents", 10**9),
        ("resting", -1), ("mover", 7),
    ],
)  # fmt: skip
def test_impossible_states_are_refused(part: str, number: float) -> None:
    """A whole state with a checksum that fits, but with a number that cannot be."""
    game = make_game("treasurehunt", batch=2)
    assert isinstance(game, Environment)
    before = game.save()
    body = bytearray(unwrap(before, game._digest, "treasurehunt"))
    at = struct.calcsize("<QQI")
    for name, array in game._kept.items():
        if name == part:
            body[at : at + array.itemsize] = np.array(number, array.dtype).tobytes()
        at += array.nbytes
    with pytest.raises(SavedStateError):
        game.load(wrap(game._digest, bytes(body)))
    assert game.save() == before


@pytest.mark.parametrize(
    "options", [{}, {"vision": None}, {"observation": "rgb"}, {"observation": "ascii"}], ids=str
)
def test_damaged_rows_are_refused(options: dict[str, Any]) -> None:
    game = make_game("treasurehunt", batch=2, **options)
    packed = game.pack()
    packed[2, 7] = 6
    with pytest.raises(GameError, match="row 2 of the packed rows is no possible row of treasurehunt"):
        game.unpack(packed)


def test_pictures_of_finished_worlds_are_kept_when_asked_for() -> None:
    game = make_game("treasurehunt", max_turns=2, spawn=0.5)
    assert isinstance(game, Environment)
    game.keep_last_positions()
    game.step([0, 0])
    game.step([0, 0])
    assert game.last_text() != game.text()
    assert any(letter in game.last_text() for letter in "gfb")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "own_world.py"), run_name="__main__")
    assert "Agents at random pick for" in capsys.readouterr().out


SIMULTANEOUS = (
    "treasurehunt", "tag", "cleanup", "stag-hunt", "prisoners-dilemma", "hawk-dove", "bach-stravinsky",
)  # fmt: skip


def test_all_worlds_have_names() -> None:
    assert set(SIMULTANEOUS) <= set(registered_games())


@pytest.mark.parametrize("name", SIMULTANEOUS)
def test_pettingzoos_test_of_parallel_games_passes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pettingzoo.test import parallel_api_test

        parallel_api_test(to_pettingzoo_parallel(name, max_cycles=20), num_cycles=60)


def test_cycles_of_pettingzoo_are_turns() -> None:
    env = to_pettingzoo_parallel("treasurehunt", max_cycles=3)
    env.reset(seed=1)
    for turn in range(3):
        truncated = env.step(dict.fromkeys(env.agents, 0))[3]
        assert all(truncated.values()) == (turn == 2)


def test_moves_have_offsets() -> None:
    assert MOVES.offsets(10).tolist() == [-10, 10, -1, 1, 0]
