"""A table by itself: its orders, where its games are taken up, and how its failures count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from games_for_tests import manager_of

from keisei.errors import ParallelError
from keisei.experience.slab import SlabRecord
from keisei.parallel import ParallelConfig, tables
from keisei.parallel.deliveries import Stock
from keisei.parallel.messages import THROUGH_PIPE, Order, Start
from keisei.parallel.tables import FAILURE_WINDOW, OUTSIDE_KILLS, SavedGames, Table

ALL = 1 << 10


def table_with(orders: int, saved: SavedGames | None = None) -> Table:
    table = Table(number=2, games=4, seed=7, saved=saved)
    for number in range(orders):
        table.add_order(slab=number, state_slot=10 + number, version=1)
    return table


def record_of(order: Order, **changes: int) -> SlabRecord:
    record = SlabRecord(
        table=order.table, worker=0, epoch=order.epoch, sequence=order.sequence, slab=order.slab, version=1,
        transitions=32, checksum=0, started=0.0, seconds=1.0, game_seconds=0.0, policy_seconds=0.0,
        waited_seconds=0.0, state_slot=order.state_slot,
    )  # fmt: skip
    return replace(record, **changes)


def starts(sent: list[Order]) -> list[Start]:
    return [order.start for order in sent]


def test_orders_count_on() -> None:
    table = table_with(3)
    assert [order.sequence for order in table.orders] == [0, 1, 2]
    assert {(order.table, order.epoch) for order in table.orders} == {(2, 0)}
    assert (table.first_game, table.waits) == (8, True)


def test_a_worker_begins_goes_on_or_loads() -> None:
    table = table_with(2)
    assert starts(table.deal(0, newest=1, most=ALL)) == [Start.BEGIN, Start.GO_ON]
    table.add_order(slab=5, state_slot=15, version=1)
    assert starts(table.deal(0, newest=1, most=ALL)) == [Start.GO_ON]
    table.done(record_of(table.orders[0]))
    table.drop_hands()
    first, second = table.deal(1, newest=1, most=ALL)
    assert (first.start, first.source, first.sequence) == (Start.LOAD, 10, 1)
    assert second.start is Start.GO_ON
    table.drop_hands()
    assert starts(table.deal(1, newest=1, most=ALL))[0] is Start.LOAD, (
        "also the same one, where it was dropped"
    )


def test_before_anything_was_handed_in_all_workers_begin() -> None:
    table = table_with(1)
    table.deal(0, newest=1, most=ALL)
    table.drop_hands()
    assert starts(table.deal(1, newest=1, most=ALL)) == [Start.BEGIN]


def test_a_reset_begins_where_orders_have_not_been_dealt() -> None:
    table = table_with(2)
    table.deal(0, newest=1, most=1)
    table.reset()
    assert [order.epoch for order in table.orders] == [0, 1]
    table.add_order(slab=5, state_slot=15, version=1)
    assert starts(table.deal(0, newest=1, most=ALL)) == [Start.BEGIN, Start.GO_ON]
    table.done(record_of(table.orders[0]))
    table.drop_hands()
    assert starts(table.deal(1, newest=1, most=ALL)) == [Start.BEGIN, Start.GO_ON], "the state is of epoch 0"


def test_no_more_is_dealt_than_a_worker_takes() -> None:
    table = table_with(5)
    assert [order.sequence for order in table.deal(0, newest=1, most=2)] == [0, 1]
    assert (table.dealt, table.waits) == (2, True)
    assert [order.sequence for order in table.deal(0, newest=1, most=ALL)] == [2, 3, 4]
    assert not table.waits


def test_a_table_in_hand_is_given_to_nobody_else() -> None:
    table = table_with(2)
    table.deal(0, newest=1, most=1)
    with pytest.raises(ParallelError, match="table 2 is played by worker 0"):
        table.deal(1, newest=1, most=1)


def test_orders_that_outlived_their_weights_get_the_newest() -> None:
    table = table_with(1)
    table.add_order(slab=1, state_slot=11, version=-1)
    first, second = table.deal(0, newest=4, most=ALL)
    assert (first.version, second.version) == (4, -1)
    assert table.orders[0].version == 4
    table.drop_hands()
    assert table.deal(0, newest=4, most=ALL)[0].version == 4


def test_the_state_before_is_free_when_the_next_has_come() -> None:
    table = table_with(3)
    table.deal(0, newest=1, most=ALL)
    assert table.done(record_of(table.orders[0])) == []
    assert table.done(record_of(table.orders[0])) == [10]
    assert table.saved == SavedGames(0, 11)
    assert table.dealt == len(table.orders) == 1


def test_a_state_that_came_through_the_pipe_needs_no_slot() -> None:
    table = table_with(3)
    table.deal(0, newest=1, most=ALL)
    assert table.done(record_of(table.orders[0])) == []
    for number, content in enumerate((b"ab", b"cd")):
        table.take_piece(content, is_first=number == 0)
    assert table.done(record_of(table.orders[0], state_slot=THROUGH_PIPE)) == [10, 11]
    assert table.saved == SavedGames(0, THROUGH_PIPE, b"abcd")
    assert table.done(record_of(table.orders[0])) == [], "there was no slot before"


def test_what_came_through_the_pipe_before_is_no_part_of_a_state_in_a_slot() -> None:
    table = table_with(3)
    table.deal(0, newest=1, most=ALL)
    table.take_piece(b"large", is_first=True)
    table.done(record_of(table.orders[0], state_slot=THROUGH_PIPE))
    table.done(record_of(table.orders[0]))
    assert table.saved == SavedGames(0, 11), "smaller now, it fits again"
    table.take_piece(b"half of a large", is_first=True)
    table.drop_hands()
    table.deal(1, newest=1, most=ALL)
    table.done(record_of(table.orders[0]))
    assert table.saved == SavedGames(0, 12), "whoever sent the half is gone"


@pytest.mark.parametrize("changes", [{"sequence": 1}, {"epoch": 1}, {"slab": 9}])
def test_a_slab_that_was_not_ordered_is_refused(changes: dict[str, int]) -> None:
    table = table_with(1)
    with pytest.raises(ParallelError, match="delivered slab 0 of table 2, but its order is None"):
        table.done(record_of(table.orders[0]))
    table.deal(0, newest=1, most=ALL)
    with pytest.raises(ParallelError, match="but its order is"):
        table.done(record_of(table.orders[0], **changes))


def test_failures_under_two_workers_are_the_tables_own() -> None:
    table = table_with(1)
    for _ in range(4):
        table.note_failure(0, "an error", from_outside=False)
    assert not table.is_hopeless(max_failures=5)
    table.note_failure(1, "an error", from_outside=False)
    assert table.is_hopeless(max_failures=5)
    table.reset()
    assert not table.is_hopeless(max_failures=5)


def test_so_are_many_under_one_which_may_play_other_tables_meanwhile() -> None:
    table = table_with(1)
    for number in range(5):
        assert not table.is_hopeless(max_failures=5)
        table.note_failure(3, f"error {number}", from_outside=False)
    assert table.is_hopeless(max_failures=5)
    assert table.describe_failure() == "failed 5 times under worker 3"
    assert table.last_error == "error 4"


def test_a_slab_that_is_played_wipes_the_slate() -> None:
    table = table_with(2)
    table.note_failure(0, "an error", from_outside=False)
    table.note_failure(0, "it was killed", from_outside=True)
    table.deal(0, newest=1, most=ALL)
    table.done(record_of(table.orders[0]))
    table.note_failure(1, "an error", from_outside=False)
    assert not table.is_hopeless(max_failures=5)
    assert table.outside_kills == 0


def test_failures_long_ago_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(tables.time, "monotonic", lambda: now[0])
    table = table_with(1)
    table.note_failure(0, "an error", from_outside=False)
    now[0] += FAILURE_WINDOW + 1
    table.note_failure(1, "an error", from_outside=False)
    assert not table.is_hopeless(max_failures=5)


def test_kills_from_outside_count_apart() -> None:
    table = table_with(1)
    for number in range(OUTSIDE_KILLS):
        assert not table.is_hopeless(max_failures=5)
        table.note_failure(number % 3, "it was killed", from_outside=True)
    assert table.is_hopeless(max_failures=5)
    assert table.failures == []


def test_orders_move_away_from_a_thread_that_may_still_write() -> None:
    table, stock = table_with(3), Stock(ParallelConfig(backend="thread", tables=1, queue_maxsize=3))
    table.deal(0, newest=1, most=2)
    table.move_orders(stock.replace_lost)
    assert [order.slab for order in table.orders] == [5, 4, 2]
    assert [order.sequence for order in table.orders] == [0, 1, 2]
    assert not {order.state_slot for order in list(table.orders)[:2]} & {10, 11}
    stock.replace_lost()
    with pytest.raises(ParallelError, match="all spare memory is lost"):
        stock.replace_lost()


def test_slots_and_slabs_come_back_whatever_happens() -> None:
    """After many rounds, resets and resumptions, each table holds one slot, and every slab is free."""
    with manager_of(backend="inline", tables=3, queue_maxsize=2) as manager:
        stock = manager.stock
        total = len(stock._free_slots)
        assert total == 6 + 3
        for number in range(12):
            manager.collect_experiences(target_steps=300)
            if number % 4 == 1:
                manager.reset_workers([number % 3])
        manager.release_experiences()
        assert sorted(stock._free_slabs) == list(range(6))
        assert len(set(stock._free_slots)) == len(stock._free_slots) == total - 3
        snapshots = manager.snapshot()
    resumed = manager_of(backend="inline", tables=3, queue_maxsize=2)
    resumed.start_workers(snapshots)
    with resumed:
        resumed.collect_experiences()
        assert len(resumed.stock._free_slots) == total - 3
