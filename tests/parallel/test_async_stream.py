"""The asynchronous stream: workers play on while the learner learns, and every collection gets on."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

import pytest
from games_for_tests import (
    BACKENDS,
    TROUBLED,
    digests,
    manager_of,
    nudge,
    pids_of,
    players,
    rests,
    sequences_of,
    steps_of,
    until,
)

from keisei.errors import ParallelError, TableFailedError
from keisei.parallel import ParallelManager


def has_no_gap(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def ordered(manager: ParallelManager) -> int:
    """Slabs that were ever ordered."""
    return sum(table.next_sequence for table in manager.tables)


def comes(manager: ParallelManager, holds: Callable[[], bool]) -> bool:
    """Whether something is so after a few collections more: tables move when their workers are done with them."""
    for _ in range(50):
        if holds():
            return True
        manager.collect_experiences(timeout=20)
        manager.release_experiences()
    return False


def undisturbed(slabs: int, tables: int) -> dict[tuple[int, int], bytes]:
    """What each table plays at random, slab by slab."""
    with manager_of("connect-four", backend="inline", tables=tables) as manager:
        return {
            (item.record.table, item.record.sequence): item.slab.action.tobytes()
            for _ in range(slabs)
            for item in manager.collect_experiences()
        }


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_workers_play_on_in_what_was_released(backend: str) -> None:
    with manager_of(backend=backend, mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        assert until(lambda: rests(manager))
        rested_at = steps_of(manager)
        manager.release_experiences()
        assert until(lambda: steps_of(manager) > rested_at)
        playing = manager.communicator.get_queue_info()["playing"]
        manager.release_experiences()
        assert manager.communicator.get_queue_info()["playing"] == playing
        assert len(manager.collect_experiences(timeout=20)) > 0


def test_inline_workers_wait_for_the_next_collection() -> None:
    with manager_of(backend="inline", mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        before = steps_of(manager)
        manager.release_experiences()
        assert steps_of(manager) == before
        assert manager.communicator.get_queue_info()["playing"] > 0
        manager.collect_experiences(timeout=20)
        assert steps_of(manager) > before


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_lock_step_a_release_orders_nothing_and_changes_nothing(backend: str) -> None:
    expected = digests(manager_of(backend="inline"), 3)
    found = []
    with manager_of(backend=backend) as manager:
        manager.release_experiences()
        for _ in range(3):
            found.append(manager.collect_experiences().digest())
            manager.release_experiences()
            manager.release_experiences()
            info = manager.communicator.get_queue_info()
            assert info == {"slabs": 8, "playing": 0, "free": 8, "filled": 0, "leased": 0}
    assert found == expected


def test_a_release_wants_a_manager_that_runs() -> None:
    manager = manager_of(backend="inline")
    with pytest.raises(ParallelError, match="release_experiences was called, but the manager has not been"):
        manager.release_experiences()


def test_copies_outlive_a_release() -> None:
    with manager_of(mode="async", use_shared_memory=False, queue_maxsize=1) as manager:
        experiences = manager.collect_experiences(timeout=20)
        before = experiences.digest()
        for _ in range(3):
            manager.release_experiences()
            manager.collect_experiences(timeout=20)
        assert experiences.digest() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_release_gives_all_tables_to_those_that_do_not_rest(backend: str) -> None:
    with manager_of(backend=backend, mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(target_steps=128, timeout=20)
        manager.pause_workers([0])
        resting = manager.workers[0]
        in_hand = list(resting.orders)
        before = ordered(manager)
        manager.release_experiences()
        assert list(resting.orders) == in_hand, "it got no order"
        assert ordered(manager) > before
        found = sequences_of(manager, 4)
        assert comes(manager, lambda: {table.worker for table in manager.tables} == {1})
        manager.resume_workers()
        later = sequences_of(manager, 8)
        assert comes(manager, lambda: {table.worker for table in manager.tables} == {0, 1})
    assert all(map(has_no_gap, [*found.values(), *later.values()]))


def test_with_everybody_at_rest_a_release_orders_nothing() -> None:
    with manager_of(mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        manager.pause_workers()
        before = ordered(manager)
        manager.release_experiences()
        assert ordered(manager) == before
        manager.resume_workers()
        manager.release_experiences()
        assert ordered(manager) > before


def test_workers_that_died_get_their_orders_when_they_are_back() -> None:
    with manager_of(mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        for pid in pids_of(manager):
            os.kill(pid, signal.SIGKILL)
        manager.release_experiences()
        handle = manager.workers[0].handle
        assert until(lambda: handle is not None and not handle.is_alive())
        manager.release_experiences()
        found = sequences_of(manager, 4)
        assert manager.get_status().restarts >= 2
    assert all(map(has_no_gap, found.values()))


def test_a_table_that_always_fails_is_told_also_here() -> None:
    options = {"trouble": "raise", "games_from": 4}
    with (
        manager_of(TROUBLED, options=options, mode="async") as manager,
        pytest.raises(TableFailedError, match=r"failed under the workers \[0, 1\].*seed 0, table 1"),
    ):
        comes(manager, lambda: False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_worker_that_is_added_plays(backend: str) -> None:
    with manager_of(backend=backend, mode="async", tables=6, num_workers=1, queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        assert manager.add_workers() == [1]
        found = sequences_of(manager, 6)
        assert comes(manager, lambda: Counter(table.worker for table in manager.tables) == {0: 3, 1: 3})
        assert manager.workers[1].totals.slabs > 0
    assert all(map(has_no_gap, found.values()))


def test_a_worker_that_leaves_hands_its_tables_on() -> None:
    with manager_of(mode="async", tables=5, num_workers=3, queue_maxsize=2) as manager:
        first = sequences_of(manager, 2)
        manager.remove_workers([0, 2])
        later = sequences_of(manager, 6)
        assert {table.worker for table in manager.tables} == {1}
        assert players(manager.collect_experiences(timeout=20)) == {1}
    for table, numbers in first.items():
        assert has_no_gap(numbers + later[table])
        assert numbers[0] == 0


def test_hands_change_and_the_games_stay_the_same() -> None:
    """Workers come, go, rest and die; each slab is what the table plays undisturbed, once and in its order."""
    played = undisturbed(40, tables=4)
    found: dict[int, list[int]] = {table: [] for table in range(4)}
    with manager_of("connect-four", mode="async", tables=4, queue_maxsize=3) as manager:
        changes = [
            lambda: manager.add_workers(),
            lambda: manager.pause_workers([0]),
            lambda: os.kill(pids_of(manager)[1], signal.SIGKILL),
            lambda: manager.resume_workers(),
            lambda: manager.remove_workers([1]),
            lambda: os.kill(pids_of(manager)[0], signal.SIGKILL),
            lambda: manager.add_workers(),
        ]
        while min(map(len, found.values())) < 30:
            for item in manager.collect_experiences(timeout=20):
                place = item.record.table, item.record.sequence
                assert item.slab.action.tobytes() == played.get(place, item.slab.action.tobytes())
                found[item.record.table].append(item.record.sequence)
            manager.release_experiences()
            if changes:
                changes.pop(0)()
    for numbers in found.values():
        assert numbers == list(range(len(numbers)))


def test_a_slab_that_is_played_again_takes_the_newest_weights_and_comes_once() -> None:
    with manager_of(model={"hidden_dim": 8}, mode="async", num_workers=1, queue_maxsize=1) as manager:
        manager.collect_experiences(target_steps=64, timeout=20)  # of both tables, so the worker rests
        (pid,) = pids_of(manager)
        os.kill(pid, signal.SIGSTOP)
        manager.release_experiences()  # orders that a stopped worker will not begin
        waiting = [table.orders[0].sequence for table in manager.tables]
        nudge(manager)
        version = manager.sync_model_to_workers()
        os.kill(pid, signal.SIGKILL)
        found = [
            (item.record.table, item.record.sequence, item.record.version)
            for _ in range(6)
            for item in manager.collect_experiences(target_steps=64, timeout=20)
        ]
    places = [place[:2] for place in found]
    assert len(set(places)) == len(places)
    for table, sequence in enumerate(waiting):
        assert (table, sequence, version) in found


@pytest.mark.parametrize("learner", ["fast", "slow"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_with_no_lag_allowed_every_collection_still_gets_on(backend: str, learner: str) -> None:
    """Weights change between any two collections, before workers have begun anything or after all is played."""
    with manager_of(
        backend=backend, model={"hidden_dim": 8}, mode="async", max_policy_lag=0, queue_maxsize=2
    ) as manager:
        for version in range(1, 6):
            experiences = manager.collect_experiences(target_steps=100, timeout=60)
            assert len(experiences) >= 100
            assert set(experiences.column("version").tolist()) == {version}
            assert experiences.policy_lag == 0
            manager.release_experiences()
            if learner == "slow":
                assert until(lambda: rests(manager)), "all slabs are full, of weights that will be too old"
            nudge(manager)
            manager.sync_model_to_workers()
        if learner == "slow" and backend != "inline":  # inline workers had not played yet
            assert manager.get_status().drops.lagging > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_learner_that_never_waits_gets_what_has_come(backend: str) -> None:
    with manager_of(backend=backend, mode="async") as manager:
        collected: list[int] = []

        def enough() -> bool:
            collected.append(len(manager.collect_experiences(timeout=0)))
            return sum(collected) >= 500

        assert until(enough)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_that_rested_while_the_learner_learned_is_not_called_hung(mode: str) -> None:
    """Nobody looks at workers between two collections, and their first step takes longer than a look."""
    settings = {"horizon": 2, "queue_maxsize": 1, "mode": mode}
    with manager_of(TROUBLED, options={"step_seconds": 0.2}, **settings) as manager:
        for _ in range(2):
            manager.collect_experiences(timeout=60, target_steps=16)
            for worker in manager.workers:
                assert not worker.orders
                worker._progress_at -= 3600  # as if it had last been looked at an hour ago
        manager.collect_experiences(timeout=60)
        assert manager.get_status().restarts == 0
