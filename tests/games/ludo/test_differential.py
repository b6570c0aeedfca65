"""The batch against ``LudoBoard``, ply by ply: the same dice, the same positions, the same rewards."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ludo_for_tests import RULES, legal, observation, rewards, victim, walk

from keisei import make_game
from keisei.errors import GameError
from keisei.games.contract import Step
from keisei.games.ludo import LudoBoard
from keisei.games.ludo.game import LudoGame

SEED, FIRST = 11, 40
SHAPED: list[dict[str, Any]] = [
    {"progress": 0.5, "leaving": 0.25, "safety": 1.5, "home": 2.0, "captures": 0.3, "discount": 0.97},
    {"progress": 1.0, "captures": 0.5, "zero_sum": False, "keep_standing": True, "players": 3},
    {"home": 1.0, "safety": 0.5, "captures": 0.1, "players": 4, "discount": 0.9, "max_plies": 120},
    {"leaving": 1.0, "progress": 0.5, "keep_standing": True, "max_plies": 60, "blocks": True},
]


class Twins:
    """A batch, and a board for each of its games."""

    def __init__(self, batch: int, options: dict[str, Any]) -> None:
        self.options = options
        self.rules = {
            name: options[name] for name in ("players", "blocks", "capture_rolls") if name in options
        }
        game = make_game("ludo", batch=batch, seed=SEED, first_game=FIRST, **options)
        assert isinstance(game, LudoGame)
        self.game = game
        self.episodes = [0] * batch
        self.boards = [self.fresh(index) for index in range(batch)]
        self.finished = 0

    def fresh(self, index: int) -> LudoBoard:
        return LudoBoard(SEED, game=FIRST + index, episode=self.episodes[index], **self.rules)

    def assert_same(self) -> None:
        rows, packed, mask = self.game.rows(), self.game.pack(), self.game.legal()
        for index, board in enumerate(self.boards):
            assert (rows.seat[index], rows.ply[index], rows.episode[index]) == (
                board.to_move,
                board.ply,
                self.episodes[index],
            )
            assert np.flatnonzero(mask[index]).tolist() == board.legal_actions()
            assert_same_position(LudoBoard.from_packed(packed[index].tobytes(), **self.rules), board)

    def assert_same_observations(self) -> None:
        for seen, board in zip(self.game.observe(), self.boards, strict=True):
            np.testing.assert_array_equal(seen, observation(board))

    def play(self, choose: Callable[[list[int]], int]) -> None:
        """One step of the batch and of every board."""
        actions = [choose(board.legal_actions()) for board in self.boards]
        before = [(board.tokens, board.to_move) for board in self.boards]
        captured = [captures(board, action) for board, action in zip(self.boards, actions, strict=True)]
        step = self.game.step(np.array(actions))
        for index, board in enumerate(self.boards):
            board.play(actions[index])
            expected = rewards(*before[index], captured[index], board, self.options)
            np.testing.assert_allclose(step.rewards[index], expected, atol=1e-6)
            self.assert_same_end(step, index)

    def assert_same_end(self, step: Step, index: int) -> None:
        board = self.boards[index]
        limit = self.options.get("max_plies")
        is_cut = board.winner is None and board.ply == limit
        assert (step.terminated[index], step.truncated[index]) == (board.winner is not None, is_cut)
        name = "all home" if board.winner is not None else "max_plies" if is_cut else "unfinished"
        assert self.game.spec.endings[step.ending[index]] == name
        assert step.plies[index] == board.ply
        assert step.scores[index].argmax() == (board.winner or 0)
        if not step.done[index]:
            return
        (row,) = np.flatnonzero(step.final.game == index)
        packed = step.final.packed[row]
        assert step.final.seat[row] == board.to_move
        assert_same_position(LudoBoard.from_packed(packed.tobytes(), **self.rules), board)
        seen, mask = self.game.unpack(packed[None])
        np.testing.assert_array_equal(seen[0], observation(board))
        assert np.flatnonzero(mask[0]).tolist() == board.legal_actions()
        self.episodes[index] += 1
        self.boards[index] = self.fresh(index)
        self.finished += 1


def captures(board: LudoBoard, action: int) -> bool:
    position = walk(board.tokens, board.to_move, action % 4, action // 4 + 1, board.blocks)
    assert position is not None
    return victim(board.tokens, board.to_move, position) is not None


def assert_same_position(one: LudoBoard, other: LudoBoard) -> None:
    assert (one.tokens, one.dice, one.to_move) == (other.tokens, other.dice, other.to_move)


@pytest.mark.parametrize("options", [*RULES, *SHAPED], ids=str)
def test_the_batch_equals_the_board_ply_by_ply(options: dict[str, Any]) -> None:
    rng = random.Random(3)
    twins = Twins(2, options)
    for number in range(700):
        twins.assert_same()
        if number % 20 == 0:
            twins.assert_same_observations()
        twins.play(rng.choice)
    assert twins.finished >= 2


@settings(max_examples=25)
@given(
    st.sampled_from([*RULES, *SHAPED]),
    st.lists(st.integers(0, 23), min_size=1, max_size=24),
    st.integers(20, 150),
)
def test_the_batch_equals_the_board_with_chosen_actions(
    options: dict[str, Any], picks: list[int], plies: int
) -> None:
    """The picks repeat, so habits such as always the first token are played too."""
    twins = Twins(1, options)
    for ply in range(plies):
        twins.assert_same()
        twins.play(lambda actions, ply=ply: actions[picks[ply % len(picks)] % len(actions)])  # type: ignore[misc]
    twins.assert_same_observations()


def four_of(position: st.SearchStrategy[int]) -> st.SearchStrategy[list[int]]:
    return st.lists(position, min_size=4, max_size=4)


def at_position(game: LudoGame, packed: list[int]) -> None:
    """Puts a batch of one game into a position that may take very long to play to."""
    assert game._core.load(struct.pack("<QQIII", SEED, FIRST, 1, 0, 0) + bytes(packed))


POSITION = st.one_of(st.just(-1), st.integers(0, 55), st.integers(44, 56))


CROWDED = st.integers(0, 12).map(lambda square: 13 * (square % 4) + 3 + square // 4)
"""Few squares, so that tokens of several players meet, and blocks and captures are frequent."""


def packed_of(tokens: list[list[int]], dice: list[int], seat: int) -> list[int]:
    return [seat, *(dice.count(value) for value in range(1, 7)), *(p + 1 for four in tokens for p in four)]


@given(st.integers(2, 4), st.data())
def test_any_packed_position_is_expanded_as_the_rules_say(players: int, data: Any) -> None:
    tokens = data.draw(st.lists(four_of(POSITION), min_size=players, max_size=players))
    dice = data.draw(st.lists(st.integers(1, 6), min_size=0, max_size=6))
    seat, blocks = data.draw(st.integers(0, players - 1)), data.draw(st.booleans())
    row = np.array([packed_of(tokens, dice, seat)], np.uint8)
    game = make_game("ludo", players=players, blocks=blocks)
    won = [all(position == 56 for position in four) for four in tokens]
    if (any(won) and won != [other == seat for other in range(players)]) or (
        not any(won) and not legal(tokens, dice, seat, blocks)
    ):
        with pytest.raises(GameError, match="row 0 of the packed rows is no possible Ludo position"):
            game.unpack(row)
        return
    board = LudoBoard.from_position(tokens, dice, seat, blocks=blocks)
    seen, mask = game.unpack(row)
    np.testing.assert_array_equal(seen[0], observation(board))
    assert np.flatnonzero(mask[0]).tolist() == board.legal_actions()


@st.composite
def rows_of_bytes(draw: st.DrawFn, players: int) -> bytes:
    """Rows at and beyond every limit: any bytes, and possible rows with a few of their bytes replaced."""
    size = 7 + 4 * players
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(min_size=size, max_size=size))
    home = st.just([56] * 4)
    tokens = draw(st.lists(st.one_of(home, four_of(POSITION)), min_size=players, max_size=players))
    dice = draw(st.lists(st.integers(0, 9), min_size=6, max_size=6))
    row = bytearray([draw(st.integers(0, players - 1)), *dice, *(p + 1 for four in tokens for p in four)])
    for place in draw(st.lists(st.integers(0, size - 1), max_size=2)):
        row[place] = draw(st.one_of(st.integers(0, 255), st.integers(0, 60)))
    return bytes(row)


@settings(max_examples=1000)
@given(st.sampled_from(RULES), st.data())
def test_the_board_takes_exactly_the_rows_that_the_core_takes(rules: dict[str, Any], data: Any) -> None:
    packed = data.draw(rows_of_bytes(rules.get("players", 2)))
    row = np.frombuffer(packed, np.uint8)[None]
    game = make_game("ludo", **rules)
    try:
        _, mask = game.unpack(row)
    except GameError:
        with pytest.raises(GameError, match="the packed row is no possible Ludo position: "):
            LudoBoard.from_packed(packed, **rules)
    else:
        assert LudoBoard.from_packed(packed, **rules).legal_actions() == np.flatnonzero(mask[0]).tolist()


@settings(max_examples=300)
@given(st.sampled_from(RULES), st.data())
def test_any_position_is_played_as_on_the_board(rules: dict[str, Any], data: Any) -> None:
    players = rules.get("players", 2)
    places = st.lists(four_of(st.one_of(CROWDED, POSITION)), min_size=players, max_size=players)
    tokens = data.draw(places.filter(lambda drawn: [56] * 4 not in drawn))
    dice = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    seat = data.draw(st.integers(0, players - 1))
    actions = legal(tokens, dice, seat, rules.get("blocks", False))
    assume(actions)
    action = data.draw(st.sampled_from(actions))
    assert_same_play(tokens, dice, seat, action, rules)


def assert_same_play(
    tokens: list[list[int]], dice: list[int], seat: int, action: int, rules: dict[str, Any]
) -> LudoBoard:
    game = make_game("ludo", **rules)
    assert isinstance(game, LudoGame)
    at_position(game, packed_of(tokens, dice, seat))
    board = LudoBoard.from_position(tokens, dice, seat, seed=SEED, game=FIRST, **rules)
    step = game.step(np.array([action]))
    board.play(action)
    packed = step.final.packed[0] if step.done[0] else game.pack()[0]
    assert_same_position(LudoBoard.from_packed(packed.tobytes(), **rules), board)
    assert step.terminated[0] == (board.winner is not None)
    return board


@pytest.mark.parametrize(("players", "seat"), [(3, 0), (3, 2), (4, 0), (4, 1), (4, 3)])
def test_among_several_enemies_both_take_the_next_one(players: int, seat: int) -> None:
    """All others stand on square 30 of the loop, and the seat to move one before it."""
    squares = [29 if other == seat else 30 for other in range(players)]
    tokens = [[-1, (square - 13 * other) % 52, -1, -1] for other, square in enumerate(squares)]
    board = assert_same_play(tokens, [1], seat, 1, {"players": players})
    lost = [other for other in range(players) if board.tokens[other] == (-1,) * 4]
    assert lost == [(seat + 1) % players]
