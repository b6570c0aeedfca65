"""A worker by itself, as the manager knows it: its states, its failures, and whether it gets on."""

from __future__ import annotations

from typing import Any

import pytest

from keisei.parallel import workers
from keisei.parallel.messages import Order, OrderKind
from keisei.parallel.tables import FAILURE_WINDOW, OUTSIDE_KILLS
from keisei.parallel.workers import FORGET_WITH_AN_ORDER, LONGEST_BACKOFF, Worker, WorkerState


class FakeHandle:
    """A running worker that makes a step when the test says so."""

    steps = 0
    is_queued = False


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(workers.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def running() -> tuple[Worker, FakeHandle]:
    worker, handle = Worker(3), FakeHandle()
    worker.started(handle)  # type: ignore[arg-type]
    worker.became_ready()
    return worker, handle


def order_of(table: int) -> Order:
    return Order(OrderKind.PLAY, table)


def fail(worker: Worker, times: int = 1, **changes: Any) -> None:
    for _ in range(times):
        worker.died("an error", **{"from_outside": False, "max_failures": 5} | changes)


def test_it_plays_when_it_is_there_and_ready() -> None:
    worker = Worker(0)
    assert not worker.can_play
    worker.started(FakeHandle())  # type: ignore[arg-type]
    assert (worker.state, worker.can_play) == (WorkerState.STARTING, False)
    worker.became_ready()
    assert worker.can_play
    worker.pause()
    assert not worker.can_play
    worker.resume()
    assert worker.can_play
    worker.drain()
    assert not worker.can_play


def test_it_is_put_out_after_so_many_failures(clock: Clock) -> None:
    worker, _ = running()
    fail(worker, 4)
    assert worker.state is WorkerState.FAILED
    fail(worker)
    assert worker.state is WorkerState.QUARANTINED
    assert not worker.is_due


def test_failures_long_ago_do_not_count(clock: Clock) -> None:
    worker, _ = running()
    for _ in range(9):
        fail(worker)
        clock.now += FAILURE_WINDOW / 3
    assert worker.state is WorkerState.FAILED


def test_its_successor_waits_longer_each_time(clock: Clock) -> None:
    worker, _ = running()
    waits = []
    for _ in range(9):
        fail(worker, max_failures=100)
        waits.append(max(0.0, worker.retry_at - clock.now))
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_BACKOFF
    assert not worker.is_due
    clock.now += LONGEST_BACKOFF
    assert worker.is_due


def test_kills_from_outside_count_apart(clock: Clock) -> None:
    worker, _ = running()
    fail(worker, OUTSIDE_KILLS - 1, from_outside=True)
    assert worker.is_due, "at once"
    fail(worker, from_outside=True)
    assert worker.state is WorkerState.QUARANTINED


def test_one_that_rests_or_leaves_has_nothing_to_come_back_for() -> None:
    worker, _ = running()
    worker.pause()
    fail(worker)
    assert (worker.state, worker.is_due) == (WorkerState.PAUSED, False)
    worker.resume()
    assert (worker.state, worker.is_due) == (WorkerState.FAILED, True)
    worker.drain()
    fail(worker)
    assert worker.state is WorkerState.STOPPED


def test_a_slab_that_is_played_wipes_the_slate() -> None:
    from keisei.experience.slab import SlabRecord

    worker, _ = running()
    fail(worker, 4)
    fail(worker, 3, from_outside=True)
    worker.take([order_of(0)])
    worker.played(SlabRecord(0, 3, 0, 0, 0, 1, 32, 0, 0.0, 1.0, 0.5, 0.25, 2.0, 0), episodes=6)
    assert (worker.failures, worker.outside_kills, len(worker.orders)) == ([], 0, 0)
    totals = worker.totals
    assert (totals.slabs, totals.transitions, totals.episodes) == (1, 32, 6)
    assert (totals.seconds, totals.waited_seconds) == (1.0, 2.0)


def test_idleness_counts_only_where_there_is_something_to_do(clock: Clock) -> None:
    worker, handle = running()
    clock.now += 100
    assert worker.idle_seconds() == 0, "it has no order"
    worker.take([order_of(0)])
    assert worker.idle_seconds() == 0
    clock.now += 5
    assert worker.idle_seconds() == 5
    handle.steps += 1
    assert worker.idle_seconds() == 0
    clock.now += 3
    assert worker.idle_seconds() == 3
    worker.watch_anew()
    assert worker.idle_seconds() == 0


def test_who_waits_for_an_answer_is_not_idle(clock: Clock) -> None:
    worker, _ = running()
    worker.take([order_of(0)])
    worker.idle_seconds()
    worker.asks = True
    clock.now += 3600
    assert worker.idle_seconds() == 0
    worker.asks = False
    clock.now += 5
    assert worker.idle_seconds() == 5


def test_an_order_after_a_long_rest_is_watched_from_now_on(clock: Clock) -> None:
    worker, _ = running()
    worker.idle_seconds()
    clock.now += 3600
    worker.take([order_of(0)])
    assert worker.idle_seconds() == 0


def test_it_forgets_what_others_play_with_its_next_orders_a_few_at_a_time() -> None:
    worker, _ = running()
    worker.stale = [5, 6, 7, 8]
    sent = worker.take([order_of(6)])
    assert [(order.kind, order.table) for order in sent] == [
        *((OrderKind.FORGET, table) for table in (5, 7)[:FORGET_WITH_AN_ORDER]),
        (OrderKind.PLAY, 6),
    ]
    assert worker.stale == [8], "and what it plays again it does not forget"
    assert list(worker.orders) == [order_of(6)]


def test_a_successor_has_nothing_to_forget() -> None:
    worker, _ = running()
    worker.stale = [5, 6]
    fail(worker)
    worker.started(FakeHandle())  # type: ignore[arg-type]
    assert worker.stale == []


def test_a_worker_without_a_place_is_not_idle(clock: Clock) -> None:
    """Its time counts from the moment it leaves the queue."""
    worker, handle = Worker(0), FakeHandle()
    handle.is_queued = True
    worker.started(handle)  # type: ignore[arg-type]
    clock.now += 1000
    assert worker.is_queued
    assert worker.idle_seconds() == 0
    handle.is_queued = False
    clock.now += 7
    assert worker.idle_seconds() == 7
