"""Faces show every position, and offer every legal action once, at places that the picture has."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from keisei.games import make_game
from keisei.games.contract import Game
from keisei.games.faces import PlainFace, face_of
from keisei.games.shogi import Board

GAMES = [
    ("shogi", {}),
    ("ludo", {}),
    ("ludo", {"players": 4, "blocks": True}),
    ("connect-four", {}),
    ("connect-four", {"rows": 4, "columns": 5}),
    ("tictactoe", {}),
]


def places_of(svg: str) -> set[str]:
    return {
        element.attrib["data-place"]
        for element in ElementTree.fromstring(svg).iter()
        if "data-place" in element.attrib
    }


def now(game: Game) -> tuple[bytes, int, list[int]]:
    return game.pack()[0].tobytes(), int(game.rows().seat[0]), np.flatnonzero(game.legal()[0]).tolist()


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_all_legal_actions_can_be_chosen_on_the_board(name: str, options: dict[str, int]) -> None:
    game = make_game(name, seed=3, **options)
    face = face_of(game.spec)
    assert len(face.seats) == game.spec.seats
    last = None
    for _ in range(60):
        packed, seat, legal = now(game)
        choices = face.choices(packed, seat, legal)
        assert [choice.action for choice in choices] == legal
        assert len({(choice.places, choice.label) for choice in choices}) == len(choices)
        assert len({choice.name for choice in choices}) == len(choices)
        for view in range(game.spec.seats):
            places = places_of(face.svg(packed, seat, view=view, last=last))
            assert {place for choice in choices for place in choice.places} <= places
        action = int(game.random_actions()[0])
        last = next(choice for choice in choices if choice.action == action)
        step = game.step(np.array([action]))
        if step.done[0]:
            final = step.final.packed[0].tobytes()
            ElementTree.fromstring(face.svg(final, int(step.final.seat[0]), last=last))
            last = None


@pytest.mark.parametrize("name", ["shogi", "ludo", "connect-four", "tictactoe"])
def test_a_picture_brings_no_style_and_no_script(name: str) -> None:
    game = make_game(name)
    packed, seat, _ = now(game)
    svg = face_of(game.spec).svg(packed, seat)
    assert "<style" not in svg
    assert "<script" not in svg


def test_white_sits_at_the_bottom_where_white_looks() -> None:
    game = make_game("shogi")
    packed, seat, _ = now(game)
    face = face_of(game.spec)
    assert "rotate(180 " not in face.svg(packed, seat, view=0).split("<g", 1)[1].split(">", 1)[0]
    assert "rotate(180 " in face.svg(packed, seat, view=1)
    assert face.text(packed, seat) == Board().sfen()


def test_a_promotion_is_a_choice_of_its_own() -> None:
    game = make_game("shogi", start="4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    packed, seat, legal = now(game)
    choices = face_of(game.spec).choices(packed, seat, legal)
    same = [choice for choice in choices if choice.places == ("5c", "5b")]
    assert {(choice.name, choice.label) for choice in same} == {
        ("5c5b", "Do not promote"),
        ("5c5b+", "Promote"),
    }
    assert ("black-P", "4d") in {choice.places for choice in choices}


def test_the_pieces_of_connect_four_are_those_of_their_seats() -> None:
    """The planes are swapped for seat 1; the picture is not."""
    game = make_game("connect-four")
    face = face_of(game.spec)
    game.step(np.array([3]))
    packed, seat, _ = now(game)
    svg = face.svg(packed, seat)
    assert seat == 1
    assert svg.count('class="first"') == 1
    assert svg.count('class="second"') == 0


def test_a_game_without_a_face_gets_a_plain_one() -> None:
    game = make_game("dummy")
    face = face_of(game.spec)
    assert isinstance(face, PlainFace)
    packed, seat, legal = now(game)
    ElementTree.fromstring(face.svg(packed, seat))
    assert face.choices(packed, seat, legal[:2])[1].label == "2"


def test_planes_are_drawn_as_a_grid() -> None:
    game = make_game("tictactoe")
    game.step(np.array([4]))
    packed, seat, _ = now(game)
    svg = PlainFace(game.spec).svg(packed, seat)
    assert svg.count('class="cell"') == 9
    assert svg.count('class="n1"') == 1, "the mark of the other seat, in the middle"
