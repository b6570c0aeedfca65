"""The rules of Ludo, one case for each, and random games against a slow reading of the rules."""

from __future__ import annotations

import doctest
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ludo_for_tests import RULES, is_safe, legal, place, victim, walk

from keisei.errors import ConfigError, GameError, IllegalActionError
from keisei.games.ludo import HOME, YARD, LudoBoard, action_of, split_action
from keisei.games.ludo import board as board_module

OUT = (YARD,) * 4
AWAY = (1, YARD, YARD, YARD)
"""An enemy that can play any die."""


def seed_that_rolls(*wanted: int, **setup: Any) -> LudoBoard:
    """A board whose next rolls begin with these values, whatever is played."""
    for seed in range(100_000):
        board = LudoBoard.from_position(**setup, seed=seed)
        board._random.move_to(board.ply)
        if tuple(1 + board._random.integer(6) for _ in wanted) == wanted:
            return board
    raise AssertionError(f"no seed rolls {wanted}")


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(board_module).failed == 0


def test_a_game_begins_with_all_tokens_in_the_yard_and_a_six() -> None:
    for seed in range(40):
        board = LudoBoard(seed=seed)
        assert board.tokens == (OUT, OUT)
        assert (board.ply, board.winner) == (0, None)
        assert 6 in board.dice  # whoever had none has passed
        assert board.legal_actions() == [20, 21, 22, 23]
        assert board.dice == tuple(sorted(board.dice))


def test_the_first_turn_is_seat_0s_where_it_rolls_a_six() -> None:
    boards = [LudoBoard(seed=seed) for seed in range(400)]
    assert 0.45 < sum(board.to_move == 0 for board in boards) / 400 < 0.65  # it is 6 in 11
    assert {board.dice for board in boards} == {
        (value, *sixes) for value in range(1, 6) for sixes in ((6,), (6, 6))
    }


def test_an_action_is_a_die_and_a_token() -> None:
    assert [action_of(1, 0), action_of(1, 3), action_of(2, 0), action_of(6, 3)] == [0, 3, 4, 23]
    assert [split_action(action_of(value, token)) for value in range(1, 7) for token in range(4)] == [
        (value, token) for value in range(1, 7) for token in range(4)
    ]


def test_dice_in_hand_may_be_played_in_any_order() -> None:
    board = LudoBoard.from_position([(10, 20, YARD, YARD), AWAY], (6, 3))
    assert board.dice == (3, 6)
    assert board.legal_actions() == [8, 9, 20, 21, 22, 23]
    board.play(action_of(6, 2))
    assert (board.tokens[0], board.dice, board.to_move) == ((10, 20, 0, YARD), (3,), 0)
    assert board.legal_actions() == [8, 9, 10]
    board.play(action_of(3, 0))
    assert board.tokens[0] == (13, 20, 0, YARD)
    assert board.to_move == 1


def test_two_equal_dice_are_one_action_that_can_be_played_twice() -> None:
    board = LudoBoard.from_position([(10, HOME, HOME, HOME), AWAY], (6, 6, 1))
    assert board.legal_actions() == [0, 20]
    board.play(20)
    assert (board.dice, board.tokens[0][0], board.to_move) == ((1, 6), 16, 0)


def test_only_a_six_leaves_the_yard_and_it_leads_to_the_start() -> None:
    board = LudoBoard.from_position([(5, YARD, YARD, YARD), AWAY], (1, 5, 6))
    assert [action for action in board.legal_actions() if action % 4] == [21, 22, 23]
    board.play(21)
    assert board.tokens[0] == (5, 0, YARD, YARD)


def test_home_needs_the_exact_count() -> None:
    board = LudoBoard.from_position([(53, 52, 10, HOME), AWAY], (3, 4))
    assert board.legal_actions() == [8, 9, 10, 13, 14]


def test_a_token_at_home_stays_there() -> None:
    board = LudoBoard.from_position([(HOME, HOME, 3, 4), AWAY], (1,))
    assert board.legal_actions() == [2, 3]


def test_reaching_home_brings_a_roll_that_joins_the_dice_in_hand() -> None:
    setup = {"tokens": [(54, 10, 20, 30), AWAY], "dice": (2, 5)}
    board = seed_that_rolls(6, 3, **setup)
    board.play(action_of(2, 0))
    assert board.tokens[0] == (HOME, 10, 20, 30)
    assert (board.dice, board.to_move) == ((3, 5, 6), 0)


@pytest.mark.parametrize(("theirs", "mine", "value"), [(3, 26, 3), (30, 1, 3), (24, 47, 3), (50, 20, 4)])
def test_landing_on_an_enemy_captures_it_and_brings_a_roll(theirs: int, mine: int, value: int) -> None:
    """The other's p is seen as p + 26 up to 24, and as p - 26 from 26 on."""
    setup = {"tokens": [(mine, YARD, YARD, YARD), (theirs, 51, YARD, YARD)], "dice": (value,)}
    board = seed_that_rolls(4, **setup)
    board.play(action_of(value, 0))
    assert board.tokens == ((mine + value, YARD, YARD, YARD), (YARD, 51, YARD, YARD))
    assert (board.dice, board.to_move) == ((4,), 0)


def test_without_capture_rolls_a_capture_brings_none() -> None:
    board = LudoBoard.from_position([(26, 9, YARD, YARD), (3, 5, YARD, YARD)], (2, 3), capture_rolls=False)
    board.play(action_of(3, 0))
    assert board.tokens[1] == (YARD, 5, YARD, YARD)
    assert (board.dice, board.to_move) == ((2,), 0)
    board.play(action_of(2, 1))
    assert board.to_move == 1
    at_home = seed_that_rolls(
        4, tokens=[(54, 9, YARD, YARD), (3, 5, YARD, YARD)], dice=(2,), capture_rolls=False
    )
    at_home.play(action_of(2, 0))
    assert (at_home.dice, at_home.to_move) == ((4,), 0)  # home still does


def test_of_two_enemies_on_a_square_one_is_sent_back() -> None:
    board = LudoBoard.from_position([(26, YARD, YARD, YARD), (5, 3, 3, YARD)], (3,))
    board.play(action_of(3, 0))
    assert board.tokens == ((29, YARD, YARD, YARD), (5, YARD, 3, YARD))


@pytest.mark.parametrize("square", [8, 13, 21, 26, 34, 39, 47])
def test_nobody_is_captured_on_a_safe_square(square: int) -> None:
    theirs = (square + 26) % 52
    board = LudoBoard.from_position([(square - 1, YARD, YARD, YARD), (theirs, 51, YARD, YARD)], (1,))
    board.play(action_of(1, 0))
    assert board.tokens == ((square, YARD, YARD, YARD), (theirs, 51, YARD, YARD))
    assert board.to_move == 1


def test_nobody_is_captured_by_a_token_that_leaves_the_yard() -> None:
    board = LudoBoard.from_position([(YARD, 4, YARD, YARD), (26, 51, YARD, YARD)], (2, 6))
    board.play(action_of(6, 0))
    assert board.tokens[1] == (26, 51, YARD, YARD)


def test_what_is_not_shared_is_safe() -> None:
    """25 and the home columns: equal numbers there are different places."""
    board = LudoBoard.from_position([(24, 52, YARD, YARD), (51, 53, 25, YARD)], (1,))
    board.play(action_of(1, 0))
    assert board.tokens == ((25, 52, YARD, YARD), (51, 53, 25, YARD))
    column = LudoBoard.from_position([(52, 24, YARD, YARD), (53, 3, YARD, YARD)], (1,))
    column.play(action_of(1, 0))
    assert column.tokens[1] == (53, 3, YARD, YARD)


def test_the_other_is_seen_as_the_rules_say() -> None:
    for mine in range(51):
        for theirs in range(51):
            seen = theirs + 26 if theirs <= 24 else theirs - 26 if theirs >= 26 else None
            assert (place(0, mine, 2) == place(1, theirs, 2)) == (mine == seen)


def test_a_six_rolls_again() -> None:
    board = seed_that_rolls(6, 6, 5, tokens=[(10, YARD, YARD, YARD), (20, 30, 40, 45)], dice=(1,))
    board.play(0)
    assert (board.to_move, board.dice) == (1, (5, 6, 6))


def test_three_sixes_void_the_turn() -> None:
    setup = {"tokens": [(10, YARD, YARD, YARD), (20, 30, 40, 45)], "dice": (1,)}
    board = seed_that_rolls(6, 6, 6, 4, **setup)
    board.play(0)
    assert (board.to_move, board.dice) == (0, (4,))  # seat 1 rolled three sixes, and seat 0 rolled next
    assert board.tokens[1] == (20, 30, 40, 45)


def test_three_sixes_of_an_extra_roll_bring_nothing_and_the_dice_in_hand_stay() -> None:
    board = seed_that_rolls(6, 6, 6, tokens=[(54, 10, 20, 30), AWAY], dice=(2, 5))
    board.play(action_of(2, 0))
    assert (board.to_move, board.dice) == (0, (5,))


def test_three_sixes_of_an_extra_roll_end_the_turn_where_no_die_is_left() -> None:
    board = seed_that_rolls(6, 6, 6, 3, tokens=[(54, 10, 20, 30), AWAY], dice=(2,))
    board.play(action_of(2, 0))
    assert (board.to_move, board.dice) == (1, (3,))


def test_without_a_playable_die_the_turn_passes_by_itself() -> None:
    board = seed_that_rolls(4, 3, tokens=[(53, 50, HOME, HOME), AWAY], dice=(5, 6))
    board.play(action_of(6, 1))  # home; neither the 5 nor the 4 that it brings can be played
    assert board.tokens[0] == (53, HOME, HOME, HOME)
    assert (board.to_move, board.dice) == (1, (3,))


def test_a_single_legal_action_is_still_played() -> None:
    board = LudoBoard.from_position([(10, HOME, HOME, HOME), AWAY], (4,))
    assert board.legal_actions() == [12]
    board.play(12)
    assert board.tokens[0][0] == 14


def test_all_four_home_wins_and_the_dice_that_are_left_stay() -> None:
    board = LudoBoard.from_position([(54, HOME, HOME, HOME), AWAY], (2, 6))
    board.play(action_of(2, 0))
    assert (board.winner, board.to_move, board.dice) == (0, 0, (6,))
    assert board.legal_actions() == []
    with pytest.raises(IllegalActionError, match="action 20 is not legal: the game is over"):
        board.play(20)


# More players, and blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("players", "seat"), [(3, 0), (3, 2), (4, 1), (4, 3)])
def test_turns_go_round(players: int, seat: int) -> None:
    board = seed_that_rolls(3, tokens=[(1, 2, 3, 4)] * players, dice=(1,), to_move=seat)
    board.play(0)
    assert (board.to_move, board.dice) == ((seat + 1) % players, (3,))


def test_four_players_start_a_quarter_apart() -> None:
    board = LudoBoard.from_position([(14, YARD, YARD, YARD), (2, 9, YARD, YARD), OUT, OUT], (1,))
    board.play(0)  # seat 1 stands on its 2, which is seat 0's 15
    assert board.tokens[:2] == ((15, YARD, YARD, YARD), (YARD, 9, YARD, YARD))


def test_25_is_shared_with_a_third_player() -> None:
    board = LudoBoard.from_position([(24, YARD, YARD, YARD), (12, 1, YARD, YARD), OUT], (1,))
    board.play(0)
    assert board.tokens[1] == (YARD, 1, YARD, YARD)


def test_with_tokens_of_two_enemies_the_next_seat_loses_one() -> None:
    """Square 15 of the loop is 15, 2, 41 and 28, as the four count."""
    tokens = [(14, *OUT[1:]), OUT, (41, *OUT[1:]), (28, *OUT[1:])]
    board = LudoBoard.from_position(tokens, (1,))
    board.play(0)
    assert board.tokens == ((15, *OUT[1:]), OUT, OUT, (28, *OUT[1:]))


BLOCK = [(26, 1, YARD, YARD), (3, 3, 20, YARD)]
"""Seat 1 has two tokens on seat 0's 29."""


def test_a_block_lets_nobody_land_or_pass() -> None:
    board = LudoBoard.from_position(BLOCK, (1, 2, 3, 4, 5, 6), blocks=True)
    assert [action // 4 + 1 for action in board.legal_actions() if action % 4 == 0] == [1, 2]
    with pytest.raises(IllegalActionError, match="a block is in the way"):
        board.play(action_of(4, 0))
    free = LudoBoard.from_position(BLOCK, (1, 2, 3, 4, 5, 6))
    assert [action // 4 + 1 for action in free.legal_actions() if action % 4 == 0] == [1, 2, 3, 4, 5, 6]


def test_ones_own_block_is_no_hindrance() -> None:
    board = LudoBoard.from_position([(5, 7, 7, YARD), AWAY], (2, 3), blocks=True)
    assert {4, 8} <= set(board.legal_actions())


def test_a_block_on_the_start_keeps_tokens_in_the_yard() -> None:
    tokens = [(YARD, 1, YARD, YARD), (26, 26, YARD, YARD)]
    assert LudoBoard.from_position(tokens, (6,), blocks=True).legal_actions() == [21]
    assert LudoBoard.from_position(tokens, (6,)).legal_actions() == [20, 21, 22, 23]


def test_tokens_of_two_players_are_no_block() -> None:
    tokens = [(14, YARD, YARD, YARD), (2, YARD, YARD, YARD), (41, YARD, YARD, YARD), OUT]
    board = LudoBoard.from_position(tokens, (1, 2), blocks=True)
    assert board.legal_actions() == [0, 4]


def test_a_block_in_a_home_column_hinders_nobody() -> None:
    board = LudoBoard.from_position([(50, YARD, YARD, YARD), (51, 51, 1, YARD)], (3,), blocks=True)
    assert board.legal_actions() == [8]


# Random games, and wrong input -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_random_games_follow_the_written_rules(rules: dict[str, Any]) -> None:
    rng = random.Random(5)
    captures = 0
    for seed in range(4):
        board = LudoBoard(seed=seed, **rules)
        while board.winner is None:
            captures += assert_one_ply(board, rng)
    assert captures > 5


def assert_one_ply(board: LudoBoard, rng: random.Random) -> bool:
    """Plays a ply, and checks all that follows from the rules without knowing the dice."""
    seat, tokens, dice = board.to_move, board.tokens, list(board.dice)
    actions = board.legal_actions()
    assert actions == legal(tokens, dice, seat, board.blocks)
    action = rng.choice(actions)
    value, token = action // 4 + 1, action % 4
    position = walk(tokens, seat, token, value, board.blocks)
    assert position is not None
    lost = victim(tokens, seat, position)
    board.play(action)
    expected = [list(positions) for positions in tokens]
    expected[seat][token] = position
    if lost is not None:
        expected[lost[0]][lost[1]] = YARD
    assert board.tokens == tuple(map(tuple, expected))
    dice.remove(value)
    if board.winner is not None:
        assert (board.winner, board.dice, position) == (seat, tuple(dice), HOME)
    else:
        rolls = position == HOME or (lost is not None and board.capture_rolls)
        assert_dice(board, seat, dice, rolls)
    return lost is not None


def assert_dice(board: LudoBoard, seat: int, kept: list[int], rolls: bool) -> None:
    """Checks the dice in hand after a ply, as far as they can be known."""
    assert board.legal_actions()
    if legal(board.tokens, kept, seat, board.blocks):
        assert board.to_move == seat
        new = Counter(board.dice) - Counter(kept)
        assert new.total() == len(board.dice) - len(kept)
        assert is_roll(new) if rolls else not new
    elif not rolls:
        assert is_roll(Counter(board.dice))  # of whoever is to move now


def is_roll(dice: Counter[int]) -> bool:
    """Whether these are the dice of one roll; three sixes bring none."""
    return dice[6] <= 2 and dice.total() in (0, dice[6] + 1)


@given(st.lists(st.lists(st.integers(-1, 55), min_size=4, max_size=4), min_size=2, max_size=4), st.data())
def test_any_position_has_the_legal_actions_of_the_written_rules(tokens: list[list[int]], data: Any) -> None:
    dice = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    seat, blocks = data.draw(st.integers(0, len(tokens) - 1)), data.draw(st.booleans())
    expected = legal(tokens, dice, seat, blocks)
    if not expected:
        with pytest.raises(ConfigError, match="its turn has passed"):
            LudoBoard.from_position(tokens, dice, seat, blocks=blocks)
        return
    board = LudoBoard.from_position(tokens, dice, seat, blocks=blocks)
    assert board.legal_actions() == expected
    for action in range(24):
        assert (board.why_illegal(action) is None) == (action in expected)


def test_between_two_25_is_safe_and_among_more_it_is_not() -> None:
    assert [position for position in range(51) if is_safe([OUT] * 2, 0, position)] == [
        0, 8, 13, 21, 25, 26, 34, 39, 47,
    ]  # fmt: skip
    for players in (3, 4):
        assert not is_safe([OUT] * players, 0, 25)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (0, "the dice in hand are 5 6"),
        (17, "a token leaves the yard with a six"),
        (18, "the token is at home"),
        (23, "home is 3 squares away, and needs the exact count"),
        (24, "actions are 0 … 23"),
        (-1, "actions are 0 … 23"),
    ],
)
def test_an_illegal_action_is_refused_with_its_reason(action: int, message: str) -> None:
    board = LudoBoard.from_position([(3, YARD, HOME, 53), AWAY], (5, 6))
    before = repr(board)
    with pytest.raises(IllegalActionError, match=f"action {action} is not legal: {message}"):
        board.play(action)
    assert repr(board) == before


@pytest.mark.parametrize(
    ("tokens", "dice", "to_move", "message"),
    [
        ([(1, 2, 3), AWAY], (1,), 0, "has 4 tokens"),
        ([(1, 2, 3, 57), AWAY], (1,), 0, "position of token 3 of seat 0 must be .* in -1 … 56; got 57"),
        ([AWAY, (1, 2.5, 3, 4)], (1,), 0, "position of token 1 of seat 1 must be a whole number .* got 2.5"),
        ([AWAY, AWAY], (7,), 0, "value of a die must be a whole number in 1 … 6; got 7"),
        ([AWAY, AWAY], (1.5,), 0, "value of a die must be a whole number in 1 … 6; got 1.5"),
        ([AWAY, AWAY], (1, "six"), 0, "value of a die must be a whole number in 1 … 6; got 'six'"),
        ([AWAY, AWAY], (1,) * 36, 0, "at most 35 dice, got 36; put fewer into the hand"),
        ([AWAY, AWAY], (1,), 2, "to_move must be a whole number in 0 … 1"),
        ([AWAY, AWAY], (1,), 0.0, "to_move must be a whole number in 0 … 1; got 0.0"),
        ([AWAY, (HOME,) * 4], (1,), 0, "seat 1 has won, so it stays the one to move; got to_move 0, give 1"),
        ([(HOME,) * 4] * 2, (1,), 0, "seats 0 and 1 have all tokens at home; leave at least one"),
        ([OUT, AWAY], (1,), 0, "its turn has passed"),
        ([AWAY], (1,), 0, "players must be a whole number in 2 … 4; got 1"),
    ],
)
def test_impossible_positions_are_refused(tokens: Any, dice: Any, to_move: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LudoBoard.from_position(tokens, dice, to_move)


def test_a_hand_may_have_all_the_dice_that_a_turn_can_bring() -> None:
    assert len(LudoBoard.from_position([AWAY, AWAY], (1,) * 35).dice) == 35


def test_numbers_of_numpy_become_plain_ones() -> None:
    board = LudoBoard.from_position(np.array([AWAY, AWAY]), np.array([2, 1]), np.int64(1))
    assert repr(board) == f"<LudoBoard ({AWAY}, {AWAY}), dice (1, 2), seat 1 to move>"


def test_packed_rows_of_another_length_are_refused() -> None:
    with pytest.raises(GameError, match="15, 19 or 23 bytes"):
        LudoBoard.from_packed(bytes(16))


def test_a_packed_row_of_no_possible_position_is_refused_with_the_reason() -> None:
    row = bytes([0, 60, 0, 0, 0, 0, 0, *(2, 0, 0, 0), *(2, 0, 0, 0)])
    with pytest.raises(GameError, match=r"no possible Ludo position: a turn brings at most 35 dice, got 60;"):
        LudoBoard.from_packed(row)
