"""Who plays which table next: nobody rests while a table waits, and tables stay where their games are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from games_for_tests import BACKENDS, TROUBLED, manager_of, players

from keisei.parallel import ParallelManager
from keisei.parallel.dealer import Dealer
from keisei.parallel.messages import Order, Start
from keisei.parallel.plan import MAX_IN_FLIGHT
from keisei.parallel.tables import SavedGames, Table
from keisei.parallel.workers import Worker


class FakeHandle:
    steps = 0


class FakeCommunicator:
    """Keeps what workers are sent."""

    def __init__(self, workers: int) -> None:
        self.workers = [Worker(number) for number in range(workers)]
        self.sent: list[tuple[int, int, Start]] = []
        for worker in self.workers:
            worker.started(FakeHandle())  # type: ignore[arg-type]
            worker.became_ready()

    def send(self, worker: Worker, orders: list[Order]) -> None:
        worker.take(orders)
        self.sent += [(worker.number, order.table, order.start) for order in orders]

    def send_all(self, dealt: Iterator[tuple[Worker, list[Order]]]) -> None:
        for worker, orders in dealt:
            self.send(worker, orders)

    def given(self) -> list[tuple[int, int]]:
        """Worker and table of what has been sent since the last look."""
        sent, self.sent = self.sent, []
        return [(worker, table) for worker, table, _ in sent]


def crew(
    workers: int, held: list[int | None], orders: int = 1
) -> tuple[Dealer, FakeCommunicator, list[Table]]:
    """A dealer, and a table for each entry of ``held``: who has it in hand. Every table has been played before."""
    communicator = FakeCommunicator(workers)
    tables = [
        Table(number, games=4, seed=0, worker=worker, saved=SavedGames(0, number), next_sequence=1)
        for number, worker in enumerate(held)
    ]
    for table in tables:
        for number in range(orders):
            table.add_order(slab=100 + 10 * table.number + number, state_slot=number, version=1)
    return Dealer(tables, communicator.workers, lambda: 1), communicator, tables


def finish(communicator: FakeCommunicator, tables: list[Table], worker: int) -> None:
    """A worker hands in what it has in hand."""
    order = communicator.workers[worker].orders.popleft()
    tables[order.table].orders.popleft()
    tables[order.table].dealt -= 1


# In rounds.


def test_a_worker_goes_on_with_its_own_tables_in_their_order() -> None:
    dealer, communicator, tables = crew(2, [0, 1, 0, 1])
    communicator.send_all(dealer.one_each())
    assert communicator.sent == [(0, 0, Start.GO_ON), (1, 1, Start.GO_ON)]
    communicator.send_all(dealer.one_each())
    assert len(communicator.sent) == 2, "one order in hand"
    communicator.given()
    finish(communicator, tables, 1)
    communicator.send_all(dealer.one_each())
    assert communicator.sent == [(1, 3, Start.GO_ON)]


def test_tables_that_nobody_has_go_to_whoever_has_nothing_of_its_own() -> None:
    dealer, communicator, _ = crew(2, [None, 1, None])
    communicator.send_all(dealer.one_each())
    assert communicator.sent == [(0, 0, Start.LOAD), (1, 1, Start.GO_ON)]


def test_with_nothing_to_do_it_takes_the_last_table_of_the_busiest() -> None:
    dealer, communicator, tables = crew(3, [0, 0, 0, 1, 1])
    communicator.send_all(dealer.one_each())
    assert communicator.sent == [(0, 0, Start.GO_ON), (1, 3, Start.GO_ON), (2, 2, Start.LOAD)]
    assert tables[2].worker == 2
    assert communicator.workers[0].stale == [2], "whoever had it may forget it"


def test_nobody_takes_a_table_that_is_being_played() -> None:
    dealer, communicator, _ = crew(3, [0, 1])
    communicator.send_all(dealer.one_each())
    assert communicator.given() == [(0, 0), (1, 1)]


@pytest.mark.parametrize("why", ["pause", "drain", "died", "starts"])
def test_who_does_not_play_gets_nothing_and_others_take_its_tables(why: str) -> None:
    dealer, communicator, tables = crew(2, [0, 0])
    away = communicator.workers[0]
    if why == "died":
        away.died("an error", from_outside=False, max_failures=5)
        for table in tables:
            table.drop_hands()
    elif why == "starts":
        away.started(FakeHandle())  # type: ignore[arg-type]
    else:
        getattr(away, why)()
    communicator.send_all(dealer.one_each())
    assert [worker for worker, _ in communicator.given()] == [1]
    finish(communicator, tables, 1)
    communicator.send_all(dealer.one_each())
    assert [worker for worker, _ in communicator.given()] == [1]


def test_a_table_that_failed_goes_to_another_who_tells_whose_fault_it_is() -> None:
    dealer, communicator, tables = crew(2, [None, None])
    tables[0].note_failure(0, "an error", from_outside=False)
    communicator.send_all(dealer.one_each())
    assert communicator.given() == [(0, 1), (1, 0)]


def test_but_not_where_all_have_failed_on_it() -> None:
    dealer, communicator, tables = crew(2, [None])
    for worker in (0, 1):
        tables[0].note_failure(worker, "an error", from_outside=False)
    communicator.send_all(dealer.one_each())
    assert communicator.given() == [(0, 0)]
    dealer, communicator, tables = crew(2, [None])
    tables[0].note_failure(0, "an error", from_outside=False)
    communicator.workers[1].pause()
    communicator.send_all(dealer.one_each())
    assert communicator.given() == [(0, 0)], "the other rests"


# Ahead of the learner.


def test_orders_go_to_whoever_has_the_table() -> None:
    dealer, communicator, tables = crew(2, [1, 0, 1], orders=2)
    communicator.send_all(dealer.ahead())
    assert communicator.given() == [(1, 0), (1, 0), (0, 1), (0, 1), (1, 2), (1, 2)]
    assert all(table.dealt == 2 for table in tables)
    communicator.send_all(dealer.ahead())
    assert communicator.given() == []


def test_tables_that_nobody_has_are_shared_out_evenly() -> None:
    dealer, communicator, tables = crew(3, [None] * 7)
    communicator.send_all(dealer.ahead())
    assert sorted(Counter(table.worker for table in tables).values()) == [2, 2, 3]
    assert {start for _, _, start in communicator.sent} == {Start.LOAD}


def test_no_more_is_sent_ahead_than_a_pipe_takes() -> None:
    dealer, communicator, tables = crew(1, [0, 0], orders=MAX_IN_FLIGHT)
    communicator.send_all(dealer.ahead())
    assert len(communicator.workers[0].orders) == MAX_IN_FLIGHT
    for _ in range(10):
        finish(communicator, tables, 0)
    communicator.send_all(dealer.ahead())
    assert len(communicator.workers[0].orders) == MAX_IN_FLIGHT


def test_a_balance_moves_tables_when_their_worker_is_done_with_them() -> None:
    dealer, communicator, tables = crew(2, [0, 0, 0, 0])
    communicator.send_all(dealer.ahead())
    dealer.balance()
    moving = [table for table in tables if table.moving]
    assert len(moving) == 2
    communicator.given()
    for table in moving:
        table.add_order(slab=50, state_slot=50, version=1)
    communicator.send_all(dealer.ahead())
    assert communicator.given() == [], "what is in hand is played there"
    for _ in range(4):
        finish(communicator, tables, 0)
    communicator.send_all(dealer.ahead())
    assert communicator.sent == [(1, table.number, Start.LOAD) for table in moving]
    assert Counter(table.worker for table in tables) == {0: 2, 1: 2}
    assert communicator.workers[0].stale == [table.number for table in moving]


def test_a_balance_leaves_alone_what_is_even() -> None:
    for held in ([0, 0, 1], [0, 1], [0, 0, 0, 1, 1]):
        dealer, communicator, tables = crew(2, list(held))
        communicator.send_all(dealer.ahead())
        dealer.balance()
        assert not any(table.moving for table in tables)


def test_a_balance_takes_tables_from_those_that_rest() -> None:
    dealer, communicator, tables = crew(2, [0, 0, 1])
    communicator.send_all(dealer.ahead())
    communicator.workers[0].pause()
    dealer.balance()
    assert [table.moving for table in tables] == [True, True, False]
    for _ in range(2):
        finish(communicator, tables, 0)
    for table in tables[:2]:
        table.add_order(slab=50, state_slot=50, version=1)
    communicator.send_all(dealer.ahead())
    assert {table.worker for table in tables} == {1}


def test_two_balances_in_a_row_move_no_more_than_one() -> None:
    dealer, communicator, tables = crew(3, [0] * 6)
    communicator.send_all(dealer.ahead())
    dealer.balance()
    moving = [table.number for table in tables if table.moving]
    dealer.balance()
    assert [table.number for table in tables if table.moving] == moving
    assert len(moving) == 4


# With workers that play.


def watched(manager: ParallelManager) -> Counter[str]:
    """Counts, whenever the manager is about to wait, whether somebody rests although a table waits."""
    pump, looks = manager.supervisor.pump, Counter[str]()

    def look(timeout: float) -> None:
        waiting = [table for table in manager.tables if table.waits and not table.dealt]
        resting = [worker for worker in manager.workers if worker.can_play and not worker.orders]
        looks["in vain" if waiting and resting else "fine"] += 1
        looks["queue"] += bool(waiting)
        pump(timeout)

    manager.supervisor.pump = look  # type: ignore[method-assign]
    return looks


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("workers", [2, 3])
def test_nobody_rests_while_a_table_waits(backend: str, workers: int) -> None:
    options = {"step_seconds": 0.001, "uneven": True}
    with manager_of(TROUBLED, backend, options=options, tables=5, num_workers=workers) as manager:
        looks = watched(manager)
        for number in range(6):
            manager.collect_experiences()
            if number == 3:
                manager.add_workers()
        slabs = [worker.totals.slabs for worker in manager.workers]
    assert looks["in vain"] == 0
    assert looks["fine"] > 0
    assert looks["queue"] > 0, "there was something to share out"
    assert sum(slabs) == 30
    assert min(slabs) > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_worker_with_nothing_to_do_takes_anothers_table(backend: str) -> None:
    played: dict[int, set[int]] = {table: set() for table in range(4)}
    with manager_of(TROUBLED, backend, options={"step_seconds": 0.002}, tables=4) as manager:
        manager.pause_workers([1])
        experiences = manager.collect_experiences()
        assert players(experiences) == {0}, "all tables are in its hands"
        manager.resume_workers()
        for _ in range(3):
            for item in manager.collect_experiences():
                played[item.record.table].add(item.record.worker)
        held = Counter(table.worker for table in manager.tables)
    assert {worker for workers in played.values() for worker in workers} == {0, 1}
    assert held[1] > 0


def test_a_table_stays_with_the_worker_that_has_its_games() -> None:
    """Where there is a table for each worker, nothing is ever loaded."""
    loads: list[Any] = []
    with manager_of(TROUBLED, "thread", options={"step_seconds": 0.001}, tables=2) as manager:
        send = manager.communicator.send

        def note(worker: Worker, orders: list[Order]) -> None:
            loads.extend(order for order in orders if order.start is Start.LOAD)
            send(worker, orders)

        manager.communicator.send = note  # type: ignore[method-assign]
        for _ in range(10):
            manager.collect_experiences()
    assert loads == []
