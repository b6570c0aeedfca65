"""Iterated matrix games."""

from __future__ import annotations

import numpy as np
import pytest

from keisei import check_game, make_game
from keisei.errors import ConfigError, GameError
from keisei.games.pictures import picture
from keisei.games.worlds.matrix_games import BachStravinsky, HawkDove, MatrixGame, PrisonersDilemma

GAMES = ("prisoners-dilemma", "hawk-dove", "bach-stravinsky")


@pytest.mark.parametrize("name", GAMES)
def test_they_keep_the_contract(name: str) -> None:
    check_game(name, steps=30, max_turns=12)


@pytest.mark.parametrize("game", [PrisonersDilemma, HawkDove, BachStravinsky])
def test_payoffs_and_memories(game: type[MatrixGame]) -> None:
    batch = make_game(game.name, batch=4)
    assert batch.observe().tolist() == [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1]] * 4
    step = batch.step([0, 0, 0, 1, 1, 0, 1, 1])
    assert [tuple(pair) for pair in step.rewards.tolist()] == [pair for row in game.payoffs for pair in row]
    own = np.array([0, 0, 0, 1, 1, 0, 1, 1])
    other = own.reshape(4, 2)[:, ::-1].ravel()
    seen = batch.observe()
    assert seen[:, :5].argmax(axis=1).tolist() == (2 * own + other).tolist()
    assert seen[:, 5].tolist() == [0, 1] * 4


def test_defecting_dominates_and_mutual_cooperation_is_better() -> None:
    cooperate, defect = np.array(PrisonersDilemma.payoffs)[:, :, 0]
    assert (defect > cooperate).all()
    assert cooperate[0] > defect[1]


def test_a_game_is_cut_off_and_its_score_is_the_sum() -> None:
    game = make_game("prisoners-dilemma", max_turns=3)
    for _ in range(2):
        assert not game.step([1, 0]).done.any()
    step = game.step([1, 1])
    assert (step.truncated.all(), step.terminated.any()) == (True, False)
    assert step.scores.tolist() == [[11, 1]]
    assert len(step.final.game) == 2


def test_a_text_tells_the_round_before() -> None:
    game = make_game("hawk-dove")
    assert picture(game) == "hawk-dove: the first round"
    game.step([0, 1])
    assert picture(game) == "hawk-dove: seat 1 chose hawk, seat 2 dove"


@pytest.mark.parametrize("row", [[5, 0], [0, 2]])
def test_damaged_rows_are_refused(row: list[int]) -> None:
    with pytest.raises(GameError, match="row 1 of the packed rows is no possible row of hawk-dove"):
        make_game("hawk-dove").unpack(np.array([[4, 1], row], np.uint8))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="rounds"):
        make_game("hawk-dove", rounds=3)
