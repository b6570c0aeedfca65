"""The arena: one block for all tables, one descriptor for a worker, and room for many."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from games_for_tests import digests, keisei_mappings, manager_of, pids_of

from keisei.errors import SharedMemoryError
from keisei.experience.schema import SlabShape
from keisei.games.env_config import EnvConfig
from keisei.parallel import arena
from keisei.parallel.arena import Arena, ArenaSize
from keisei.parallel.config import MAX_WORKERS

TINY = {"games": 1, "horizon": 2, "queue_maxsize": 1}


def small_arena() -> Arena:
    spec = EnvConfig(game="tictactoe").make(batch=1, seed=0).spec
    return Arena(ArenaSize.of(SlabShape.of(spec, 4, 2), slabs=3, slots=5))


def memory_descriptors(pid: int | str) -> int:
    """Open shared memory of ours."""
    found = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            found += "memfd:keisei" in str(path.readlink())
    return found


def test_512_tables_fit() -> None:
    before = memory_descriptors("self"), keisei_mappings()
    with manager_of(backend="inline", tables=512, num_workers=1, **TINY) as manager:
        assert memory_descriptors("self") <= before[0] + 2, "one, and the one of its mapping"
        assert keisei_mappings() <= before[1] + 1
        experiences = manager.collect_experiences()
        assert [item.record.table for item in experiences] == list(range(512))
        assert [item.first_game for item in experiences] == list(range(512))
        first = experiences.digest()
    with manager_of(backend="thread", tables=512, num_workers=3, **TINY) as other:
        assert other.collect_experiences().digest() == first


def test_a_worker_process_has_no_more_descriptors_for_more_tables() -> None:
    few, many = (manager_of(tables=tables, num_workers=1, **TINY) for tables in (1, 64))
    with few, many:
        assert len(few.collect_experiences()) == 2
        assert len(many.collect_experiences()) == 128
        counts = [memory_descriptors(pids_of(manager)[0]) for manager in (few, many)]
    assert counts[0] == counts[1] <= 2, "one, and the one of its mapping"


def test_many_tables_are_played_alike_by_few_and_many() -> None:
    settings = {"tables": 40, "games": 2, "horizon": 4, "queue_maxsize": 2, "model": {"hidden_dim": 8}}
    expected = digests(manager_of(backend="inline", num_workers=1, **settings), 3)  # type: ignore[arg-type]
    assert digests(manager_of(num_workers=5, **settings), 3) == expected  # type: ignore[arg-type]


def test_places_do_not_overlap() -> None:
    arena = small_arena()
    for worker in range(MAX_WORKERS):
        arena.control(worker)[:] = worker + 1
    for index in range(3):
        for field, column in arena.slab(index).columns():
            column[:] = index + 1 if field.name not in ("acting", "terminated", "truncated") else True
    sums = [arena.slab(index).checksum() for index in range(3)]
    states = [bytes([slot]) * (arena.size.slot_bytes - 8) for slot in range(5)]
    for slot, state in enumerate(states):
        assert arena.write_state(slot, state)
    assert [arena.read_state(slot) for slot in range(5)] == states
    assert [arena.slab(index).checksum() for index in range(3)] == sums
    assert [int(arena.control(worker)[0]) for worker in range(MAX_WORKERS)] == list(range(1, MAX_WORKERS + 1))
    arena.close()


def test_a_state_that_is_too_large_is_refused_and_leaves_the_slot_alone() -> None:
    arena = small_arena()
    assert arena.write_state(2, b"what was there")
    assert not arena.write_state(2, b"x" * (arena.size.slot_bytes - 7))
    assert arena.read_state(2) == b"what was there"
    arena.close()


def test_there_are_so_many_slabs_and_no_more() -> None:
    arena = small_arena()
    for index in (-1, 3):
        with pytest.raises(IndexError, match=f"slabs 0 … 2, and no slab {index}"):
            arena.slab(index)
    arena.close()


def test_slabs_that_would_not_fit_into_what_is_left_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any worker starts, and by what the mode keeps in use: in rounds, one slab of each table."""
    settings = {"backend": "inline", "tables": 4, "games": 16, "horizon": 64, "queue_maxsize": 8}
    with manager_of(**settings) as manager:
        one = int(manager.bytes_per_transition * manager.slab_transitions)
    monkeypatch.setattr(arena, "free_memory", lambda: 4 * one)
    manager_of(**settings)
    with pytest.raises(SharedMemoryError, match=r"32 slabs of 64 steps x 16 games take .* a shorter horizon"):
        manager_of(**settings, mode="async")
    monkeypatch.setattr(arena, "free_memory", lambda: 4 * one - 1)
    with pytest.raises(SharedMemoryError, match="4 slabs of 64 steps x 16 games"):
        manager_of(**settings)
    monkeypatch.setattr(arena, "free_memory", lambda: None)
    manager_of(**settings)
