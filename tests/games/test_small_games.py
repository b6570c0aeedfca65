"""Tic-tac-toe and connect four against published counts and a slow, obvious reading of the rules."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest

from keisei.errors import ConfigError
from keisei.games import SingleGame, check_game, make_game
from keisei.games.connect_four import ConnectFour
from keisei.games.contract import Array
from keisei.games.randomness import KeyedRandom
from keisei.games.tictactoe import TicTacToe


def positions_by_ply(game: SingleGame, plies: int) -> tuple[list[int], Counter[tuple[float, ...]]]:
    """How many different positions there are after each ply, and how the finished ones were scored."""
    game.reset(KeyedRandom(0, 0, 0))
    level = {game.observe(0).tobytes(): game}
    counts, scores = [1], Counter[tuple[float, ...]]()
    for ply in range(plies):
        following: dict[bytes, SingleGame] = {}
        for position in level.values():
            for action in position.legal(position.to_move):
                child = copy.deepcopy(position)
                child.play(action, KeyedRandom(0, 0, ply))
                following[child.observe(0).tobytes()] = child
        counts.append(len(following))
        outcomes = {key: position.outcome() for key, position in following.items()}
        scores.update(outcome.scores for outcome in outcomes.values() if outcome is not None)
        level = {key: position for key, position in following.items() if outcomes[key] is None}
    return counts, scores


def test_tictactoe_has_its_5478_positions_and_958_endings() -> None:
    counts, scores = positions_by_ply(TicTacToe(), 9)
    assert sum(counts) == 5478
    assert scores == {(1.0, -1.0): 626, (-1.0, 1.0): 316, (0.0, 0.0): 16}


def test_connect_four_has_the_known_number_of_positions() -> None:
    counts, _ = positions_by_ply(ConnectFour(), 5)
    assert counts == [1, 7, 49, 238, 1120, 4263]


def has_line(pieces: Array, length: int) -> bool:
    rows, columns = pieces.shape
    return any(
        all(
            0 <= row + step * down < rows
            and 0 <= column + step * right < columns
            and pieces[row + step * down, column + step * right]
            for step in range(length)
        )
        for row in range(rows)
        for column in range(columns)
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    )


@pytest.mark.parametrize(("rows", "columns", "connect"), [(6, 7, 4), (4, 5, 3), (8, 3, 4)])
def test_connect_four_ends_where_a_line_stands(rows: int, columns: int, connect: int) -> None:
    game = make_game("connect-four", batch=20, seed=3, rows=rows, columns=columns, connect=connect)
    endings = Counter[str]()
    for _ in range(60):
        step = game.step(game.random_actions())
        observations, _ = game.unpack(step.final.packed)
        for row, index in enumerate(step.final.game):
            ending = game.spec.endings[step.ending[index]]
            endings[ending] += 1
            # The seat that would move next looks, so the last mover's pieces are in plane 1.
            assert has_line(observations[row, 1], connect) == (ending == "line")
            assert not has_line(observations[row, 0], connect)
            assert step.scores[index, 1 - step.final.seat[row]] == (1 if ending == "line" else 0)
        assert not any(has_line(plane, connect) for planes in game.observe() for plane in planes)
    assert endings["line"] > 10


def test_pieces_fall_to_the_bottom_and_full_columns_close() -> None:
    game = make_game("connect-four")
    for _ in range(6):
        game.step(np.array([3]))
    board = game.observe()[0]
    assert board[0, :, 3].tolist() == [
        0,
        1,
        0,
        1,
        0,
        1,
    ]  # seat 0 moves next: its pieces are lowest and then every other
    assert board[1, :, 3].tolist() == [1, 0, 1, 0, 1, 0]
    assert game.legal()[0].tolist() == [True, True, True, False, True, True, True]


def test_a_full_board_is_a_draw() -> None:
    game = make_game("tictactoe")
    for square in (0, 1, 2, 4, 3, 5, 7, 6):
        game.step(np.array([square]))
    step = game.step(np.array([8]))
    assert game.spec.endings[step.ending[0]] == "full board"
    assert step.terminated[0]
    assert not step.rewards.any()


@pytest.mark.parametrize("name", ["tictactoe", "connect-four"])
@pytest.mark.parametrize("options", [{}, {"max_plies": 4}])
def test_small_games_keep_the_contract(name: str, options: dict[str, int]) -> None:
    check_game(name, steps=60, **options)


def test_a_line_longer_than_the_board_is_refused() -> None:
    with pytest.raises(ConfigError, match="connect must be a whole number in 2 … 7; got 8"):
        make_game("connect-four", connect=8)
