"""Workers die, and the experience does not show it."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from games_for_tests import BACKENDS, RELAY, TROUBLED, digests, manager_of, pids_of, players

from keisei.errors import CollectTimeoutError
from keisei.experience.slab import SlabRecord
from keisei.parallel import ParallelManager
from keisei.parallel.messages import Order, Start
from keisei.parallel.workers import Worker

ROUNDS = 12


@contextmanager
def killer(manager: ParallelManager, signals: list[signal.Signals], every: float) -> Iterator[list[int]]:
    """Sends signals to random workers at random instants, for as long as the block lasts. A worker is struck again
    only after it has handed in something, or a slow machine would never get on."""
    over, hits, rng = threading.Event(), [0], random.Random(3)
    slabs_when_struck: dict[int, int] = {}

    def strike() -> None:
        while not over.wait(every * rng.uniform(0.2, 1.8)):
            targets = [
                worker
                for worker in manager.workers
                if worker.handle is not None
                and worker.totals.slabs > slabs_when_struck.get(worker.number, -1)
            ]
            if targets:
                worker = rng.choice(targets)
                slabs_when_struck[worker.number] = worker.totals.slabs
                with suppress(ProcessLookupError, TypeError, AttributeError):
                    os.kill(worker.handle.process_id, rng.choice(signals))
                    hits[0] += 1

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield hits
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("inference", ["worker", "central"])
@pytest.mark.parametrize("game", ["shogi", RELAY])
def test_killed_workers_leave_no_trace_in_the_experience(game: str, inference: str) -> None:
    settings: dict[str, Any] = {
        "game": game,
        "model": {"hidden_dim": 32},
        "tables": 3,
        "games": 8,
        "horizon": 16,
        "inference": inference,
        "queue_maxsize": 2,
    }
    expected = digests(manager_of(backend="inline", **settings), ROUNDS, target=700)
    manager = manager_of(**settings)
    # A start keeps the manager from answering for some hundredths of a second, so central slabs take longer.
    every = 0.3 if inference == "central" else 0.1
    with manager, killer(manager, [signal.SIGKILL], every) as hits:
        found = digests(manager, ROUNDS, target=700)
    assert found == expected
    assert hits[0] > 0


def test_stopped_workers_leave_no_trace_either() -> None:
    settings: dict[str, Any] = {"game": "shogi", "model": {"hidden_dim": 32}, "horizon": 16}
    expected = digests(manager_of(backend="inline", **settings), 20, target=500)
    manager = manager_of(hang_timeout=0.4, max_failures=50, **settings)
    with manager, killer(manager, [signal.SIGSTOP, signal.SIGKILL], every=0.2) as hits:
        found = digests(manager, 20, target=500)
    assert found == expected
    assert hits[0] > 0


def test_a_killed_and_a_stopped_worker_are_replaced_and_counted() -> None:
    with manager_of(hang_timeout=0.5) as manager:
        manager.collect_experiences()
        first, second = pids_of(manager)
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGSTOP)
        manager.collect_experiences()
        status = manager.get_status()
        assert status.restarts == 2
        assert status.active_workers == 2
        assert not {first, second} & set(pids_of(manager))
        errors = [worker.last_error for worker in status.workers]
        assert errors == [
            "it was ended by SIGKILL",
            "it made no step for 0.5 s, since somebody has stopped it",
        ]


def test_between_two_collections_a_worker_may_die_unseen() -> None:
    expected = digests(manager_of(backend="inline"), 3)
    found = []
    with manager_of() as manager:
        for _ in range(3):
            found.append(manager.collect_experiences().digest())
            for pid in pids_of(manager):
                os.kill(pid, signal.SIGKILL)
    assert found == expected


@pytest.mark.parametrize("trouble", ["raise", "exit"])
def test_a_failure_in_the_middle_of_a_slab_is_played_over(trouble: str, tmp_path: Path) -> None:
    expected = digests(manager_of(TROUBLED, backend="inline", options={"at": 2}), 6)
    options = {"trouble": trouble, "at": 2, "marker": str(tmp_path / "happened")}
    manager = manager_of(TROUBLED, options=options)
    assert digests(manager, 6) == expected
    assert (tmp_path / "happened").exists()
    assert manager.get_status().restarts == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_game_that_crashes_in_one_of_a_hundred_steps_costs_nothing_but_time(backend: str) -> None:
    settings: dict[str, Any] = {"horizon": 4, "max_failures": 20}
    expected = digests(manager_of(TROUBLED, backend="inline", **settings), 40)
    # One worker: a table that has bad luck under two of them in a row counts as broken.
    manager = manager_of(TROUBLED, backend, options={"chance": 0.01}, num_workers=1, **settings)
    assert digests(manager, 40) == expected
    status = manager.get_status()
    assert status.restarts == 0 or "bad luck" in status.last_error


def test_a_hung_step_is_ended_and_played_over(tmp_path: Path) -> None:
    expected = digests(manager_of(TROUBLED, backend="inline"), 6)
    options = {"trouble": "stall", "at": 2, "games_from": 4, "marker": str(tmp_path / "happened")}
    manager = manager_of(TROUBLED, options=options, hang_timeout=0.5)
    assert digests(manager, 6) == expected
    errors = [worker.last_error for worker in manager.get_status().workers if worker.last_error]
    assert errors == ["it made no step for 0.5 s"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hit", [0, 2, 5])
def test_a_damaged_slab_is_noticed_counted_and_played_again(backend: str, hit: int) -> None:
    """Also when its worker has gone on and has finished more slabs meanwhile."""
    expected = digests(manager_of(backend="inline"), 3, target=200)
    manager = manager_of(backend=backend)
    is_whole, seen = manager.deliveries.is_whole, [0]

    def damage(record: SlabRecord) -> bool:
        if seen[0] == hit:
            manager.arena.slab(record.slab).packed[3, 1, 0] ^= 0x40
        seen[0] += 1
        return is_whole(record)

    manager.deliveries.is_whole = damage  # type: ignore[method-assign]
    assert digests(manager, 3, target=200) == expected
    status = manager.get_status()
    assert status.drops.corrupted == 1
    assert status.restarts == 1


def test_unchecked_slabs_are_taken_as_they_are() -> None:
    manager = manager_of(verify_checksums=False)
    assert digests(manager, 2) == digests(manager_of(), 2)


def test_a_paused_worker_that_dies_comes_back_when_it_is_resumed() -> None:
    expected = digests(manager_of(backend="inline"), 3)
    with manager_of() as manager:
        found = [manager.collect_experiences().digest()]
        manager.pause_workers([0])
        os.kill(pids_of(manager)[0], signal.SIGKILL)
        experiences = manager.collect_experiences()
        assert players(experiences) == {1}
        found.append(experiences.digest())
        assert manager.get_status().workers[0].state == "paused"
        manager.resume_workers()
        manager.pause_workers([1])
        experiences = manager.collect_experiences()
        assert players(experiences) == {0}
        found.append(experiences.digest())
    assert found == expected


def test_a_worker_killed_just_after_it_was_given_anothers_table_leaves_no_trace() -> None:
    """Hands change with every round; whoever is new to a table is killed as soon as it has the order."""
    settings: dict[str, Any] = {"model": {"hidden_dim": 16}, "tables": 3, "horizon": 32}
    with manager_of("connect-four", "inline", **settings) as inline:
        expected = [inline.collect_experiences().digest() for _ in range(6)]
    found, killed = [], set()
    with manager_of("connect-four", **settings) as manager:
        send = manager.communicator.send

        def send_and_kill(worker: Worker, orders: list[Order]) -> None:
            send(worker, orders)
            (order,) = orders
            if order.start is Start.LOAD and (order.table, order.sequence) not in killed:
                killed.add((order.table, order.sequence))
                os.kill(worker.handle.process_id, signal.SIGKILL)  # type: ignore[union-attr, arg-type]

        manager.communicator.send = send_and_kill  # type: ignore[method-assign]
        for number in range(6):
            manager.resume_workers()
            manager.pause_workers([number % 2])
            found.append(manager.collect_experiences().digest())
    assert found == expected
    assert len(killed) >= 5


def test_asynchronous_experience_has_no_gap_and_nothing_twice_under_fire() -> None:
    """What is handed out of each table is what it plays undisturbed, slab after slab."""
    inline = manager_of(backend="inline", queue_maxsize=1)
    played: dict[tuple[int, int], bytes] = {}
    with inline:
        for _ in range(60):
            for item in inline.collect_experiences():
                played[item.record.table, item.record.sequence] = item.slab.action.tobytes()
    manager = manager_of(mode="async", queue_maxsize=3)
    seen: dict[int, list[int]] = {0: [], 1: []}
    with manager, killer(manager, [signal.SIGKILL], every=0.05):
        while min(map(len, seen.values())) < 40:
            for item in manager.collect_experiences(timeout=20):
                record = item.record
                seen[record.table].append(record.sequence)
                expected = played.get((record.table, record.sequence), item.slab.action.tobytes())
                assert item.slab.action.tobytes() == expected
    for sequences in seen.values():
        assert sequences == list(range(len(sequences)))


def test_an_order_that_outlived_its_weights_is_played_with_the_newest() -> None:
    """A collection times out, the learner publishes twice, and then the worker with the open order is killed."""
    settings = {"num_workers": 1, "games": 2, "horizon": 32, "hang_timeout": 60}
    with ParallelManager({"game": "tictactoe"}, {"hidden_dim": 8}, settings) as manager:
        manager.collect_experiences()
        (process_id,) = pids_of(manager)
        os.kill(process_id, signal.SIGSTOP)
        with pytest.raises(CollectTimeoutError):
            manager.collect_experiences(timeout=0.3)
        for _ in range(3):
            with torch.no_grad():
                next(manager.model.parameters()).add_(1)
            manager.sync_model_to_workers()
        os.kill(process_id, signal.SIGKILL)
        experiences = manager.collect_experiences(timeout=30)
        assert {item.record.version for item in experiences} == {manager.version}
