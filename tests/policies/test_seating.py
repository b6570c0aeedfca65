"""Who sits where: shares that hold, games that keep their opponent, and merged decisions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import keisei
from keisei.config import parse_settings
from keisei.errors import ConfigError, PolicyError
from keisei.games.contract import Array, BoolArray, FloatArray, IntArray, Rows
from keisei.policies import (
    Decision,
    NeuralPolicy,
    RandomPolicy,
    Seating,
    Situation,
    build_network,
    play,
    seated_policies,
)
from keisei.policies.contract import no_values
from keisei.policies.seating import CHANCE, FIRST_MEMBER, Assignment, Lineup


class Fixed:
    """Always plays one action, and signs its decisions with it."""

    def __init__(self, action: int) -> None:
        self.action = action

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        count = len(situation.rows) if selected is None else len(selected)
        signature = np.full(count, self.action, np.float32)
        return Decision(signature.astype(np.int32), -signature, 10 * signature)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return no_values(len(observations))


def mix(*shares: float) -> Seating:
    return parse_settings(Seating, {"opponents": [{"policy": "random", "share": share} for share in shares]})


def rows_of(games: int, seats: int, episode: int = 0, ply: int = 0) -> Rows:
    """All seats of all games, as in a game in which everybody acts at once."""
    game, seat = np.divmod(np.arange(games * seats, dtype=np.int32), np.int32(seats))
    return Rows(game, seat, np.full(len(game), episode, np.int32), np.full(len(game), ply, np.int32))


def test_by_default_the_learner_sits_in_every_seat() -> None:
    assignment = Seating().assign(rows_of(10, 3), seed=1, first_game=0, seats=3)
    assert assignment.dtype == np.int16
    assert assignment.tolist() == [0] * 30


@pytest.mark.parametrize("seats", [2, 4])
def test_shares_hold_and_the_learner_has_one_seat_against_opponents(seats: int) -> None:
    games = 8000
    assignment = mix(0.25, 0.5).assign(rows_of(games, seats), seed=3, first_game=0, seats=seats)
    table = assignment.reshape(games, seats)
    opponent = table.max(axis=1)
    shares = np.bincount(opponent, minlength=3) / games
    np.testing.assert_allclose(shares, [0.25, 0.25, 0.5], atol=0.02)
    mixed = table[opponent > 0]
    assert ((mixed == 0).sum(axis=1) == 1).all()  # and one opponent has all the other seats
    assert ((mixed == 0) | (mixed == opponent[opponent > 0, None])).all()
    learner_seats = np.bincount((mixed == 0).argmax(axis=1), minlength=seats) / len(mixed)
    np.testing.assert_allclose(learner_seats, 1 / seats, atol=0.02)


@pytest.mark.parametrize("shares", [(1.0,), (0.1,) * 10, (1 / 3,) * 3])
def test_shares_that_add_up_to_one_leave_no_self_play(shares: tuple[float, ...]) -> None:
    assignment = mix(*shares).assign(rows_of(4000, 2), seed=1, first_game=0, seats=2).reshape(-1, 2)
    assert (assignment.max(axis=1) > 0).all()
    assert set(assignment.ravel().tolist()) == set(range(len(shares) + 1))


def test_a_game_keeps_its_opponent_and_the_next_one_may_have_another() -> None:
    seating = mix(0.5, 0.3)
    first = seating.assign(rows_of(200, 2, episode=4, ply=0), 5, 0, 2)
    later = seating.assign(rows_of(200, 2, episode=4, ply=77), 5, 0, 2)
    np.testing.assert_array_equal(first, later)
    following = seating.assign(rows_of(200, 2, episode=5), 5, 0, 2)
    assert (first.reshape(-1, 2).max(1) != following.reshape(-1, 2).max(1)).any()
    assert (first != seating.assign(rows_of(200, 2, episode=4), 6, 0, 2)).any()


def test_the_learner_changes_seats_with_every_game() -> None:
    seats_taken = [
        mix(1.0).assign(rows_of(6, 3, episode=episode), 1, 0, 3).reshape(6, 3).argmin(axis=1)
        for episode in range(3)
    ]
    assert all(sorted(seats) == [0, 1, 2] for seats in np.transpose(seats_taken).tolist())


@pytest.mark.parametrize("opponents", [(), (0.5, 0.3)])
def test_chance_plays_openings_of_every_length_alike(opponents: tuple[float, ...]) -> None:
    seating = mix(*opponents).model_copy(update={"opening_plies": 3})
    games = 8000
    plies = np.array([seating.assign(rows_of(games, 1, 2, ply), 5, 0, 1) == CHANCE for ply in range(5)])
    assert (plies[:-1] >= plies[1:]).all()  # an opening has no gap
    np.testing.assert_allclose(np.bincount(plies.sum(axis=0)) / games, 0.25, atol=0.02)
    following = seating.assign(rows_of(games, 1, 3, 1), 5, 0, 1) == CHANCE
    assert (following != plies[1]).any()
    whole = mix(*opponents).assign(rows_of(games, 1, 2, 4), 5, 0, 1)
    np.testing.assert_array_equal(seating.assign(rows_of(games, 1, 2, 4), 5, 0, 1), whole)


def members_of(seating: Seating, games: int, lineup: Lineup, episode: int = 0, seed: int = 5) -> Assignment:
    return seating.draw_members(np.arange(games), np.full(games, episode), seed, lineup)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("opponents", [(), (0.2, 0.3)])
def test_a_member_of_the_league_meets_its_share_of_the_games_that_are_left(
    opponents: tuple[float, ...], share: float
) -> None:
    seating, games = mix(*opponents), 8000
    members = members_of(seating, games, Lineup(107, share))
    table = seating.assign(rows_of(games, 2), 5, 0, 2, members).reshape(-1, 2)
    met = table.max(axis=1)
    left = 1 - sum(opponents)
    np.testing.assert_allclose((met == 107).mean(), left * share, atol=0.02)
    np.testing.assert_allclose((met == 0).mean(), left * (1 - share), atol=0.02)
    without = seating.assign(rows_of(games, 2), 5, 0, 2).reshape(-1, 2).max(axis=1)
    np.testing.assert_array_equal(
        met[without > 0], without[without > 0]
    )  # an opponent of the seating comes first
    assert ((table == 0).any(axis=1)).all()  # the learner has a seat in every game


def test_the_learner_changes_seats_against_the_league_too() -> None:
    members = np.full(6, 103, np.int16)
    taken = [
        mix().assign(rows_of(6, 3, episode), 1, 0, 3, members).reshape(6, 3).argmin(axis=1)
        for episode in range(3)
    ]
    assert all(sorted(seats) == [0, 1, 2] for seats in np.transpose(taken).tolist())


def test_what_a_game_draws_follows_from_its_number_and_episode_alone() -> None:
    lineup = Lineup(101, 0.5)
    whole = members_of(mix(0.2), 60, lineup, episode=3)
    again = mix(0.2).draw_members(np.arange(40, 60), np.full(20, 3), 5, lineup)
    np.testing.assert_array_equal(whole[40:], again)
    assert (whole != members_of(mix(0.2), 60, lineup, episode=4)).any()
    other = members_of(mix(0.2), 60, Lineup(102, 0.5), episode=3)
    np.testing.assert_array_equal(whole == 101, other == 102)  # who it is does not change which games


def test_the_opponents_of_games_are_those_that_rows_are_assigned_to() -> None:
    seating, games = mix(0.3, 0.3), 200
    members = members_of(seating, games, Lineup(105, 0.5), episode=2)
    rows = rows_of(games, 2, episode=2)
    met = seating.opponents_of(np.arange(games), np.full(games, 2), 5, members)
    np.testing.assert_array_equal(met, seating.assign(rows, 5, 0, 2, members).reshape(-1, 2).max(axis=1))
    assert set(met.tolist()) == {0, 1, 2, 105}


def test_numbers_of_members_are_no_numbers_of_opponents() -> None:
    with pytest.raises(ConfigError, match="opponents"):
        mix(*[1 / FIRST_MEMBER] * FIRST_MEMBER)


def test_a_game_is_seated_by_its_own_number() -> None:
    """Game 40 is seated alike in a batch that starts at 0 and in one that starts at 40."""
    seating = mix(0.6).model_copy(update={"opening_plies": 3})
    whole = seating.assign(rows_of(60, 2), 8, 0, 2)
    part = seating.assign(rows_of(20, 2), 8, 40, 2)
    np.testing.assert_array_equal(whole[80:], part)


def test_decisions_are_put_together_in_the_order_of_the_rows() -> None:
    game = keisei.make_game("tictactoe", batch=7, seed=1)
    assignment = np.array([CHANCE, 0, 1, 1, 0, CHANCE, 0], np.int16)
    policies = {0: Fixed(3), 1: Fixed(5), CHANCE: Fixed(8), 7: Fixed(1)}
    decision = play(policies, Situation(game, 1, 0), assignment)
    expected = np.array([8, 3, 5, 5, 3, 8, 3])
    np.testing.assert_array_equal(decision.actions, expected)
    np.testing.assert_array_equal(decision.log_probs, -expected)
    np.testing.assert_array_equal(decision.values, 10 * expected)
    assert [decision.actions.dtype, decision.log_probs.dtype, decision.values.dtype] == ["i4", "f4", "f4"]


@pytest.mark.parametrize("index", [0, 1])
def test_one_policy_alone_is_asked_for_all_rows_at_once(index: int) -> None:
    """The same as asking it directly, to the bit: the learner's self-play takes no detour."""
    game = keisei.make_game("tictactoe", batch=4, seed=1)
    decision = play({0: Fixed(3), 1: Fixed(5)}, Situation(game, 1, 0), np.full(4, index, np.int16))
    assert decision.actions.tolist() == [[3] * 4, [5] * 4][index]


def test_assignments_that_do_not_fit_are_refused() -> None:
    situation = Situation(keisei.make_game("tictactoe", batch=4, seed=1), 1, 0)
    with pytest.raises(PolicyError, match="4 rows must act, and 3"):
        play({0: Fixed(0)}, situation, np.zeros(3, np.int16))
    for wrong in (2, CHANCE):
        with pytest.raises(PolicyError, match=rf"policy {wrong}, and the policies are \[0, 1\]"):
            play({0: Fixed(0), 1: Fixed(1)}, situation, np.array([0, 1, wrong, 0], np.int16))


def test_mixed_games_can_be_played_to_their_ends() -> None:
    game = keisei.make_game("tictactoe", batch=16, seed=2)
    network = build_network({"hidden_dim": 8}, game.spec, seed=1)
    seating = parse_settings(
        Seating,
        {
            "opponents": [
                {"policy": "random", "share": 0.5},
                {"policy": "learner", "epsilon": 0.5, "share": 0.25},
            ],
            "opening_plies": 3,
        },
    )
    policies = seated_policies(Fixed(0), seating, game.spec, network)
    assert {number: type(policy) for number, policy in policies.items()} == {
        0: Fixed, 1: RandomPolicy, 2: NeuralPolicy, CHANCE: RandomPolicy,
    }  # fmt: skip
    policies[0] = policies[2]  # Fixed would soon play on a taken square
    situation, finished = Situation(game, 2, 0), 0
    for _ in range(30):
        assignment = seating.assign(situation.rows, 2, 0, game.spec.seats)
        finished += int(game.step(play(policies, situation, assignment).actions).done.sum())
        situation.advance()
    assert finished >= 16 * 3


@pytest.mark.parametrize(
    ("opponents", "message"),
    [
        ([{"policy": "random", "share": 0.7}, {"policy": "random", "share": 0.6}], "at most 1; they are 1.3"),
        ([{"policy": "random", "share": 0}], "share"),
        ([{"policy": "random"}], "share: missing"),
        ([{"policy": "random", "share": 0.5, "temprature": 1}], "temprature"),
    ],
)
def test_seatings_that_make_no_sense_are_refused(opponents: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_settings(Seating, {"opponents": opponents})


def test_settings_of_seating_cost_no_torch() -> None:
    code = "import sys, keisei.policies.seating as s; s.Seating(); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
