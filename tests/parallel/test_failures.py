"""Failures count twice: a table that no worker can play raises, and a worker that plays no table is put out."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from games_for_tests import BACKENDS, TROUBLED, digests, manager_of, pids_of, players

from keisei.errors import CollectTimeoutError, NoWorkersError, TableFailedError, WorkerTraceback
from keisei.parallel import ParallelManager
from keisei.parallel.messages import Failed, decode_reply, encode_reply
from keisei.parallel.tables import OUTSIDE_KILLS
from keisei.parallel.workers import Worker

RAISES = {"trouble": "raise", "at": 1}


def is_told_once(error: BaseException) -> bool:
    """Whether one line has the error and its place, and the traceback is the cause."""
    line = r"RuntimeError: trouble in the game \(\S*games_for_tests\.py:\d+\)"
    return (
        "\n" not in str(error)
        and len(re.findall(line, str(error))) == 1
        and isinstance(error.__cause__, WorkerTraceback)
        and str(error.__cause__).count("Traceback (most recent call last)") == 1
        and "_make_trouble" in str(error.__cause__)
    )


def collect_often(manager: ParallelManager) -> None:
    for _ in range(20):
        manager.collect_experiences(timeout=10)


def undisturbed(tables: int = 3, rounds: int = 6) -> list[str]:
    with manager_of(TROUBLED, "inline", tables=tables, seed=11) as manager:
        return [manager.collect_experiences().digest() for _ in range(rounds)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_table_that_fails_under_two_workers_raises_and_all_workers_stay(backend: str) -> None:
    options = {**RAISES, "games_from": 4, "games_below": 8, "only_seed": 11}
    manager = manager_of(TROUBLED, backend, options=options, tables=3, num_workers=3, seed=11)
    with manager:
        with pytest.raises(TableFailedError, match="RuntimeError: trouble in the game") as caught:
            collect_often(manager)
        text = str(caught.value)
        assert "a table failed under the workers [" in text
        assert "seed 11, table 1 (games 4 … 7), epoch 0, slab " in text
        assert "reset_workers" in text
        assert is_told_once(caught.value)
        failures = list(manager.tables[1].failures)
        assert len({failure.worker for failure in failures}) == len(failures) == 2, "one of each worker"
        with pytest.raises(TableFailedError):
            manager.collect_experiences()
        assert manager.tables[1].failures == failures, "nobody was sent into it again"
        assert manager.get_status().active_workers == 3
        manager.reset_workers([1])
        for _ in range(3):
            experiences = manager.collect_experiences()
            assert {item.record.table for item in experiences} == {0, 1, 2}
        assert {item.record.epoch for item in experiences if item.record.table == 1} == {1}
        assert manager.get_status().active_workers == 3


def test_other_tables_are_what_they_are_without_the_failure() -> None:
    options = {**RAISES, "games_from": 4, "games_below": 8, "only_seed": 0}
    played: dict[tuple[int, int], bytes] = {}
    with manager_of(TROUBLED, "inline", tables=3) as calm:
        for _ in range(6):
            for item in calm.collect_experiences():
                played[item.record.table, item.record.sequence] = item.slab.action.tobytes()
    with manager_of(TROUBLED, options=options, tables=3) as manager:
        found = 0
        for _ in range(6):
            try:
                experiences = manager.collect_experiences()
            except TableFailedError:
                manager.reset_workers([1])
                continue
            for item in experiences:
                if item.record.epoch == 0:
                    place = item.record.table, item.record.sequence
                    assert item.slab.action.tobytes() == played[place]
                    found += 1
    assert found >= 9


@pytest.mark.parametrize("backend", BACKENDS)
def test_with_a_single_worker_it_is_put_out(backend: str) -> None:
    options = {**RAISES, "games_from": 4}
    with manager_of(TROUBLED, backend, options=options, num_workers=1, max_failures=3) as manager:
        with pytest.raises(NoWorkersError, match="RuntimeError: trouble in the game") as caught:
            collect_often(manager)
        assert "workers [0]: RuntimeError" in str(caught.value)
        assert "(seed 0, table 1 (games 4 … 7), epoch 0, slab " in str(caught.value)
        assert is_told_once(caught.value)
        status = manager.get_status()
        assert [worker.state for worker in status.workers] == ["quarantined"]
        assert (status.active_workers, status.restarts) == (0, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_worker_that_can_play_other_tables_is_not_to_blame(backend: str) -> None:
    """In asynchronous mode it plays these between one failure and the next."""
    settings: dict[str, Any] = {"num_workers": 1, "max_failures": 3, "mode": "async"}
    with manager_of(TROUBLED, backend, options={**RAISES, "games_from": 4}, **settings) as manager:
        with pytest.raises(TableFailedError, match=r"failed 3 times under worker 0.*table 1"):
            collect_often(manager)
        assert manager.get_status().active_workers == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_workers_that_vanish_without_a_word_count_too(mode: str) -> None:
    manager = manager_of(TROUBLED, options={"trouble": "exit", "at": 1, "games_from": 4}, mode=mode)
    with manager, pytest.raises(TableFailedError, match="it ended with exit code 3"):
        collect_often(manager)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_table_that_takes_one_worker_after_the_other_with_it_raises(workers: int) -> None:
    options = {"trouble": "kill", "at": 1, "games_from": 4}
    with manager_of(TROUBLED, options=options, num_workers=workers) as manager:
        with pytest.raises(TableFailedError, match="took one worker after the other with it") as caught:
            collect_often(manager)
        assert "want of memory" in str(caught.value)
        assert "table 1 (games 4 … 7)" in str(caught.value)
        assert manager.tables[1].outside_kills == OUTSIDE_KILLS
        assert sum(bool(table.failures) for table in manager.tables) == 0


def test_who_is_stopped_from_outside_is_not_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    died, blamed = Worker.died, []

    def note(worker: Worker, error: str, *, from_outside: bool, **details: Any) -> None:
        blamed.append((worker.number, from_outside))
        died(worker, error, from_outside=from_outside, **details)

    monkeypatch.setattr(Worker, "died", note)
    expected = digests(manager_of(backend="inline"), 5)
    found = []
    with manager_of(num_workers=1, hang_timeout=0.3, max_failures=1) as manager:
        for _ in range(5):
            os.kill(pids_of(manager)[0], signal.SIGSTOP)
            found.append(manager.collect_experiences().digest())
        assert manager.get_status().restarts == 5
    assert blamed == [(0, True)] * 5
    assert found == expected


def test_a_process_that_hangs_by_itself_is_to_blame(tmp_path: Path) -> None:
    options = {"trouble": "stall", "at": 1, "games_below": 4, "marker": str(tmp_path / "stall")}
    manager = manager_of(TROUBLED, options=options, num_workers=1, hang_timeout=0.3, max_failures=1)
    with manager, pytest.raises(NoWorkersError, match=r"it made no step for 0\.3 s"):
        collect_often(manager)


def stalls(tmp_path: Path) -> dict[str, Any]:
    return {"trouble": "stall", "at": 1, "games_below": 4, "marker": str(tmp_path / "stall")}


def test_a_hung_thread_is_put_out_and_its_tables_go_on(tmp_path: Path) -> None:
    expected, found = undisturbed(), []
    with manager_of(
        TROUBLED, "thread", options=stalls(tmp_path), tables=3, hang_timeout=0.3, seed=11
    ) as manager:
        found += [manager.collect_experiences().digest() for _ in range(6)]
        (out,) = [worker for worker in manager.get_status().workers if worker.state == "quarantined"]
        assert "no step for 0.3 s, and its thread cannot be ended" in out.last_error
        assert out.tables == ()
        assert players(manager.collect_experiences()) == {1 - out.worker}
        manager.remove_workers([out.worker])
        assert manager.add_workers() == [2], (
            "its place is not given to another, since it may still write there"
        )
        info = manager.communicator.get_queue_info()
        assert info["free"] + info["filled"] == info["slabs"] == 12, "what it holds was replaced"
        (tmp_path / "stall.over").touch()
    assert found == expected


def test_a_thread_that_hangs_while_it_leaves_keeps_what_it_may_write_to(tmp_path: Path) -> None:
    expected, found = undisturbed(), []
    with manager_of(TROUBLED, "thread", options=stalls(tmp_path), tables=3, seed=11, timeout=0.3) as manager:
        with pytest.raises(CollectTimeoutError):
            found.extend(manager.collect_experiences().digest() for _ in range(6))
        (hung,) = [worker for worker in manager.workers if worker.orders]
        (order,) = hung.orders
        manager.remove_workers([hung.number])
        assert hung.state.value == "quarantined"
        moved = manager.tables[order.table].orders[0]
        assert (moved.sequence, moved.epoch) == (order.sequence, order.epoch)
        assert (moved.slab, moved.state_slot) != (order.slab, order.state_slot)
        assert moved.slab != order.slab
        (tmp_path / "stall.over").touch()
        while len(found) < 6:
            found.append(manager.collect_experiences(timeout=30).digest())
    assert found == expected


def test_workers_that_fail_alike_are_told_together() -> None:
    """However many there are, the error is there once."""
    settings: dict[str, Any] = {"tables": 3, "num_workers": 3, "max_failures": 1}
    manager = manager_of(TROUBLED, "inline", options={"trouble": "raise", "at": 0}, **settings)
    with manager:
        with pytest.raises((NoWorkersError, TableFailedError)) as caught:
            collect_often(manager)
        assert is_told_once(caught.value)


def test_a_long_error_fits_the_pipe_and_keeps_its_end() -> None:
    failed = Failed("ValueError: " + "é" * 3000, "head " + "ü" * 9000 + " tail")
    message = encode_reply(failed)
    assert len(message) <= 4096
    read = decode_reply(message)
    assert isinstance(read, Failed)
    assert read.reason.startswith("ValueError: éé")
    assert read.traceback.endswith("ü tail")
    assert decode_reply(encode_reply(Failed("a\0b", "c"))) == Failed("a b", "c")


def test_failures_of_workers_on_many_tables_put_them_out() -> None:
    """Everything fails everywhere: each table that is tried fails under both."""
    manager = manager_of(TROUBLED, options={"trouble": "raise", "at": 0}, tables=4, max_failures=2)
    with manager, pytest.raises((TableFailedError, NoWorkersError), match="trouble in the game"):
        collect_often(manager)
