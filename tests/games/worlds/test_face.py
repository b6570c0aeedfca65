"""The face of packed rows: what an agent sees, itself in its own colour, and a legend."""

from __future__ import annotations

import re

import pytest

from keisei.games.faces import face_of_rows
from keisei.games.registry import make_game
from keisei.games.worlds.colours import agent_colour, hexadecimal


@pytest.mark.parametrize(("vision", "cells"), [(2, 25), (None, 9 * 12)])
def test_a_row_is_drawn_with_the_agent_itself_and_a_legend(vision: int | None, cells: int) -> None:
    game = make_game("tag", height=9, width=12, vision=vision, agents=3, seed=5)
    face, rows = face_of_rows(game), game.pack()
    for seat in range(3):
        drawn = face.svg(rows[seat].tobytes(), seat)
        assert drawn.count('class="cell"') == cells + 3, "and the keys of ground, wall and who is it"
        (own,) = re.findall(r'class="own".*fill="(#\w+)"', drawn)
        assert own == hexadecimal(agent_colour(seat))
        assert f"agent {seat + 1}, who sees this" in drawn
        assert set(re.findall(r'class="legend"[^>]*>([\w ]+)<', drawn)) >= {"empty", "wall", "it", "runner"}


def test_actions_have_their_names() -> None:
    game = make_game("cleanup")
    choices = face_of_rows(game).choices(game.pack()[0].tobytes(), 0, [0, 6])
    assert [choice.name for choice in choices] == ["up", "zap"]


def test_games_with_a_face_of_their_own_keep_it() -> None:
    game = make_game("shogi")
    assert face_of_rows(game) is game.spec.face
