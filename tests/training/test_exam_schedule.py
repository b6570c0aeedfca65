"""When a run is evaluated: every so many transitions, and a short run at shares of it."""

from __future__ import annotations

import pytest

from keisei.training.events import Counters
from keisei.training.exam_schedule import ExamSchedule


def exams(every: int, length: int, step: int, begun_at: int = 0) -> list[int]:
    """The transitions at which a run is evaluated before its end."""
    schedule, found = ExamSchedule(every, evaluated_at=begun_at), []
    for transitions in range(begun_at + step, length, step):
        if schedule.is_due(Counters(transitions=transitions), transitions / length):
            schedule.evaluated_at = transitions
            found.append(transitions)
    return found


def test_a_long_run_is_evaluated_every_so_often() -> None:
    assert exams(every=200, length=1000, step=10) == [200, 400, 600, 800]
    assert exams(every=500, length=1000, step=10) == [500]


@pytest.mark.parametrize("every", [501, 1000, 200_000])
def test_a_short_run_has_a_curve_too(every: int) -> None:
    assert exams(every, length=1000, step=10)[:3] == [100, 250, 500]
    assert exams(10**6, length=1000, step=10) == [100, 250, 500, 750]


def test_long_updates_skip_shares_and_are_not_evaluated_twice() -> None:
    assert exams(every=10**6, length=1000, step=400) == [400, 800]


def test_a_resumed_run_goes_on_where_it_was() -> None:
    assert exams(every=10**6, length=1000, step=10, begun_at=250) == [500, 750]


def test_a_run_that_becomes_faster_is_not_evaluated_twice_at_one_share() -> None:
    schedule, seconds, found = ExamSchedule(10**6), 0.0, []
    for transitions in range(10, 1000, 10):
        seconds += 2.0 if seconds < 50 else 0.5  # of 100
        if schedule.is_due(Counters(transitions=transitions), seconds / 100):
            schedule.evaluated_at = transitions
            found.append(seconds)
    assert found == [10.0, 26.0, 50.0, 75.0]


def test_only_the_end_is_evaluated_if_that_is_asked_for() -> None:
    assert exams(every=0, length=1000, step=10) == []
