"""The batch of Ludo games: the contract, options, rewards, saving and bad input."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from ludo_for_tests import RULES

from keisei import check_game, make_game
from keisei.errors import ActionError, ConfigError, GameError, IllegalActionError, SavedStateError
from keisei.games.ludo import LudoBoard
from keisei.games.ludo.game import LudoGame
from keisei.games.offers import HasHeuristic, LooksAhead
from keisei.games.randomness import Stream, keyed_word
from keisei.native import load_core, usable_builds

SHAPING = {"progress": 1.0, "leaving": 0.5, "safety": 0.25, "home": 2.0, "captures": 0.5}


@pytest.mark.parametrize(
    "options",
    [
        *RULES,
        {"max_plies": 30},
        {"players": 4, **SHAPING, "discount": 0.99},
        {**SHAPING, "keep_standing": True, "max_plies": 1},
        {"players": 3, **SHAPING, "zero_sum": False},
    ],
    ids=str,
)
def test_ludo_keeps_the_contract(options: dict[str, Any]) -> None:
    check_game("ludo", steps=60, **options)


def test_the_spec_tells_what_ludo_is() -> None:
    game = make_game("ludo")
    spec = game.spec
    assert (spec.name, spec.seats, spec.num_actions, spec.max_plies) == ("ludo", 2, 24, None)
    assert (spec.zero_sum, spec.simultaneous, spec.chance) == (True, False, True)
    assert (isinstance(game, HasHeuristic), isinstance(game, LooksAhead)) == (True, False)
    assert (spec.observation.shape, spec.packed_bytes) == ((430,), 15)
    four = make_game("ludo", players=4, max_plies=9).spec
    assert (four.seats, four.zero_sum, four.observation.shape, four.packed_bytes) == (4, True, (550,), 23)
    assert four.max_plies == 9
    assert len(spec.observation.scale) == 430


@pytest.mark.parametrize(
    ("options", "zero_sum"),
    [({}, True), ({"zero_sum": False}, True), (SHAPING, True), ({**SHAPING, "zero_sum": False}, False)],
)
def test_rewards_add_up_to_nothing_where_it_is_asked(options: dict[str, Any], zero_sum: bool) -> None:
    game = make_game("ludo", batch=32, seed=2, players=4, **options)
    assert game.spec.zero_sum == zero_sum
    largest = 0.0
    for _ in range(300):
        largest = max(largest, float(np.abs(game.step(game.random_actions()).rewards.sum(axis=1)).max()))
    assert (largest < 1e-5) == zero_sum


def test_a_standing_that_is_taken_back_adds_nothing_to_a_whole_game() -> None:
    game = make_game("ludo", batch=16, seed=2, progress=1.0, leaving=0.5, safety=0.25, home=2.0)
    total, games = np.zeros((16, 2)), 0
    for _ in range(900):
        step = game.step(game.random_actions())
        total += step.rewards
        np.testing.assert_allclose(total[step.done], step.scores[step.done], atol=1e-4)
        total[step.done] = 0
        games += int(step.done.sum())
    assert games > 20


def test_a_kept_standing_pays_for_what_was_reached() -> None:
    game = make_game("ludo", batch=8, seed=2, progress=1.0, keep_standing=True, zero_sum=False)
    total, games = np.zeros((8, 2)), 0
    for _ in range(900):
        step = game.step(game.random_actions())
        total += step.rewards
        for index in np.flatnonzero(step.done):
            winner = int(step.scores[index].argmax())
            assert total[index, winner] == pytest.approx(
                2.0, abs=1e-4
            )  # 1 for winning, 1 for all tokens home
            assert -1 < total[index, 1 - winner] < 0
            total[index] = 0
            games += 1
    assert games > 8


def test_random_actions_are_the_documented_function_of_the_key() -> None:
    game = make_game("ludo", batch=3, seed=77, first_game=1000)
    for _ in range(50):
        rows, legal, actions = game.rows(), game.legal(), game.random_actions()
        for row in range(3):
            key = (77, 1000 + row, rows.episode[row], rows.ply[row], Stream.RANDOM_ACTION, rows.seat[row])
            choices = np.flatnonzero(legal[row])
            assert actions[row] == choices[(keyed_word(*map(int, key)) >> 32) * len(choices) >> 32]
        game.step(actions)


def test_dice_are_fair() -> None:
    game = make_game("ludo", batch=4000, seed=3)
    dice = game.pack()[:, 1:7].sum(axis=0)
    # A first hand has one other die beside its one or two sixes.
    others = dice[:5]
    assert others.sum() == 4000
    assert ((others - 800) ** 2 / 800).sum() < 18.5  # once in a thousand seeds it is more
    assert 1.1 < dice[5] / 4000 < 1.2


# Saving.


def played(steps: int, **options: Any) -> LudoGame:
    game = make_game("ludo", **{"batch": 5, "seed": 9, **options})
    assert isinstance(game, LudoGame)
    for _ in range(steps):
        game.step(game.random_actions())
    return game


def test_a_saved_state_is_small_and_goes_on_with_its_own_seed() -> None:
    game, other = played(700), played(10, seed=1, first_game=33)
    assert len(game.save()) == 50 + 5 * (8 + 15)
    other.load(game.save())
    for _ in range(400):
        actions = game.random_actions()
        np.testing.assert_array_equal(actions, other.random_actions())
        np.testing.assert_array_equal(game.step(actions).rewards, other.step(actions).rewards)
    assert game.save() == other.save()


def test_states_of_other_games_are_refused() -> None:
    game = played(20)
    before = game.save()
    for other, message in [
        (played(20, max_plies=500).save(), "with other options"),
        (played(20, players=4).save(), "made by another game"),
        (played(20, batch=6).save(), "does not fit a batch of 5 Ludo games"),
        (make_game("tictactoe", batch=5).save(), "made by another game"),
    ]:
        with pytest.raises(SavedStateError, match=message):
            game.load(other)
        assert game.save() == before


def test_damage_behind_a_good_checksum_is_found_by_the_rules() -> None:
    game = played(40)
    native = game._core
    body = native.save()
    rng = random.Random(0)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(body)
        damaged[rng.randrange(16, len(damaged))] ^= 1 << rng.randrange(8)
        cut = bytes(damaged[: rng.randrange(len(damaged))]) if rng.random() < 0.2 else bytes(damaged)
        if native.load(cut):
            assert native.save() == cut  # another state, just as possible
            assert native.load(body)
        else:
            refused += 1
            assert native.save() == body
    assert 500 < refused < 2000


def test_a_state_at_the_ply_limit_is_refused() -> None:
    cut, free = played(20, max_plies=21)._core, played(20)._core
    assert cut.load(free.save())  # the rules of both are the same
    game = played(21)._core
    before = cut.save()
    assert not cut.load(game.save())
    assert cut.save() == before


@pytest.mark.parametrize(
    "change",
    [{0: 2}, {1: 200}, {7: 58}, {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}],
    ids=["seat", "dice", "token", "no dice"],
)
def test_damaged_packed_rows_are_refused_with_their_number(change: dict[int, int]) -> None:
    game = played(30)
    packed = game.pack()
    for byte, value in change.items():
        packed[3, byte] = value
    with pytest.raises(GameError, match="row 3 of the packed rows is no possible Ludo position"):
        game.unpack(packed)
    with pytest.raises(GameError, match=r"unpack takes uint8 of shape \(rows, 15\)"):
        game.unpack(packed[:, :14])


# Players, pictures and bad input.


def test_an_illegal_action_is_named_with_its_row_and_reason() -> None:
    game = played(7)
    actions = game.random_actions()
    before = game.save()
    actions[3] = np.flatnonzero(~game.legal()[3])[0]
    reason = game.board(3).why_illegal(int(actions[3]))
    with pytest.raises(IllegalActionError) as caught:
        game.step(actions)
    assert str(caught.value) == (
        f"action {actions[3]} in row 3 is not legal: {reason}; take one that legal() marks"
    )
    actions[3] = 24
    with pytest.raises(ActionError, match="action 24 in row 3 is outside 0 … 23"):
        game.step(actions)
    assert game.save() == before


def test_any_integers_will_do() -> None:
    game, other = played(3), played(3)
    actions = game.random_actions()
    for dtype in (np.int8, np.uint16, np.int64):
        game.step(actions.astype(dtype))
        other.step(actions)
        actions = game.random_actions()
    assert game.save() == other.save()


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            {"players": 5, "progress": -1, "blocking": True},
            ["3 problems in the options of ludo", "players = 5", "progress = -1", "did you mean blocks?"],
        ),
        ({"players": 1}, ["players = 1: must be a whole number from 2 to 4"]),
        ({"max_plies": 0, "discount": 0}, ["max_plies = 0", "discount = 0"]),
        ({"blocks": "perhaps", "captures": 1000}, ["blocks = 'perhaps'", "captures = 1000"]),
    ],
)
def test_wrong_options_are_all_told_at_once(options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_game("ludo", **options)
    for message in messages:
        assert message in str(caught.value)


def test_a_game_is_shown_as_a_board() -> None:
    game = played(25, players=4, blocks=True)
    board = game.board(2)
    assert isinstance(board, LudoBoard)
    assert board.blocks
    assert board.legal_actions() == np.flatnonzero(game.legal()[2]).tolist()
    assert game.text(2) == str(board)


def test_both_builds_play_the_same() -> None:
    def play(build: str) -> bytes:
        core: Any = load_core(build)
        batch = core.LudoBatch(16, 5, 0, 4, True, True, 0, 1.0, 0.5, 0.25, 2.0, 0.5, 0.99, True, False)
        arrays = [np.empty((16, 4), np.float32), *(np.empty(16, np.bool_) for _ in range(2))]
        told = []
        for _ in range(400):
            seen, actions = np.empty((16, 550), np.uint8), np.empty(16, np.int32)
            batch.observe(seen)
            batch.heuristic_actions(np.arange(16, dtype=np.int32), np.arange(16, dtype=np.uint64), actions)
            batch.step(
                actions, *arrays, np.empty(16, np.uint8), np.empty((16, 4), np.float32), np.empty(16, np.int32),
                np.empty(16, np.int32), np.empty(16, np.int32), np.empty((16, 23), np.uint8),
            )  # fmt: skip
            told.append(seen.tobytes() + arrays[0].tobytes())
        return b"".join(told) + batch.save()

    assert len({play(build) for build in usable_builds()}) == 1
