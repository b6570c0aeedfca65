"""Matches of games with one seat, with three and more, and without winners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
from games_for_tests import Relay

from keisei.evaluation import (
    MatchPlan,
    MatchResult,
    Player,
    Tally,
    mean_interval,
    play_match,
    rate,
    recorded_game,
    round_robin,
    share_interval,
)
from keisei.evaluation.matches import usual_opening
from keisei.evaluation.tournament import games_of_a_meeting
from keisei.games.contract import Array, BoolArray, FloatArray, IntArray, ObservationSpec
from keisei.games.randomness import KeyedRandom
from keisei.games.single import Outcome, SingleGame
from keisei.policies import Decision, Situation


class Choice(SingleGame):
    """Each seat takes a number in its turn, once. The score is that number, and half of it in seat 0."""

    name = "choice"
    num_actions = 5
    observation = ObservationSpec((1,), np.dtype(np.uint8))

    def __init__(self, seats: int = 3) -> None:
        self.seats = seats

    def reset(self, rng: KeyedRandom) -> None:
        self.to_move, self.taken, self.luck = 0, list[float](), rng.integer(3)

    def legal(self, seat: int) -> list[int]:
        return list(range(5))

    def play(self, action: int, rng: KeyedRandom) -> None:
        self.taken.append(action / 2 if self.to_move == 0 else action)
        self.to_move = (self.to_move + 1) % self.seats

    def observe(self, seat: int) -> Array:
        return np.array([self.luck], np.uint8)

    def outcome(self) -> Outcome | None:
        return Outcome(tuple(self.taken)) if len(self.taken) == self.seats else None


class Solo(SingleGame):
    """One seat. Four steps, each worth what it takes and the luck of the game. It is cut off and never ends."""

    name = "solo"
    seats = 1
    num_actions = 5
    observation = ObservationSpec((1,), np.dtype(np.uint8))
    scored_by_rewards = True
    max_plies = 4

    def reset(self, rng: KeyedRandom) -> None:
        self.luck = rng.integer(10)

    def legal(self, seat: int) -> list[int]:
        return list(range(5))

    def play(self, action: int, rng: KeyedRandom) -> list[float]:
        return [float(action + self.luck)]

    def observe(self, seat: int) -> Array:
        return np.array([self.luck], np.uint8)

    def outcome(self) -> Outcome | None:
        return None


class Together(Solo):
    """Seats that act at once; one drops out after the first step. Nobody ever wins."""

    name = "together"
    simultaneous = True

    def __init__(self, seats: int = 4) -> None:
        self.seats = seats

    def reset(self, rng: KeyedRandom) -> None:
        self.steps, self.luck = 0, 0

    def acting(self) -> Sequence[int]:
        return range(self.seats if self.steps == 0 else self.seats - 1)

    def play(self, action: tuple[int, ...], rng: KeyedRandom) -> list[float]:  # type: ignore[override]
        self.steps += 1
        return [*map(float, action), *[0.0] * (self.seats - len(action))]


class Takes:
    """Takes the same number always, and keeps a note of where it was asked."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.asked: list[tuple[int, int]] = []

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        assert selected is not None
        rows = situation.rows
        games = rows.game[selected] + situation.first_game
        self.asked += zip(games.tolist(), rows.seat[selected].tolist(), strict=True)
        empty = np.zeros(len(selected), np.float32)
        return Decision(np.full(len(selected), self.number, np.int32), empty, empty)

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return np.zeros(len(observations), np.float32)


def taking(number: int) -> Player:
    return Player(f"takes {number}", Takes(number))


def match_of(first: int, second: int, games: int = 6, seats: int = 3, batch: int = 256) -> MatchResult:
    return play_match(
        Choice, {"seats": seats}, taking(first), taking(second), games, opening_plies=0, batch=batch
    )


@pytest.mark.parametrize("batch", [256, 4, 1])
def test_the_first_player_has_each_seat_once_in_a_round(batch: int) -> None:
    first, second = Takes(2), Takes(1)
    match = play_match(Choice, None, Player("a", first), Player("b", second), 9, opening_plies=0, batch=batch)
    assert [(game.round, game.seat) for game in match.games] == [divmod(number, 3) for number in range(9)]
    assert sorted(first.asked) == [(number, number % 3) for number in range(9)]
    assert sorted(second.asked) == [
        (game, seat) for game in range(9) for seat in range(3) if seat != game % 3
    ]
    assert (match.seats, match.by_returns, match.comparisons) == (3, True, 2)


def test_scores_ranks_and_comparisons() -> None:
    """The first player takes 2, the others 1; in seat 0 numbers count half."""
    match = match_of(2, 1)
    assert [game.scores for game in match.games[:3]] == [(1.0, 1.0, 1.0), (0.5, 2.0, 1.0), (0.5, 1.0, 2.0)]
    assert [game.score for game in match.games[:3]] == [1.0, 2.0, 2.0]
    assert match.games[1].others == (0.5, 1.0)
    assert [game.tally for game in match.games[:3]] == [Tally(0, 2, 0), Tally(2, 0, 0), Tally(2, 0, 0)]
    assert match.tally() == Tally(8, 4, 0)
    assert match.tally(0) == Tally(0, 4, 0)
    assert match.score.value == pytest.approx(10 / 12)
    # Ranks with ties averaged: 2 in seat 0, where all three are equal, and 1 in the others.
    assert match.mean_rank == pytest.approx((2 + 1 + 1) / 3)
    assert match.mean_return.value == pytest.approx(5 / 3)
    assert match.opponent_return == pytest.approx((1 + 0.75 + 0.75) / 3)
    assert match.lead.value == pytest.approx(5 / 3 - 2.5 / 3)


def test_ranks_are_those_of_a_sorted_table() -> None:
    match = play_match(Choice, {"seats": 4}, "random", "random", 400, 3, opening_plies=0)
    ranks = []
    for game in match.games:
        better = sum(score > game.score for score in game.scores)
        equal = sum(score == game.score for score in game.scores)
        ranks.append(better + (1 + equal) / 2)
    assert match.mean_rank == pytest.approx(fmean(ranks))
    assert match.score.value == pytest.approx(1 - (fmean(ranks) - 1) / 3)
    assert match.score.low < 0.5 < match.score.high


def test_games_are_rounded_up_to_whole_rounds() -> None:
    for asked, played in ((2, 3), (3, 3), (40, 42)):
        match = match_of(1, 1, asked)
        assert len(match.games) == played
        assert Counter(game.seat for game in match.games) == dict.fromkeys(range(3), played // 3)


def test_the_interval_of_a_return_does_not_count_the_seat_as_luck() -> None:
    """Every round gives the same mean, though seats differ: nothing is uncertain."""
    match = match_of(2, 1, 30)
    assert match.mean_return.high - match.mean_return.low == pytest.approx(0, abs=1e-9)
    assert {game.score for game in match.games} == {1.0, 2.0}


def test_one_round_gives_no_interval() -> None:
    match = match_of(2, 1, 3)
    assert (match.mean_return.low, match.mean_return.high) == (-np.inf, np.inf)


def test_intervals_hold_the_true_mean_return() -> None:
    """Random numbers against random numbers: the truth is 2, less a third of 1 for seat 0."""
    truth = 2 - 1 / 3
    inside = 0
    for seed in range(200):
        interval = play_match(Choice, None, "random", "random", 18, seed, opening_plies=0).mean_return
        inside += interval.low <= truth <= interval.high
    assert 180 <= inside <= 199  # 95 % of 200 are 190


def test_comparisons_of_one_game_are_not_taken_for_games() -> None:
    match = match_of(2, 1, 30, seats=5)
    assert match.tally().games == 120
    assert match.score == share_interval(match.tally().score, 30)
    assert match.elo.low is not None
    assert match.elo.low < 400


# Alone


def test_alone_both_play_the_same_games() -> None:
    match = play_match(Solo, None, taking(3), taking(1), 8, 5)
    assert (match.seats, match.by_returns, match.opening_plies) == (1, True, 0)
    lucks = [(game.score - 12) / 4 for game in match.games]
    assert lucks == [(game.others[0] - 4) / 4 for game in match.games]
    assert len(set(lucks)) > 2
    assert match.lead.value == match.lead.low == match.lead.high == 8
    assert match.mean_return == mean_interval([game.score for game in match.games])
    assert match.tally() == Tally(8, 0, 0)
    assert all(game.truncated and game.seat == 0 for game in match.games)


def test_alone_games_do_not_depend_on_the_batch() -> None:
    whole = play_match(Solo, None, "random", "random", 7, 5, record=True)
    assert whole == play_match(Solo, None, "random", "random", 7, 5, record=True, batch=3)
    assert recorded_game(whole, 0).names == ("random",)
    assert recorded_game(whole, 0).scores == whole.games[0].scores[:1]


# At once, and without an end


def test_seats_that_act_at_once_and_drop_out() -> None:
    match = play_match(Together, None, taking(3), taking(1), 8, opening_plies=0)
    assert match.seats == 4
    assert [game.scores for game in match.games[:4]] == [
        (12.0, 4.0, 4.0, 1.0), (4.0, 12.0, 4.0, 1.0), (4.0, 4.0, 12.0, 1.0), (4.0, 4.0, 4.0, 3.0),
    ]  # fmt: skip
    assert match.mean_return.value == (12 * 3 + 3) / 4
    assert match.tally(3) == Tally(0, 0, 6)
    assert match.endings == {"truncated": 8}


def test_two_seats_without_winners_are_judged_by_returns_when_they_are_cut_off() -> None:
    match = play_match(Together, {"seats": 2}, taking(3), taking(1), 4, opening_plies=0)
    assert match.by_returns
    assert [game.scores for game in match.games[:2]] == [(12.0, 1.0), (4.0, 3.0)]
    assert match.tally() == Tally(2, 0, 2)


def test_two_seats_with_a_winner_are_judged_by_wins() -> None:
    match = play_match("tictactoe", {"max_plies": 4}, "random", "random", 4)
    assert not match.by_returns
    assert match.tally() == Tally(0, 4, 0)


def test_relays_are_played_to_their_end() -> None:
    match = play_match(Relay, None, "random", "random", 30, 1, record=True)
    assert match.opening_plies == usual_opening(Relay, {}) > 0
    assert recorded_game(match, 1).names == ("random",) * 3
    assert match == play_match(Relay, None, "random", "random", 30, 1, record=True, batch=7)


def test_games_of_a_round_have_one_opening() -> None:
    match = play_match(Choice, None, "random", "random", 90, 1, opening_plies=2, record=True)
    openings = [game.actions[:2] for game in match.games]
    assert [openings[number - number % 3] for number in range(90)] == openings
    assert len(set(openings)) > 10
    assert recorded_game(match, 1).scores == match.games[1].scores


# Tournaments


def test_players_of_three_seats_meet_with_each_alone() -> None:
    seen: list[MatchResult] = []
    plan = MatchPlan(Choice, games=6, seed=2, opening_plies=0, on_match=seen.append)
    result = round_robin(plan, [taking(1), taking(2), taking(4)])
    assert [match.players for match in seen[:2]] == [("takes 1", "takes 2"), ("takes 2", "takes 1")]
    assert sum(len(match.games) for match in seen) == 3 * games_of_a_meeting(6, 3) == 36
    assert [pairing.per_game for pairing in result.pairings] == [2, 2, 2]
    # Alone: 1 among 2s is below both in each seat but level with the one in seat 0; 2 among 1s as above.
    assert result.pairings[0].tally == Tally(0, 4, 8) + Tally(8, 4, 0).reversed()
    assert [rating.player for rating in result.ratings] == ["takes 4", "takes 2", "takes 1"]
    assert [rating.games for rating in result.ratings] == [24, 24, 24]


def test_ratings_count_a_game_once_however_many_sit_there() -> None:
    seen: list[MatchResult] = []
    plan = MatchPlan(Choice, {"seats": 4}, games=60, seed=1, opening_plies=0, on_match=seen.append)
    result = round_robin(plan, ["random", taking(3)])
    pairing = result.pairings[0]
    assert (pairing.per_game, pairing.tally.games) == (3, 360)
    rating = next(rating for rating in result.ratings if rating.player == "takes 3")
    naive = rate([type(pairing)(pairing.first, pairing.second, pairing.tally)], "random")
    wider = next(other for other in naive if other.player == "takes 3")
    assert rating.high - rating.low > 1.5 * (wider.high - wider.low)


def test_players_who_are_alone_have_a_tournament_too() -> None:
    result = round_robin(MatchPlan(Solo, games=4), [taking(1), taking(4)])
    assert result.pairings[0].tally == Tally(0, 0, 4)
    assert games_of_a_meeting(4, 1) == 4
