"""States that are too large for their slots go through the pipe, and nobody can tell from the data."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import pytest
from games_for_tests import BACKENDS, digests, kill, manager_of, nudge, pids_of, sequences_of

from keisei.parallel import ParallelManager, arena
from keisei.parallel.backends.channel import Channel
from keisei.parallel.messages import PIECE_BYTES, THROUGH_PIPE, NeedState, decode_reply, state_piece

SETTINGS: dict[str, Any] = {"game": "shogi", "model": {"hidden_dim": 8}, "tables": 3, "games": 40}
"""Some 3 KB a table."""


@pytest.fixture
def small_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "LEAST_STATE_BYTES", 64)
    monkeypatch.setattr(arena, "STATE_BYTES_A_GAME", 0)


def all_through_the_pipe(manager: ParallelManager) -> bool:
    return all(table.saved is not None and table.saved.slot == THROUGH_PIPE for table in manager.tables)


def in_several_pieces(manager: ParallelManager) -> bool:
    return any(table.saved is not None and len(table.saved.state) > PIECE_BYTES for table in manager.tables)


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """What is played where states fit."""
    return digests(manager_of(backend="inline", **SETTINGS), 6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_hands_change_with_large_states(
    expected: list[str], backend: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("small_slots")
    manager, found = manager_of(backend=backend, **SETTINGS), []
    with manager:
        for number in range(6):
            manager.resume_workers()
            manager.pause_workers([number % 2])
            found.append(manager.collect_experiences().digest())
            assert all_through_the_pipe(manager)
            if backend == "process":
                alive = pids_of(manager)  # one that was killed before may not be back yet
                kill(alive[number % len(alive)])
            nudge(manager)
            manager.sync_model_to_workers()
        assert in_several_pieces(manager)
        manager.release_experiences()
        assert len(manager.stock._free_slots) == 12 + (12 if backend == "thread" else 0) + 3
    assert found == expected


def test_a_snapshot_of_large_states_is_taken_up(request: pytest.FixtureRequest) -> None:
    settings = SETTINGS | {"model": None}
    with manager_of(backend="inline", **settings) as whole:
        undisturbed = [whole.collect_experiences().digest() for _ in range(4)]
    request.getfixturevalue("small_slots")
    with manager_of(**settings) as broken:
        found = [broken.collect_experiences().digest() for _ in range(2)]
        snapshots = broken.snapshot()
    resumed = manager_of(**settings, num_workers=3)
    resumed.start_workers(snapshots)
    with resumed:
        assert all_through_the_pipe(resumed)
        found += [resumed.collect_experiences().digest() for _ in range(2)]
    assert found == undisturbed


@pytest.mark.usefixtures("small_slots")
@pytest.mark.parametrize("backend", BACKENDS)
def test_asynchronous_play_with_large_states(backend: str) -> None:
    played: dict[tuple[int, int], bytes] = {}
    settings = SETTINGS | {"model": None}
    with manager_of(backend="inline", **settings) as inline:
        for _ in range(30):
            for item in inline.collect_experiences():
                played[item.record.table, item.record.sequence] = item.slab.action.tobytes()
    with manager_of(backend=backend, mode="async", queue_maxsize=2, **settings) as manager:
        found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        for number in range(12):
            for item in manager.collect_experiences(timeout=20):
                place = item.record.table, item.record.sequence
                assert item.slab.action.tobytes() == played.get(place, item.slab.action.tobytes())
                found[item.record.table].append(item.record.sequence)
            manager.release_experiences()
            if backend == "process" and number % 3 == 0:
                for pid in pids_of(manager)[:1]:  # one that was killed before may not be back yet
                    kill(pid)
            if number % 4 == 2:
                manager.pause_workers([number % 2])
            if number % 4 == 3:
                manager.resume_workers()
        manager.resume_workers()
        later = sequences_of(manager, 2)
        assert all_through_the_pipe(manager)
        assert in_several_pieces(manager)
    for table, numbers in found.items():
        together = numbers + later[table]
        assert together == list(range(len(together)))


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_a_state_of_any_size_is_fetched_whole(size: int) -> None:
    ours, theirs = multiprocessing.Pipe()
    state = bytes(number % 251 for number in range(size))

    def manage() -> None:
        while True:
            try:
                need = decode_reply(ours.recv_bytes())
            except EOFError:
                return
            assert isinstance(need, NeedState)
            assert need.table == 4
            ours.send_bytes(state_piece(state, need.offset))

    thread = threading.Thread(target=manage)
    thread.start()
    try:
        assert Channel(theirs).fetch_state(4) == state
    finally:
        theirs.close()
        thread.join()
        ours.close()
