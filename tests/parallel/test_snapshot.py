"""A manager that is stopped and made anew goes on as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest

from keisei.errors import ParallelError
from keisei.parallel import ParallelManager

MODEL = {"hidden_dim": 16, "num_layers": 1}
SETTINGS: dict[str, Any] = {"tables": 2, "games": 4, "horizon": 16, "num_workers": 2, "seed": 5}
INLINE = SETTINGS | {"backend": "inline"}


def digests(manager: ParallelManager, rounds: int) -> list[str]:
    return [manager.collect_experiences().digest() for _ in range(rounds)]


@pytest.mark.parametrize("game", ["shogi", "connect-four", "ludo"])
@pytest.mark.parametrize("reset", [False, True])
def test_a_resumed_manager_gives_the_same_bits(game: str, reset: bool) -> None:
    with ParallelManager({"game": game}, MODEL, INLINE) as whole:
        first = digests(whole, 3)
        if reset:
            whole.reset_workers()
            first += digests(whole, 1)
        rest = digests(whole, 2)
    with ParallelManager({"game": game}, MODEL, SETTINGS) as broken:
        assert digests(broken, 3) == first[:3]
        if reset:
            broken.reset_workers()
            digests(broken, 1)
        snapshots = broken.snapshot()
    resumed = ParallelManager({"game": game}, MODEL, SETTINGS)
    resumed.start_workers(snapshots)
    try:
        assert digests(resumed, 2) == rest
    finally:
        resumed.stop_workers()


def undisturbed(slabs: int) -> dict[tuple[int, int], bytes]:
    """What each table plays at random, slab by slab."""
    played = {}
    with ParallelManager({"game": "connect-four"}, None, INLINE) as manager:
        for _ in range(slabs):
            for item in manager.collect_experiences():
                played[item.record.table, item.record.sequence] = item.slab.action.tobytes()
    return played


@pytest.mark.parametrize("backend", ["inline", "process"])
def test_an_asynchronous_run_is_resumed_where_each_table_was_last_handed_in(backend: str) -> None:
    played = undisturbed(40)
    settings = SETTINGS | {"mode": "async", "queue_maxsize": 3, "backend": backend}
    with ParallelManager({"game": "connect-four"}, None, settings) as broken:
        handed_out = {0: 0, 1: 0}
        while min(handed_out.values()) < 3:
            for item in broken.collect_experiences(timeout=20):
                handed_out[item.record.table] += 1
            broken.release_experiences()
        assert any(worker.orders for worker in broken.workers), "workers are at play"
        snapshots = broken.snapshot()
    resumed = ParallelManager({"game": "connect-four"}, None, settings)
    resumed.start_workers(snapshots)
    found: dict[int, list[int]] = {0: [], 1: []}
    try:
        while min(map(len, found.values())) < 4:
            for item in resumed.collect_experiences(timeout=20):
                place = item.record.table, item.record.sequence
                found[item.record.table].append(item.record.sequence)
                actions = item.slab.action.tobytes()
                assert played.get(place, actions) == actions
    finally:
        resumed.stop_workers()
    for taken in snapshots:
        first = found[taken.table][0]
        assert first == taken.sequence >= handed_out[taken.table]
        assert (taken.table, first) in played
        assert found[taken.table] == list(range(first, first + len(found[taken.table])))


def test_an_asynchronous_snapshot_knows_of_resets() -> None:
    settings = INLINE | {"mode": "async", "tables": 1, "num_workers": 1}
    with ParallelManager({"game": "tictactoe"}, None, settings) as broken:
        broken.collect_experiences(timeout=20)
        broken.reset_workers()
        while broken.collect_experiences(timeout=20).slabs[0].record.epoch == 0:
            pass
        snapshots = broken.snapshot()
    assert [taken.epoch for taken in snapshots] == [1]
    resumed = ParallelManager({"game": "tictactoe"}, None, settings)
    resumed.start_workers(snapshots)
    try:
        (item, *_) = resumed.collect_experiences(timeout=20)
        assert (item.record.epoch, item.record.sequence) == (1, snapshots[0].sequence)
    finally:
        resumed.stop_workers()


def test_in_lock_step_a_snapshot_waits_for_its_turn() -> None:
    with ParallelManager({"game": "tictactoe"}, None, INLINE) as manager:
        manager.tables[0].add_order(slab=0, state_slot=0, version=0)
        with pytest.raises(ParallelError, match="between two synchronous collections"):
            manager.snapshot()


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 5)])
def test_any_number_of_workers_takes_a_snapshot_up(before: int, after: int) -> None:
    settings = SETTINGS | {"tables": 5}
    with ParallelManager({"game": "connect-four"}, MODEL, settings | {"backend": "inline"}) as whole:
        expected = digests(whole, 5)
    with ParallelManager({"game": "connect-four"}, MODEL, settings | {"num_workers": before}) as broken:
        assert digests(broken, 3) == expected[:3]
        snapshots = broken.snapshot()
    resumed = ParallelManager({"game": "connect-four"}, MODEL, settings | {"num_workers": after})
    resumed.start_workers(snapshots)
    with resumed:
        assert digests(resumed, 2) == expected[3:]


def test_a_snapshot_before_the_first_slab_begins_at_the_beginning() -> None:
    with ParallelManager({"game": "tictactoe"}, None, INLINE) as whole:
        snapshots = whole.snapshot()
        assert all(taken.state == b"" for taken in snapshots)
        expected = digests(whole, 2)
    resumed = ParallelManager({"game": "tictactoe"}, None, INLINE)
    resumed.start_workers(snapshots)
    with resumed:
        assert digests(resumed, 2) == expected


def test_a_snapshot_of_a_table_that_is_not_there_is_refused() -> None:
    with ParallelManager({"game": "tictactoe"}, None, INLINE) as broken:
        snapshots = broken.snapshot()
    manager = ParallelManager({"game": "tictactoe"}, None, INLINE | {"tables": 1})
    with pytest.raises(ParallelError, match="a snapshot is of table 1, and there are 1 tables"):
        manager.start_workers(snapshots)


def test_a_snapshot_wants_a_manager_that_runs() -> None:
    manager = ParallelManager({"game": "tictactoe"}, None, SETTINGS)
    with pytest.raises(ParallelError, match="has not been started"):
        manager.snapshot()
