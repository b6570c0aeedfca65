"""The parts of the kit: places, entities, chance, views and conflicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import ConfigError, GameError
from keisei.games.randomness import BatchRandom, Stream, keyed_word
from keisei.games.worlds import (
    AsciiObservationSpec,
    Empty,
    Entity,
    OneHotObservationSpec,
    RGBObservationSpec,
    Wall,
    World,
)
from keisei.games.worlds.conflicts import resolve
from keisei.games.worlds.entities import Colour
from keisei.games.worlds.picture import world_svg
from keisei.games.worlds.world import _gaps


class Stone(Entity):
    letter = "s"


class Cloud(Entity):
    layer, letter, passable, colour = 1, "c", True, (1, 2, 3)
    value = 4.0


class Coin(Entity):
    letter, passable, value = "$", True, 2.5


def world_of(batch: int = 3, margin: int = 1) -> World:
    world = World(4, 5, [Empty(), Wall(), Stone(), Coin(), Cloud()], batch=batch, agents=2, margin=margin)
    world.random = BatchRandom(7, np.arange(batch), 0)
    world.random.move_to(0, Stream.CHANCE)
    world.clear(np.arange(batch))
    return world


@pytest.mark.parametrize("margin", [1, 3])
def test_places_are_numbers_of_cells(margin: int) -> None:
    world = world_of(margin=margin)
    assert world.cells.shape == (3, 4, 5, 2)
    place = world.place(2, 1, 3)
    assert [int(part) for part in world.coordinates(place)] == [2, 1, 3]
    world.add(Stone, place)
    assert world.cells[2, 1, 3].tolist() == [2, 0]
    assert world.entities("stone").tolist() == [int(place)]
    assert world.count(Stone).tolist() == [0, 0, 1]
    below, right = world.coordinates(place + world.span), world.coordinates(place + 1)
    assert (int(below[1]), int(right[2])) == (2, 4)


def test_entities_are_added_moved_and_removed() -> None:
    world = world_of()
    here, there = world.place([0, 1], 0, 0), world.place([0, 1], 3, 4)
    world.add(Coin(), here)
    world.add("cloud", here)
    assert world.value(here).tolist() == [6.5, 6.5]
    assert world.is_free(here).all()
    world.move(here, there)
    assert world.observe(here).tolist() == [0, 0]
    assert world.observe(there).tolist() == [3, 3]
    assert world.observe(here, 1).tolist() == [4, 4]
    world.remove(there[:1])
    assert world.observe(there).tolist() == [0, 3]
    world.add(Stone, there)
    assert not world.is_free(there).any()


def test_beyond_the_edge_are_walls() -> None:
    world = world_of()
    corner = world.place(1, 0, 0)
    assert world.observe(np.array([corner - 1, corner - world.span])).tolist() == [1, 1]
    assert world.count(Wall).tolist() == [0, 0, 0]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="no kind 'gem'; its kinds are empty, wall, stone"):
        world_of().add("gem", np.array([0]))


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([Empty(), Wall(), Stone(), Stone()], "stone comes twice"),
        ([Empty()], "2 to 127 kinds"),
        ([Empty()] * 200, "empty comes twice"),
    ],
)
def test_impossible_kinds_are_refused(kinds: list[Entity], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        World(3, 3, kinds)


def test_a_letter_is_one_character() -> None:
    class Odd(Entity):
        letter = "ab"

    with pytest.raises(ConfigError, match="letter of odd must be one ASCII character"):
        Odd()


def test_a_layout_of_unknown_letters_is_refused() -> None:
    with pytest.raises(ConfigError, match="row 1 of the layout has '!'"):
        world_of().build(["....."] + ["..!.."] * 3)


# Chance ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [0.0, 0.01, 0.2, 0.7, 1.0])
def test_sampling_takes_each_entity_with_its_probability(probability: float) -> None:
    world = world_of(batch=2000)
    stones = world.everywhere(np.arange(2000), world.interior[::2]).ravel()
    world.add(Stone, stones)
    taken = world.sample(Stone, probability)
    assert np.isin(taken, stones).all()
    assert len(np.unique(taken)) == len(taken)
    assert len(taken) / len(stones) == pytest.approx(probability, abs=0.012)
    _, row, column = world.coordinates(taken)
    counts = np.bincount(row * 5 + column, minlength=20)[::2] / 2000
    assert np.abs(counts - probability).max() < 0.06  # all cells alike


@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_a_probability_lies_between_0_and_1(probability: float) -> None:
    with pytest.raises(ConfigError, match=f"sample got {probability} for stone"):
        world_of().sample(Stone, probability)


def test_sampling_by_gaps_is_what_the_page_says() -> None:
    """Word after word, with the distances that the page on treasure hunt names."""
    world = world_of(batch=4)
    cells, probability = 20, 0.15
    expected = []
    for game in range(4):
        at = -1
        for number in range(100):
            uniform = (keyed_word(7, game, 0, 0, Stream.CHANCE, (1 << 32) + number) >> 11) * 2.0**-53
            at += 1 + sum(uniform < (1 - probability) ** k for k in range(1, cells + 1))
            if at >= cells:
                break
            expected.append(int(world.place(game, *divmod(at, 5))))
    assert world.sample(Empty, probability).tolist() == expected


@pytest.mark.parametrize("probability", [0.005, 0.3, 0.9])
def test_gaps_do_not_depend_on_how_logarithms_are_rounded(probability: float) -> None:
    """A number that equals a chance does not pass over that many cells; the number just below it does."""
    chances = np.cumprod(np.full(60, 1.0 - probability))
    cells = np.arange(1, 61)
    assert _gaps(chances, probability, 60).tolist() == (cells - 1).tolist()
    assert _gaps(np.nextafter(chances, 0), probability, 60).tolist() == cells.tolist()
    assert _gaps(np.array([0.0, 1 - 2.0**-53]), probability, 60).tolist() == [60, 0]


def test_draws_follow_the_game_and_not_the_batch() -> None:
    together, alone = world_of(batch=3), world_of(batch=1)
    alone.random = BatchRandom(7, np.array([2]), 0)
    alone.random.move_to(0, Stream.CHANCE)
    for probability in (0.9, 0.05, 0.4):
        mine = together.sample(Empty, probability)
        mine = mine[mine >= 2 * together.size] - 2 * together.size
        assert mine.tolist() == alone.sample(Empty, probability).tolist()
        assert together.uniform()[2] == alone.uniform()[0]


def test_one_entity_is_drawn_in_each_world_that_has_any() -> None:
    world = world_of(batch=600)
    cells = np.array([0, 7, 13])
    world.add(Stone, world.everywhere(np.arange(1, 600), world.interior[cells]))
    games, places = world.draw(Stone)
    assert games.tolist() == list(range(1, 600))
    assert (world.observe(places) == 2).all()
    _, row, column = world.coordinates(places)
    assert (np.bincount(row * 5 + column, minlength=20)[cells] > 150).all()


def test_things_are_scattered_over_free_cells() -> None:
    world = world_of()
    world.add(Stone, world.everywhere(np.arange(3), world.interior[:10]))
    games = np.array([0, 2])
    places = world.scatter(games, world.interior, 10)
    assert world.is_free(places).all()
    assert [len(set(row)) for row in places.tolist()] == [10, 10]
    assert (world.coordinates(places)[0] == games[:, None]).all()
    with pytest.raises(GameError, match="no room for 11 more things"):
        world.scatter(games, world.interior, 11)


# Views -----------------------------------------------------------------------------------------------


def seen_world() -> World:
    world = world_of(batch=1, margin=2)
    world.add(Stone, world.place(0, 0, 1))
    world.add(Coin, world.place(0, 1, 0))
    world.add(Cloud, world.place(0, 1, [0, 2]))
    return world


def test_one_hot_planes_around_an_agent() -> None:
    world, spec = seen_world(), OneHotObservationSpec(radius=1)
    views = spec.views(world, world.place(0, [0], [0]))
    out = np.empty((1, *spec.shape(world)), np.uint8)
    spec.encode(world, views, out)
    wall, stone, coin, cloud = out[0].tolist()
    assert wall == [[1, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert stone == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert coin == cloud == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_one_hot_planes_of_the_whole_world_mark_the_agent() -> None:
    world, spec = seen_world(), OneHotObservationSpec()
    out = np.empty((1, *spec.shape(world)), np.uint8)
    spec.encode(world, spec.views(world, world.place(0, [1], [0])), out)
    assert out.shape == (1, 5, 4, 5)
    assert np.argwhere(out[0, -1]).tolist() == [[1, 0]]
    assert np.argwhere(out[0, 2]).tolist() == [[1, 0]]  # the coin is still seen
    assert np.argwhere(out[0, 3]).tolist() == [[1, 0], [1, 2]]


def test_letters_show_what_is_on_top() -> None:
    world = seen_world()
    near, whole = AsciiObservationSpec(radius=1), AsciiObservationSpec()
    for spec, expected in ((near, ["###", "#.s", "#c."]), (whole, ["@s...", "c.c..", ".....", "....."])):
        out = np.empty((1, *spec.shape(world)), np.uint8)
        spec.encode(world, spec.views(world, world.place(0, [0], [0])), out)
        assert ["".join(map(chr, row)) for row in out[0].tolist()] == expected


def test_colours_show_what_is_on_top() -> None:
    world, spec = seen_world(), RGBObservationSpec(radius=1)
    out = np.empty((1, *spec.shape(world)), np.uint8)
    spec.encode(world, spec.views(world, world.place(0, [0], [0])), out)
    assert out[0, :, 2, 1].tolist() == [1, 2, 3]
    assert out[0, :, 0, 0].tolist() == list(Wall.colour)
    assert spec.scale(world) == (1 / 255,) * 3


def test_an_svg_escapes_letters() -> None:
    class Arrow(Entity):
        letter, is_agent = "<", True
        colour: Colour = (255, 0, 16)

    world = World(1, 1, [Empty(), Wall(), Arrow()])
    world.add(Arrow, world.place(0, 0, 0))
    assert ">&lt;</text>" in world_svg(world)
    assert 'fill="#ff0010"' in world_svg(world)


# Conflicts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "wanted", "moves", "contested"),
    [
        ([1, 3], [2, 2], [0, 0], [1, 1]),  # a contested cell: nobody moves
        ([1, 2], [2, 1], [0, 0], [0, 0]),  # two never change places
        ([1, 2], [2, 3], [1, 1], [0, 0]),  # one follows the other
        ([1, 2], [2, 2], [0, 0], [0, 0]),  # the other stays
        ([1, 2, 3], [2, 3, 1], [1, 1, 1], [0, 0, 0]),  # a circle of three
        ([1, 2, 3, 5], [2, 3, 4, 4], [0, 0, 0, 0], [0, 0, 1, 1]),  # who follows a blocked one is blocked
        ([1, 2, 4, 6], [2, 3, 5, 5], [1, 1, 0, 0], [0, 0, 1, 1]),
        ([1, 2, 3], [2, 1, 2], [0, 0, 0], [1, 0, 1]),  # contested, and a change of places
    ],
)
def test_conflicts_of_agents_that_move_at_once(
    here: list[int], wanted: list[int], moves: list[int], contested: list[int]
) -> None:
    at, to = np.array([here]), np.array([wanted])
    found = resolve(at, to, at != to)
    assert [part.astype(int).tolist() for part in found] == [[moves], [contested]]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12, unique=True), st.data()
)
def test_nobody_meets_after_moves_at_once(cells: list[tuple[int, int]], data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.sampled_from([0, 1, -1, 8, -8]), min_size=len(cells), max_size=len(cells)))
    at = np.array([[8 * (row + 1) + column + 1 for row, column in cells]])
    to = at + np.array(steps)
    moves, _ = resolve(at, to, at != to)
    after = np.where(moves, to, at)[0].tolist()
    assert len(set(after)) == len(after)
    swapped = {(int(a), int(b)) for a, b, m in zip(at[0], to[0], moves[0], strict=True) if m}
    assert not any((b, a) in swapped for a, b in swapped)
