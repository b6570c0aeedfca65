"""A manager that is stopped and made anew goes on as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest

from keisei.errors import ParallelError
from keisei.parallel import ParallelManager

MODEL = {"hidden_dim": 16, "num_layers": 1}
SETTINGS: dict[str, Any] = {"num_workers": 2, "games_per_worker": 4, "experience_batch_size": 64, "seed": 5}


def digests(manager: ParallelManager, rounds: int) -> list[str]:
    return [manager.collect_experiences().digest() for _ in range(rounds)]


@pytest.mark.parametrize("game", ["shogi", "connect-four"])
@pytest.mark.parametrize("reset", [False, True])
def test_a_resumed_manager_gives_the_same_bits(game: str, reset: bool) -> None:
    with ParallelManager({"game": game}, MODEL, SETTINGS | {"enabled": False}) as whole:
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
    """What each worker plays at random, slab by slab."""
    played = {}
    with ParallelManager({"game": "connect-four"}, None, SETTINGS | {"enabled": False}) as manager:
        for _ in range(slabs):
            for item in manager.collect_experiences():
                played[item.record.worker, item.record.sequence] = item.slab.action.tobytes()
    return played


@pytest.mark.parametrize("backend", ["inline", "process"])
def test_an_asynchronous_run_is_resumed_where_each_worker_was_last_heard_of(backend: str) -> None:
    played = undisturbed(40)
    settings = SETTINGS | {"mode": "async", "queue_maxsize": 3, "backend": backend}
    with ParallelManager({"game": "connect-four"}, None, settings) as broken:
        handed_out = {0: 0, 1: 0}
        while min(handed_out.values()) < 3:
            for item in broken.collect_experiences(timeout=20):
                handed_out[item.record.worker] += 1
            broken.release_experiences()
        assert any(member.orders for member in broken.communicator.members), "workers are at play"
        snapshots = broken.snapshot()
    resumed = ParallelManager({"game": "connect-four"}, None, settings)
    resumed.start_workers(snapshots)
    found: dict[int, list[int]] = {0: [], 1: []}
    try:
        while min(map(len, found.values())) < 4:
            for item in resumed.collect_experiences(timeout=20):
                place = item.record.worker, item.record.sequence
                found[item.record.worker].append(item.record.sequence)
                actions = item.slab.action.tobytes()
                assert played.get(place, actions) == actions
    finally:
        resumed.stop_workers()
    for taken in snapshots:
        first = found[taken.worker][0]
        assert first == taken.sequence >= handed_out[taken.worker]
        assert (taken.worker, first) in played
        assert found[taken.worker] == list(range(first, first + len(found[taken.worker])))


def test_an_asynchronous_snapshot_knows_of_resets() -> None:
    settings = SETTINGS | {"mode": "async", "enabled": False, "num_workers": 1}
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
    settings = SETTINGS | {"num_workers": 1, "enabled": False}
    with ParallelManager({"game": "tictactoe"}, None, settings) as manager:
        manager.communicator.members[0].order_slab(version=0)
        with pytest.raises(ParallelError, match="between two synchronous collections"):
            manager.snapshot()


def test_a_snapshot_wants_a_manager_that_runs() -> None:
    manager = ParallelManager({"game": "tictactoe"}, None, SETTINGS)
    with pytest.raises(ParallelError, match="has not been started"):
        manager.snapshot()
