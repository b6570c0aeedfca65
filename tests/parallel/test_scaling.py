"""Workers come and go while others play: by call, and by load."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from games_for_tests import BACKENDS, TROUBLED, digests, keisei_mappings, manager_of, pids_of, players

from keisei.errors import NoWorkersError, ParallelError
from keisei.parallel import ParallelConfig
from keisei.parallel import crew as crew_module
from keisei.parallel.config import MAX_WORKERS
from keisei.parallel.crew import WINDOW, LoadWatch, summed
from keisei.parallel.workers import WorkerTotals


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_are_added_and_removed_while_others_play(backend: str) -> None:
    with manager_of(backend="inline", tables=4) as undisturbed:
        expected = [undisturbed.collect_experiences().digest() for _ in range(3)]
    with manager_of(backend=backend, tables=4) as manager:
        found = [manager.collect_experiences().digest()]
        assert manager.add_workers(2) == [2, 3]
        found.append(manager.collect_experiences().digest())
        manager.remove_workers([0, 2])
        experiences = manager.collect_experiences()
        assert players(experiences) <= {1, 3}
        found.append(experiences.digest())
        states = [worker.state for worker in manager.get_status().workers]
        assert states == ["stopped", "running", "stopped", "running"]
        if backend == "process":
            assert len(pids_of(manager)) == 2
        manager.remove_workers([1, 3])
        with pytest.raises(NoWorkersError, match="no worker is left"):
            manager.collect_experiences()
        with pytest.raises(ParallelError, match="at least 1, got 0"):
            manager.add_workers(0)
    assert found == expected


def test_a_place_that_was_left_is_filled_again() -> None:
    with manager_of() as manager:
        manager.collect_experiences()
        manager.remove_workers([0])
        assert players(manager.collect_experiences()) == {1}
        assert manager.add_workers(2) == [0, 2]
        manager.pause_workers([1, 2])
        assert players(manager.collect_experiences()) == {0}


def test_when_all_have_left_others_may_come() -> None:
    expected = digests(manager_of(backend="inline"), 2)
    with manager_of() as manager:
        found = [manager.collect_experiences().digest()]
        manager.remove_workers([0, 1])
        manager.add_workers()
        found.append(manager.collect_experiences().digest())
    assert found == expected


def test_there_is_room_for_so_many_and_no_more() -> None:
    with manager_of(backend="inline") as manager:
        with pytest.raises(ParallelError, match=f"room for {MAX_WORKERS} workers, and this makes 513"):
            manager.add_workers(MAX_WORKERS - 1)
        assert len(manager.workers) == 2
        assert len(manager.add_workers(MAX_WORKERS - 2)) == MAX_WORKERS - 2
        with manager_of(backend="inline") as other:
            assert manager.collect_experiences().digest() == other.collect_experiences().digest()


def test_coming_and_going_costs_no_memory() -> None:
    with manager_of() as manager:
        before = keisei_mappings()
        for _ in range(5):
            manager.remove_workers([1])
            manager.add_workers()
            manager.collect_experiences()
        assert keisei_mappings() <= before + 2, "at most the views that this test has opened"
        assert len(manager.get_status().workers) == 2


def test_what_a_removed_worker_had_begun_is_still_handed_out() -> None:
    with manager_of(mode="async", queue_maxsize=3) as manager:
        first = [item.record for item in manager.collect_experiences(timeout=10)]
        manager.remove_workers([1])
        assert not manager.workers[1].orders
        found = [*first, *(item.record for item in manager.collect_experiences(timeout=10))]
        for _ in range(20):
            found += [item.record for item in manager.collect_experiences(timeout=10)]
    for table in (0, 1):
        numbers = [record.sequence for record in found if record.table == table]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= 3


class Clock:
    """Time that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(crew_module.time, "monotonic", lambda: self.now)


def advice(
    monkeypatch: pytest.MonkeyPatch,
    *,
    workers: int,
    learner_waits: float,
    crew: WorkerTotals,
    **settings: object,
) -> int:
    """What a window of collections leads to, each of which takes a second."""
    with monkeypatch.context() as patch:
        clock = Clock(patch)
        watch = LoadWatch(ParallelConfig.model_validate({"scaling": "auto", "max_workers": 4, **settings}))
        for _ in range(WINDOW):
            assert watch.advice(workers, crew) == 0, "only whole windows count"
            clock.now += 1.0
            watch.learner_waited(learner_waits)
        return watch.advice(workers, crew)


BUSY, IDLE = WorkerTotals(seconds=10, waited_seconds=1), WorkerTotals(seconds=1, waited_seconds=10)


def test_a_starved_learner_gets_a_worker_more_and_idle_workers_become_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert advice(monkeypatch, workers=2, learner_waits=0.9, crew=BUSY) == 1
    assert advice(monkeypatch, workers=2, learner_waits=0.1, crew=IDLE) == -1
    assert advice(monkeypatch, workers=2, learner_waits=0.1, crew=BUSY) == 0
    assert advice(monkeypatch, workers=4, learner_waits=0.9, crew=BUSY) == 0, "max_workers"
    assert advice(monkeypatch, workers=1, learner_waits=0.1, crew=IDLE) == 0, "min_workers"
    assert advice(monkeypatch, workers=2, learner_waits=0.1, crew=IDLE, min_workers=2) == 0
    assert advice(monkeypatch, workers=2, learner_waits=0.9, crew=BUSY, scaling="fixed") == 0


def test_what_workers_did_before_the_window_does_not_count() -> None:
    watch = LoadWatch(ParallelConfig(scaling="auto", max_workers=4))
    for _ in range(2):
        for _ in range(WINDOW):
            watch.learner_waited(0.0)
        last = watch.advice(3, WorkerTotals(seconds=100, waited_seconds=900))
    assert last == 0, "in the second window nobody waited"


def test_totals_add_up() -> None:
    total = summed([WorkerTotals(seconds=1, waited_seconds=2), WorkerTotals(seconds=10, waited_seconds=20)])
    assert (total.seconds, total.waited_seconds) == (11, 22)


def test_the_crew_follows_the_load() -> None:
    """Slow games and a quick learner, and then a learner that takes its time."""
    options = {"step_seconds": 0.002}
    settings = {"scaling": "auto", "max_workers": 2, "mode": "async", "queue_maxsize": 1}
    manager = manager_of(TROUBLED, "thread", options=options, num_workers=1, **settings)

    def collect_until(workers: int, seconds_of_learning: float) -> None:
        for _ in range(10 * WINDOW):
            if manager.get_status().active_workers == workers:
                return
            time.sleep(seconds_of_learning)
            manager.collect_experiences(target_steps=32, timeout=10)

    with manager:
        collect_until(workers=2, seconds_of_learning=0)
        assert manager.get_status().active_workers == 2
        collect_until(workers=1, seconds_of_learning=0.1)
        assert manager.get_status().active_workers == 1


def test_a_worker_that_cannot_be_added_by_load_costs_no_experience(tmp_path: Path) -> None:
    options = {"only_starts": 2, "marker": str(tmp_path / "start"), "step_seconds": 0.002}
    manager = manager_of(TROUBLED, "thread", options=options, num_workers=1, scaling="auto", max_workers=2)
    with manager:
        for _ in range(WINDOW + 2):
            assert len(manager.collect_experiences()) == 64
        status = manager.get_status()
        assert status.active_workers == 1
        assert "no more than 2 games start" in status.last_error
