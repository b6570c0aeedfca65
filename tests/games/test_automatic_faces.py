"""Games without a face are shown by what their batches tell."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from keisei.games import make_game
from keisei.games.automatic_faces import AutomaticFace, board_in, live_face
from keisei.games.contract import Game

WORLD: dict[str, Any] = {"height": 5, "width": 6, "agents": 2, "max_turns": 3}


def svg_of(face: AutomaticFace, game: Game, view: int = 0) -> str:
    return face.svg(game.pack()[0].tobytes(), int(game.rows().seat[0]), view=view)


# Boards in texts.


@pytest.mark.parametrize(
    ("text", "rows", "caption"),
    [
        ("x.o\n...\n..x", ("x.o", "...", "..x"), ""),
        ("x . o\n. . .\n. . x", ("x.o", "...", "..x"), ""),
        ("turn 3\n....\n....\n####\nblack to move", ("....", "....", "####"), "turn 3\nblack to move"),
    ],
)
def test_a_board_is_found_in_a_text(text: str, rows: tuple[str, ...], caption: str) -> None:
    board = board_in(text)
    assert board is not None
    assert board.rows == tuple(map(tuple, rows))
    assert board.caption == caption


@pytest.mark.parametrize(
    "text", ["", "7 stones are left", "a b\nc d", "one two\nthree four\nfive six", "ab\ncd\nef", "abc\n\nabc"]
)
def test_other_texts_are_no_board(text: str) -> None:
    assert board_in(text) is None


# Squares.


def test_squares_are_chosen_where_actions_are_squares() -> None:
    game = make_game("openspiel:tic_tac_toe")
    face = live_face(game)
    assert isinstance(face, AutomaticFace)
    game.step(np.array([4]))
    choices = face.choices(b"", 1, np.flatnonzero(game.legal()[0]).tolist())
    assert [choice.places for choice in choices] == [(f"s{at}",) for at in (0, 1, 2, 3, 5, 6, 7, 8)]
    names = {one.get("data-place") for one in ElementTree.fromstring(svg_of(face, game)).iter()}
    assert {place for choice in choices for place in choice.places} <= names


@pytest.mark.parametrize("name", ["openspiel:connect_four", "openspiel:kuhn_poker", "hawk-dove"])
def test_other_actions_are_a_list_of_names(name: str) -> None:
    game = make_game(name)
    face = live_face(game)
    choices = face.choices(b"", 0, np.flatnonzero(game.legal()[0]).tolist())
    assert all(choice.places == () and choice.label == choice.name for choice in choices)
    assert len({choice.name for choice in choices}) == len(choices)


# Worlds.


def test_a_world_marks_the_seat_that_looks_and_explains_its_letters() -> None:
    game = make_game("treasurehunt", seed=2, **WORLD)
    face = live_face(game)
    assert isinstance(face, AutomaticFace)
    assert face.seats == ("Agent 1", "Agent 2")
    assert [choice.name for choice in face.choices(b"", 0, [0, 1, 2, 3])] == ["up", "down", "left", "right"]
    assert {"gem", "bone", "food"} < {one["name"] for one in face.legend(0)}
    pictures = [svg_of(face, game, view) for view in (0, 1)]
    assert all(picture.count('class="you"') == 1 for picture in pictures)
    assert pictures[0] != pictures[1]
    assert "<style" not in pictures[0]
    row, column = game.standing(1)  # type: ignore[attr-defined]
    assert game.text().splitlines()[row][column] == "A"  # type: ignore[attr-defined]


def test_agents_of_a_world_have_colours_of_their_own() -> None:
    game = make_game("stag-hunt", seed=2, agents=3)
    face = live_face(game)
    assert isinstance(face, AutomaticFace)
    named = {one["name"]: one["colour"] for one in face.legend(0)}
    colours = [named[seat] for seat in face.seats]
    assert len(set(colours)) == 3
    drawn = svg_of(face, game, 0)
    assert all(drawn.count(f'fill="{colour}"') == 1 for colour in colours)


def _marks(svg: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if one.get("class") == "mark"]


def test_the_last_position_is_shown_when_the_game_is_over() -> None:
    """The batch has begun its next game by then."""
    game = make_game("treasurehunt", seed=2, **WORLD)
    face = live_face(game)
    assert isinstance(face, AutomaticFace)
    for _ in range(3):
        game.step(np.zeros(2, np.int32))
    last, now = board_in(game.last_text()), board_in(game.text())  # type: ignore[attr-defined]
    assert last is not None
    assert now is not None
    assert last.rows != now.rows
    picture = svg_of(face, game)
    drawn = [(float(one.get("x", 0)), float(one.get("y", 0))) for one in _marks(picture)]
    assert drawn == [
        (44 * column + 22, 44 * row + 29)
        for row, symbols in enumerate(last.rows)
        for column, symbol in enumerate(symbols)
        if symbol not in ".#"
    ]
    assert 'class="you"' not in picture


def test_a_game_with_a_face_keeps_it() -> None:
    game = make_game("shogi")
    assert live_face(game) is game.spec.face


def test_who_draws_no_text_shows_what_a_seat_sees() -> None:
    game = make_game("dummy")
    face = live_face(game)
    assert isinstance(face, AutomaticFace)
    ElementTree.fromstring(svg_of(face, game))
