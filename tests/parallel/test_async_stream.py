"""The asynchronous stream: workers play on while the learner learns, and every collection gets on."""

from __future__ import annotations

import os
import signal
import time

import pytest
from games_for_tests import BACKENDS, TROUBLED, digests, manager_of, nudge, pids_of, until

from keisei.errors import ParallelError
from keisei.parallel import ParallelManager


def steps(manager: ParallelManager) -> int:
    """Made by all workers since the start."""
    return sum(int(member.memory.control[0]) for member in manager.communicator.members)


def rests(manager: ParallelManager) -> bool:
    """Whether nobody plays, because no slab is free."""
    before = steps(manager)
    time.sleep(0.2)
    return steps(manager) == before


def sequences(manager: ParallelManager, count: int) -> dict[int, list[int]]:
    """The numbers of the slabs that are handed out, by worker, until each has handed in so many."""
    found: dict[int, list[int]] = {0: [], 1: []}
    while min(map(len, found.values())) < count:
        for item in manager.collect_experiences(timeout=20):
            found[item.record.worker].append(item.record.sequence)
        manager.release_experiences()
    return found


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_workers_play_on_in_what_was_released(backend: str) -> None:
    with manager_of(backend=backend, mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        assert until(lambda: rests(manager))
        rested_at = steps(manager)
        manager.release_experiences()
        assert until(lambda: steps(manager) > rested_at)
        playing = manager.communicator.get_queue_info()["playing"]
        manager.release_experiences()
        assert manager.communicator.get_queue_info()["playing"] == playing
        assert len(manager.collect_experiences(timeout=20)) > 0


def test_inline_workers_wait_for_the_next_collection() -> None:
    with manager_of(backend="inline", mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        before = steps(manager)
        manager.release_experiences()
        assert steps(manager) == before
        assert manager.communicator.get_queue_info()["playing"] > 0
        manager.collect_experiences(timeout=20)
        assert steps(manager) > before


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
            assert info == {"slabs": 8, "playing": 0, "free": 8, "filled": 0}
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
def test_paused_workers_get_no_order_by_a_release(backend: str) -> None:
    with manager_of(backend=backend, mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(target_steps=128, timeout=20)
        manager.pause_workers([0])
        member = manager.communicator.members[0]
        ordered = member.next_sequence
        manager.release_experiences()
        assert member.next_sequence == ordered
        assert member.free_slabs
        manager.resume_workers()
        manager.release_experiences()
        assert member.next_sequence > ordered
        found = sequences(manager, 3)
    for numbers in found.values():
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_worker_that_died_gets_its_orders_when_it_is_back() -> None:
    with manager_of(mode="async", queue_maxsize=2) as manager:
        manager.collect_experiences(timeout=20)
        for pid in pids_of(manager):
            os.kill(pid, signal.SIGKILL)
        manager.release_experiences()
        handle = manager.communicator.members[0].handle
        assert until(lambda: handle is not None and not handle.is_alive())
        manager.release_experiences()
        found = sequences(manager, 4)
        assert manager.get_status().restarts >= 2
    for numbers in found.values():
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_worker_that_is_out_gets_no_order_by_a_release() -> None:
    options = {"trouble": "raise", "games_from": 4}
    with manager_of(TROUBLED, options=options, mode="async", max_failures=1) as manager:
        out = manager.communicator.members[1]
        while out.state.value != "quarantined":
            manager.collect_experiences(timeout=20)
        ordered = out.next_sequence
        manager.release_experiences()
        assert out.next_sequence == ordered
        assert {item.record.worker for item in manager.collect_experiences(timeout=20)} == {0}


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
    settings = {"experience_batch_size": 8, "queue_maxsize": 1, "mode": mode}
    with manager_of(TROUBLED, options={"step_seconds": 0.2}, **settings) as manager:
        for _ in range(2):
            manager.collect_experiences(timeout=60, target_steps=16)
            for member in manager.communicator.members:
                assert not member.orders
                member._progress_at -= 3600  # as if it had last been looked at an hour ago
        manager.collect_experiences(timeout=60)
        assert manager.get_status().restarts == 0
