"""The numbers of an event, under the names that metrics have."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from keisei.learners.contract import Report
from keisei.runs.metric_names import TAGS
from keisei.runs.rows import EvaluationRow
from keisei.training.events import (
    CollectionSummary,
    Counters,
    Ended,
    Evaluation,
    GameSummary,
    LeagueSummary,
    Update,
)

LEARNED = {name: 0.5 for name in TAGS if name.startswith("train/") and name != "train/n_updates"}
LEARNED |= {"rollout/exploration_rate": 0.25, "rollout/return": 0.5}
KEPT = {
    "rollout/carried": 12,
    "rollout/dropped_carries": 3,
    "rollout/replayed": 5000,
    "rollout/late_priorities": 2,
}
UPDATE = Update(
    counters=Counters(3, 3000, 60, 12.0),
    progress=0.3,
    games=GameSummary(20, 80.0, 0.1, 0.55, 0.25, 0.05, {"checkmate": 20}),
    collection=CollectionSummary(
        1000, 3.0, 0.5, 2, 0.93, 4, 1, 7, LeagueSummary(14, 9, 0.6, "greedy", 0.4, 1)
    ),
    report=Report({0: LEARNED}),
    learn_seconds=1.0,
    buffer=KEPT,
)


def test_an_update_has_every_number_and_no_other() -> None:
    assert UPDATE.numbers == {
        **LEARNED,
        "rollout/ep_len_mean": 80.0,
        "rollout/ep_rew_mean": 0.1,
        **KEPT,
        "train/n_updates": 3,
        "time/fps": 250.0,
        "time/total_timesteps": 3000,
        "time/time_elapsed": 12.0,
        "selfplay/games": 20,
        "selfplay/first_win_rate": 0.55,
        "selfplay/draw_rate": 0.25,
        "selfplay/truncation_rate": 0.05,
        "league/members": 14,
        "league/games": 9,
        "league/score": 0.6,
        "league/worst_score": 0.4,
        "league/forgotten": 1,
        "perf/transitions_per_second": 250.0,
        "perf/collect_seconds": 3.0,
        "perf/learn_seconds": 1.0,
        "perf/queue_depth": 2,
        "perf/policy_lag": 0.5,
        "perf/worker_utilisation": 0.93,
    }
    assert set(UPDATE.numbers) == set(TAGS)


def test_a_league_has_numbers_only_where_there_is_one() -> None:
    alone = replace(UPDATE, collection=replace(UPDATE.collection, league=None))
    assert {name for name in TAGS if name.startswith("league/")} == set(TAGS) - set(alone.numbers)


def test_what_is_not_known_is_left_out() -> None:
    none = GameSummary(0, math.nan, math.nan, math.nan, math.nan, math.nan, {})
    report = Report({0: {**LEARNED, "train/loss": math.nan}})
    numbers = replace(UPDATE, games=none, report=report, counters=Counters()).numbers
    assert set(TAGS) - set(numbers) == {
        "rollout/ep_len_mean", "rollout/ep_rew_mean", "selfplay/first_win_rate", "selfplay/draw_rate",
        "selfplay/truncation_rate", "train/loss", "time/fps",
    }  # fmt: skip
    assert numbers["selfplay/games"] == 0


def test_where_several_learn_each_has_numbers_of_its_own() -> None:
    owners = {0: {"train/loss": 1.0, "replay/size": 10.0}, 2: {"train/loss": 4.0, "train/approx_kl": 0.25}}
    numbers = replace(UPDATE, report=Report(owners)).numbers
    assert numbers["train/loss"] == 2.5
    assert numbers["train/approx_kl"] == 0.25
    assert {name: value for name, value in numbers.items() if name.startswith("agent-")} == {
        "agent-0/loss": 1.0,
        "agent-0/replay/size": 10.0,
        "agent-2/loss": 4.0,
        "agent-2/approx_kl": 0.25,
    }


def test_an_evaluation_has_a_score_for_each_opponent() -> None:
    rows = [
        EvaluationRow(3, 0, 0.0, "me", name, 39, 0, 1, score, 0.9, 1.0)
        for name, score in (("random", 0.975), ("runs/a b", 0.5), ("update-000000019", 0.6))
    ]
    assert Evaluation(3, tuple(rows), False, 2.0).numbers == {
        "evaluation/random": 0.975,
        "evaluation/runs_a_b": 0.5,
        "evaluation/best": 0.6,  # one name, whichever checkpoint was the best
    }


def test_an_evaluation_by_returns_has_the_mean_return_too() -> None:
    row = EvaluationRow(3, 0, 0.0, "me", "search:1", 5, 0, 1, 0.75, 0.5, 1.0, seats=3, mean_return=2.5)
    assert Evaluation(3, (row,), False, 2.0).numbers == {
        "evaluation/search:1": 0.75,
        "return/search:1": 2.5,
    }


@pytest.mark.parametrize(("outcome", "reason"), [("finished", ""), ("interrupted", ""), ("late", "late")])
def test_only_a_callback_has_a_reason(outcome: str, reason: str) -> None:
    assert Ended(outcome, Counters()).reason == reason
