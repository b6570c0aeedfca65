"""Who is in the pool, and how the learner fared."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from keisei.evaluation.statistics import Tally
from keisei.policies.networks import ModelConfig
from keisei.policies.seating import FIRST_MEMBER, PolicyConfig
from keisei.training.league.results import RECENT, SPAN, Results
from keisei.training.league.roster import Member, Roster, milestones

MODEL = ModelConfig(network="mlp")


def roster_of(snapshots: int, window: int = 3, kept: int = 2) -> Roster:
    roster = Roster(window, kept)
    roster.add("player", PolicyConfig(policy="random"))
    for update in range(snapshots):
        roster.add_snapshot(PolicyConfig(policy=f"update-{update}"), update, MODEL)
    return roster


def test_numbers_are_never_used_twice() -> None:
    roster = roster_of(9)
    roster.keep(())
    assert [member.number for member in roster.pool][:2] == [FIRST_MEMBER, FIRST_MEMBER + 1]
    member = roster.add_snapshot(PolicyConfig(policy="next"), 9, MODEL)
    assert member.number == FIRST_MEMBER + 10


def test_the_window_has_the_latest_and_milestones_are_spread_over_the_rest() -> None:
    for taken in range(1, 40):
        ordinals = [member.ordinal for member in roster_of(taken).pool if member.kind == "snapshot"]
        assert ordinals[-3:] == list(range(max(0, taken - 3), taken))
        assert ordinals[0] == 0
        assert len(ordinals) <= 5


@pytest.mark.parametrize("most", [1, 2, 4, 7])
def test_a_milestone_that_was_dropped_never_comes_back(most: int) -> None:
    before: set[int] = set()
    for taken in range(100):
        kept = set(milestones(taken, most))
        assert len(kept) <= most
        assert kept <= before | {taken - 1}
        before = kept | {taken}
    assert not milestones(5, 0)


def test_members_that_left_the_pool_stay_while_games_meet_them() -> None:
    roster = roster_of(6, kept=0)
    left = [member.number for member in roster.members.values() if not member.in_pool]
    assert left == [101, 102, 103]
    roster.keep({102})
    assert sorted(roster.members) == [100, 102, 104, 105, 106]


def test_a_new_snapshot_begins_a_new_era() -> None:
    roster = roster_of(2)
    roster.members[101].results.add([1, 1, 0], 0.5)
    roster.add_snapshot(PolicyConfig(policy="next"), 2, MODEL)
    results = roster.members[101].results
    assert (results.era, results.total) == (Tally(), Tally(2, 1, 0))


def test_recent_games_are_the_last_ones() -> None:
    results = Results()
    results.add([-1] * RECENT, 0.5)
    results.add([1] * (RECENT // 2), 0.5)
    assert results.total == Tally(RECENT // 2, 0, RECENT)
    assert results.now == Tally(RECENT // 2, 0, RECENT // 2)
    assert results.score is not None
    assert results.score.value == 0.5


def test_forgotten_is_who_was_surely_beaten_and_surely_wins_now() -> None:
    results = Results()
    results.add([-1] * 20, 0.5)
    assert not results.is_forgotten(0.5), "never beaten"
    results.add([1] * RECENT, 0.5)
    assert not results.is_forgotten(0.5)
    results.add([-1] * (RECENT // 2), 0.5)
    assert not results.is_forgotten(0.5), "about even"
    results.add([-1] * (RECENT // 4), 0.5)
    assert results.is_forgotten(0.5)


def test_comparisons_of_a_game_are_one_game() -> None:
    """They do not make the interval narrower, and the last games are whole ones."""
    one, three = Results(), Results(per_game=3)
    one.add([1, -1] * 20, 0.5)
    three.add([1, 1, 1, -1, -1, -1] * 20, 0.5)
    assert (one.recent_games, three.recent_games) == (40, 40)
    assert one.score is not None
    assert three.score is not None
    assert (three.score.low, three.score.high) == pytest.approx((one.score.low, one.score.high))
    three.add([0, 0, 1] * RECENT, 0.5)
    assert three.recent_games == RECENT
    assert three.now == Tally(RECENT, 2 * RECENT, 0)


def test_results_that_were_counted_in_another_way_are_dropped() -> None:
    """Earlier versions had one outcome in each game, also with four seats."""
    entry: Any = roster_of(0).members[100].document()
    entry["results"] = {"total": [1, 0, 3], "era": [1, 0, 3], "recent": "wlll", "was_beaten": False}
    roster = Roster(3, 2)
    roster.members[100] = Member.of(entry)
    roster.count_comparisons(1)
    assert roster.members[100].results.total == Tally(1, 0, 3)
    roster.count_comparisons(3)
    assert roster.members[100].results == Results(per_game=3)
    assert roster.add("player", PolicyConfig(policy="greedy")).results.per_game == 3


def test_a_few_lucky_games_are_no_victory() -> None:
    results = Results()
    results.add([1, 1, -1], 0.5)
    results.add([-1] * 50, 0.5)
    assert not results.is_forgotten(0.5)


@pytest.mark.parametrize("per_game", [1, 3])
@pytest.mark.parametrize("draws", [0.0, 0.6])
def test_an_equal_is_rarely_called_surely_beaten_however_often_one_looks(per_game: int, draws: float) -> None:
    """One in twenty, of members that were met in 3,000 games each."""
    rng, beaten = np.random.default_rng(5), 0
    for _ in range(100):
        results = Results(per_game=per_game)
        outcomes = rng.choice([-1, 0, 1], 3000 * per_game, p=[(1 - draws) / 2, draws, (1 - draws) / 2])
        for batch in np.split(outcomes, range(49 * per_game, len(outcomes), 49 * per_game)):
            results.add(batch.tolist(), 0.5)
        beaten += results.was_beaten
    assert beaten <= 6


def test_who_becomes_better_is_seen_to_be() -> None:
    """A learner that won three games of ten for long, and then seven."""
    rng, beaten = np.random.default_rng(6), 0
    for _ in range(50):
        results = Results()
        results.add(rng.choice([-1, 1], 2000, p=[0.7, 0.3]).tolist(), 0.5)
        assert not results.was_beaten
        results.add(rng.choice([-1, 1], 400, p=[0.3, 0.7]).tolist(), 0.5)
        beaten += results.was_beaten
    assert beaten >= 45


def test_games_are_tested_in_whole_spans_whatever_the_batches() -> None:
    outcomes = np.random.default_rng(1).choice([-1, 1], 3 * SPAN, p=[0.3, 0.7]).tolist()
    one, many = Results(), Results()
    one.add(outcomes, 0.5)
    for outcome in outcomes:
        many.add([outcome], 0.5)
    assert one == many
    short = Results()
    short.add([1] * (SPAN - 1), 0.5)
    assert not short.was_beaten
    short.add([1], 0.5)
    assert short.was_beaten
    after_losses = Results()
    after_losses.add([-1] * SPAN + [1] * SPAN, 0.5)
    assert after_losses.was_beaten, "only the last span counts"


def test_a_member_survives_json() -> None:
    member = roster_of(3).members[102]
    member.results.add([1, 0, -1, -1], 0.5)
    member.share, member.is_stored = 0.25, True
    again = Member.of(json.loads(json.dumps(member.document())))
    assert again == member
    again.results.add([1], 0.5)
    assert list(again.results.recent) == [1, 0, -1, -1, 1]
