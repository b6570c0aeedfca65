"""Moves that people type in games without a notation of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from keisei.errors import NotationError
from keisei.games import make_game
from keisei.games.contract import ObservationSpec
from keisei.games.naming import move_examples, move_names, read_move
from keisei.games.single import Outcome, SingleGame


class Points(SingleGame):
    """Five points, of which two have names that differ by case, and two have the same name."""

    name, num_actions, observation = "points", 5, ObservationSpec((1,), np.dtype(np.uint8))

    def reset(self, rng: Any) -> None:
        self.to_move = 0

    def legal(self, seat: int) -> list[int]:
        return [0, 1, 2, 3, 4]

    def play(self, action: int, rng: Any) -> None:
        self.to_move = 1

    def observe(self, seat: int) -> Any:
        return np.zeros(1, np.uint8)

    def outcome(self) -> Outcome | None:
        return None

    def move_name(self, action: int) -> str:
        return ("c3", "D4", "d4", "pass", "pass")[action]


@pytest.fixture
def names() -> dict[str, int]:
    return move_names(make_game(Points), [0, 1, 2, 3, 4])


def test_actions_of_one_name_are_told_apart(names: dict[str, int]) -> None:
    assert names == {"c3": 0, "D4": 1, "d4": 2, "pass (3)": 3, "pass (4)": 4}


@pytest.mark.parametrize(
    ("text", "actions"), [("c3", [0]), ("C3", [0]), ("d4", [2]), ("D4", [1]), ("PASS (4)", [4])]
)
def test_case_makes_no_difference_where_it_need_not(
    names: dict[str, int], text: str, actions: list[int]
) -> None:
    assert read_move(make_game(Points), text, names) == actions


def test_names_that_differ_only_by_case_are_asked_for() -> None:
    assert read_move(make_game(Points), "éA", {"éa": 1, "Éa": 2}) == [1, 2]


def test_what_is_no_move_is_said(names: dict[str, int]) -> None:
    with pytest.raises(NotationError, match="'e5' is no legal move here"):
        read_move(make_game(Points), "e5", names)


def test_the_example_of_such_a_game_is_its_name() -> None:
    assert move_examples(make_game(Points), 0) == ["c3"]
