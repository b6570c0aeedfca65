"""Leases: a buffer keeps slabs while play goes on in the others, and gives them back when it likes."""

from __future__ import annotations

from typing import Any

import pytest
from games_for_tests import BACKENDS, manager_of

from keisei.errors import ParallelError
from keisei.experience.collected import CollectedSlab, Experiences, Lease
from keisei.parallel import ParallelManager


def digest(items: list[CollectedSlab]) -> str:
    return Experiences(tuple(items), 0).digest()


def adds_up(manager: ParallelManager, leased: int) -> bool:
    info = manager.communicator.get_queue_info()
    parts = info["playing"] + info["free"] + info["filled"] + info["leased"]
    return parts == info["slabs"] and info["leased"] == leased and min(info.values()) >= 0


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_kept_stays_as_it_is_while_play_goes_on(backend: str, mode: str) -> None:
    settings: dict[str, Any] = {"queue_maxsize": 2, "mode": mode, "leased_slabs": 6}
    with manager_of(backend=backend, **settings) as manager:
        assert manager.communicator.get_queue_info()["slabs"] == 2 * 2 + 6
        kept: list[CollectedSlab] = []
        while len(kept) < 6:
            taken = list(manager.collect_experiences(timeout=20))[: 6 - len(kept)]
            manager.release_experiences(keep=[item.lease for item in taken])
            kept += taken
            assert adds_up(manager, leased=len(kept))
        before = digest(kept)
        assert len({item.lease for item in kept}) == 6
        for _ in range(10):
            for item in manager.collect_experiences(timeout=20):
                assert item.lease not in {kept_item.lease for kept_item in kept}
            assert adds_up(manager, leased=6)
        assert digest(kept) == before
        manager.end_leases([item.lease for item in kept])
        assert adds_up(manager, leased=0)
        assert {item.lease.slab for item in kept} <= set(manager.stock._free_slabs)


def test_a_ring_of_leases_goes_round() -> None:
    """As a replay does it: what it takes in, it gives back of the oldest."""
    ring: list[Lease] = []
    with manager_of(leased_slabs=4) as manager:
        for _ in range(12):
            leases = [item.lease for item in manager.collect_experiences()]
            manager.release_experiences(keep=leases)
            ring += leases
            old, ring = ring[:-4], ring[-4:]
            manager.end_leases(old)
            assert adds_up(manager, leased=len(ring))
    assert len(ring) == 4


def test_leases_change_no_bit() -> None:
    with manager_of(backend="inline") as other:
        expected = [other.collect_experiences().digest() for _ in range(4)]
    found = []
    with manager_of(leased_slabs=8) as manager:
        for _ in range(4):
            experiences = manager.collect_experiences()
            found.append(experiences.digest())
            manager.release_experiences(keep=[item.lease for item in experiences])
    assert found == expected


def test_a_lease_ends_once() -> None:
    with manager_of(backend="inline", leased_slabs=2) as manager:
        leases = [item.lease for item in manager.collect_experiences()]
        manager.release_experiences(keep=leases)
        manager.release_experiences(keep=leases)
        for _ in range(2):
            manager.end_leases(leases)
            assert adds_up(manager, leased=0)
        assert manager.communicator.get_queue_info()["free"] == 10
        manager.end_leases([Lease(99)])
        assert manager.communicator.get_queue_info()["free"] == 10


def test_only_what_was_lent_can_be_kept() -> None:
    with manager_of(backend="inline", leased_slabs=2) as manager:
        manager.collect_experiences()
        manager.release_experiences(keep=[Lease(9)])
        assert adds_up(manager, leased=0)
        assert manager.communicator.get_queue_info()["free"] == 10


@pytest.mark.parametrize("settings", [{"use_shared_memory": False}, {"queue_maxsize": 1}])
def test_copies_need_no_lease(settings: dict[str, Any]) -> None:
    """They stay anyway; also those of a round that is larger than the queue."""
    with manager_of(backend="inline", **settings) as manager:
        experiences = manager.collect_experiences(target_steps=200)
        copies = [item for item in experiences if item.record.slab < 0]
        assert copies
        before = digest(copies)
        manager.release_experiences(keep=[item.lease for item in copies])
        assert adds_up(manager, leased=0)
        manager.end_leases([item.lease for item in copies])
        assert adds_up(manager, leased=0)
        for _ in range(3):
            manager.collect_experiences(target_steps=200)
        assert digest(copies) == before


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_where_all_slabs_are_kept_collecting_says_so(mode: str) -> None:
    with manager_of(backend="inline", queue_maxsize=1, mode=mode) as manager:
        experiences = manager.collect_experiences(target_steps=64, timeout=20)
        leases = [item.lease for item in experiences]
        manager.release_experiences(keep=leases)
        with pytest.raises(ParallelError, match=r"all 2 slabs are kept under leases.*leased_slabs"):
            manager.collect_experiences(timeout=20)
        manager.end_leases(leases)
        assert len(manager.collect_experiences(target_steps=64, timeout=20)) == 64


def test_leases_want_a_manager_that_runs() -> None:
    manager = manager_of(backend="inline")
    with pytest.raises(ParallelError, match="end_leases was called, but the manager has not been started"):
        manager.end_leases([])
