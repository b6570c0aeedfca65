"""Whatever goes wrong ends in the right state or in a clear error, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from games_for_tests import (
    BACKENDS,
    TROUBLED,
    is_running,
    keisei_mappings,
    manager_of,
    nudge,
    pids_of,
    rests,
    steps_of,
    until,
    worker_processes,
)

from keisei.errors import CollectTimeoutError, ParallelError, WorkerStartError
from keisei.parallel import ParallelManager
from keisei.parallel.plan import MAX_IN_FLIGHT


def test_patience_has_an_end(tmp_path: Path) -> None:
    """Where a hung worker may take long, the caller gets control back; nothing that was collected is lost."""
    marker = tmp_path / "stall"
    options = {"trouble": "stall", "at": 1, "games_below": 4, "marker": str(marker)}
    with manager_of(TROUBLED, backend="inline") as calm:
        expected = [calm.collect_experiences().digest() for _ in range(5)]
    with manager_of(TROUBLED, options=options) as manager:
        found = []
        with pytest.raises(CollectTimeoutError, match=r"no worker made a step for 0\.4 s"):
            found.extend(manager.collect_experiences(timeout=0.4).digest() for _ in range(5))
        Path(f"{marker}.over").touch()
        while len(found) < 5:
            found.append(manager.collect_experiences().digest())
    assert found == expected


def test_a_start_may_take_longer_than_a_step(tmp_path: Path) -> None:
    """All workers are lost, and the new ones are slow to start. That is no reason to give up."""
    marker = tmp_path / "slow"
    settings: dict[str, Any] = {"options": {"marker": str(marker)}, "timeout": 0.3}
    with manager_of("games_for_tests:slow_to_start", backend="inline", **settings) as calm:
        expected = [calm.collect_experiences().digest() for _ in range(3)]
    with manager_of("games_for_tests:slow_to_start", **settings) as manager:
        found = [manager.collect_experiences().digest()]
        marker.touch()
        for process_id in pids_of(manager):
            os.kill(process_id, signal.SIGKILL)
        found += [manager.collect_experiences().digest() for _ in range(2)]
    assert found == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_start_that_fails_half_way_stops_the_others(backend: str, tmp_path: Path) -> None:
    options = {"only_starts": 3, "marker": str(tmp_path / "start")}
    manager = manager_of(TROUBLED, backend, options=options, num_workers=3)
    with pytest.raises(WorkerStartError, match="RuntimeError: no more than 3 games start") as caught:
        manager.start_workers()
    assert "could not be started" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" in str(caught.value.__cause__)
    assert worker_processes() == []
    with pytest.raises(ParallelError, match="has been stopped"):
        manager.collect_experiences()


def test_a_game_that_starts_in_the_parent_only_is_an_error_at_once() -> None:
    with (
        pytest.raises(WorkerStartError, match="starts in one process alone"),
        manager_of(TROUBLED, options={"only_starts_in": os.getpid()}),
    ):
        pass


def test_workers_added_later_may_fail_without_harm(tmp_path: Path) -> None:
    with manager_of(TROUBLED, options={"only_starts": 3, "marker": str(tmp_path / "start")}) as manager:
        manager.collect_experiences()
        with pytest.raises(WorkerStartError, match="worker 2 could not be started"):
            manager.add_workers()
        assert manager.get_status().active_workers == 2
        assert len(manager.collect_experiences()) == 64


@pytest.mark.parametrize("backend", BACKENDS)
def test_stopping_in_the_middle_of_slabs(backend: str) -> None:
    """Many slabs are ordered and none is read."""
    options = {"step_seconds": 0.001}
    manager = manager_of(TROUBLED, backend, options=options, mode="async", queue_maxsize=64)
    manager.start_workers()
    manager.collect_experiences(timeout=0)
    assert manager.communicator.get_queue_info()["playing"] > 0
    manager.stop_workers()
    assert {worker.state for worker in manager.get_status().workers} == {"stopped"}


def test_stopping_workers_that_hang_or_are_dead() -> None:
    with manager_of(num_workers=3) as manager:
        manager.collect_experiences()
        first, second, third = pids_of(manager)
        os.kill(first, signal.SIGSTOP)
        os.kill(second, signal.SIGKILL)
    assert until(lambda: not any(map(is_running, (first, second, third))))


def test_a_learner_that_stops_reading_makes_workers_wait() -> None:
    with manager_of(mode="async", queue_maxsize=3) as manager:
        manager.collect_experiences(timeout=10)
        mapped = keisei_mappings()
        assert until(lambda: rests(manager)), "workers wait when all slabs are full"
        assert steps_of(manager) <= 2 * 8 * (3 + 1), (
            "no more than the queue and the slab handed out, of each table"
        )
        assert keisei_mappings() == mapped
        rested_at = steps_of(manager)
        manager.collect_experiences(timeout=10)
        assert until(lambda: steps_of(manager) > rested_at), "and go on when it reads again"


def test_long_queues_do_not_block_a_pipe() -> None:
    """More orders than a pipe holds must not make manager and worker wait for each other."""
    with manager_of(mode="async", queue_maxsize=3000, tables=1, num_workers=1, horizon=1) as manager:
        collected = 0
        while collected < 8_000:
            collected += len(manager.collect_experiences(timeout=20))
        assert len(manager.collect_experiences(target_steps=2000, timeout=60)) >= 2000


def test_nor_do_they_when_a_successor_takes_them_over() -> None:
    """It does not get all orders of its table at once: it might never read them."""
    settings = {"mode": "async", "queue_maxsize": 3000, "tables": 1, "num_workers": 1, "horizon": 1}
    with manager_of(hang_timeout=0.5, **settings) as manager:
        while len(manager.tables[0].orders) < 1000:
            manager.collect_experiences(timeout=0)
        os.kill(pids_of(manager)[0], signal.SIGKILL)
        while not manager.get_status().restarts:
            manager.collect_experiences(timeout=1)
        os.kill(pids_of(manager)[0], signal.SIGSTOP)
        manager.collect_experiences(target_steps=4000, timeout=60)
        assert max(len(worker.orders) for worker in manager.workers) <= MAX_IN_FLIGHT
        assert manager.get_status().restarts >= 2


def test_a_worker_that_does_not_read_does_not_hold_up_those_that_take_its_tables() -> None:
    """It is told of each table that it may forget; but not by more messages than its pipe takes."""
    settings = {"tables": 700, "games": 1, "horizon": 1, "queue_maxsize": 1, "hang_timeout": 60, "timeout": 2}
    with manager_of(**settings) as manager:
        first = len(manager.collect_experiences(timeout=60))
        os.kill(pids_of(manager)[0], signal.SIGSTOP)

        def others_are_done() -> bool:
            with pytest.raises(CollectTimeoutError):
                manager.collect_experiences()
            return sum(bool(table.orders) for table in manager.tables) == 1

        assert until(others_are_done, seconds=60), "only what the stopped worker has in hand is left"
        os.kill(pids_of(manager)[0], signal.SIGCONT)
        assert len(manager.collect_experiences(timeout=60)) == first == 700
        assert len(manager.collect_experiences(timeout=60)) == 700
        assert manager.get_status().restarts == 0


def test_experience_that_is_too_old_is_dropped_and_counted() -> None:
    with manager_of(model={"hidden_dim": 8}, mode="async", max_policy_lag=1, queue_maxsize=4) as manager:
        experiences = manager.collect_experiences(timeout=20)
        assert until(lambda: steps_of(manager) >= 2 * 32)
        for _ in range(3):
            nudge(manager)
            manager.sync_model_to_workers()
        experiences = manager.collect_experiences(timeout=20)
        assert (experiences.column("version") >= 3).all()
        assert len(experiences) > 0
        assert experiences.policy_lag <= 1
        assert manager.get_status().drops.lagging >= 32


SCRIPT = """
    import sys, time
    sys.path.insert(0, {folder!r})
    from games_for_tests import TROUBLED, manager_of, pids_of

    manager = manager_of(TROUBLED, options={{"step_seconds": 0.02}}, mode={mode!r}, tables=3, num_workers=3)
    with manager:
        manager.collect_experiences(timeout=30)
        print(*pids_of(manager), flush=True)
        while True:
            manager.collect_experiences(timeout=30)
"""


@contextmanager
def running_script(mode: str, tmp_path: Path) -> Iterator[tuple[Any, list[int]]]:
    """A program of its own, without a guard around its main part, in the middle of collecting."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(SCRIPT.format(folder=str(Path(__file__).parent), mode=mode)))
    process = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background job has the signal ignored, and so would all its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 3
        yield process, pids
    finally:
        process.kill()
        process.communicate()


def forkserver_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_workers_end_when_their_parent_is_killed(mode: str, tmp_path: Path) -> None:
    with running_script(mode, tmp_path) as (process, pids):
        everybody = [*pids, forkserver_of(pids[0])]
        process.kill()
        assert until(lambda: not any(map(is_running, everybody)), seconds=10)


def test_workers_end_when_the_fork_server_is_killed_with_the_parent(tmp_path: Path) -> None:
    with running_script("sync", tmp_path) as (process, pids):
        os.kill(forkserver_of(pids[0]), signal.SIGKILL)
        process.kill()
        assert until(lambda: not any(map(is_running, pids)), seconds=10)


def interrupted(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C, and again where nothing comes of it: Python drops an interrupt that falls into a finaliser."""
    for _ in range(4):
        os.killpg(process.pid, signal.SIGINT)
        try:
            return process.communicate(timeout=15)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the program goes on after four interrupts")


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    with running_script("sync", tmp_path) as (process, pids):
        everybody = [*pids, forkserver_of(pids[0])]
        errors = interrupted(process)
        assert process.returncode != 0
        assert errors.count("KeyboardInterrupt") >= 1
        assert errors.count("Traceback") == 1, "only the program itself speaks of it, not its workers"
        assert until(lambda: not any(map(is_running, everybody)), seconds=10)


def learn_badly(manager: ParallelManager, pids: list[int]) -> None:
    with manager:
        manager.collect_experiences()
        pids += pids_of(manager)
        raise ZeroDivisionError


def test_an_error_in_the_learner_stops_the_workers() -> None:
    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):
        learn_badly(manager_of(), pids)
    assert len(pids) == 2
    assert not any(map(is_running, pids))
