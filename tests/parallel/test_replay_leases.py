"""A replay over the slabs of real workers: they stay as they are while play goes on, and none is lost."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games_for_tests import BACKENDS, manager_of

from keisei.errors import ParallelError
from keisei.experience.collected import CollectedSlab
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replayed import ReplaySample
from keisei.parallel import ParallelManager
from keisei.parallel.deliveries import copy_slab

SLABS = 6


def replay_for(manager: ParallelManager, **settings: Any) -> ReplayBuffer:
    shape = manager.arena.size.shape
    given = {"capacity": SLABS * shape.transitions, "n_step": 3, "learning_starts": 0} | settings
    return ReplayBuffer(
        manager.spec, shape, ReplaySettings(**given), 0.9, batch_size=16, tables=len(manager.tables)
    )


def taken(manager: ParallelManager, buffer: ReplayBuffer) -> list[CollectedSlab]:
    """One collection. Gives copies of its slabs."""
    experiences = manager.collect_experiences(timeout=20)
    copies = [
        CollectedSlab(replace(item.record, slab=-1), item.first_game, copy_slab(item.slab))
        for item in experiences
    ]
    leases = buffer.take(experiences.slabs)
    manager.end_leases(leases.ended)
    manager.release_experiences(keep=leases.kept)
    return copies


def assert_same(one: ReplayBuffer, other: ReplayBuffer) -> None:
    found, expected = one.view().sample(500, 1, 2), other.view().sample(500, 1, 2)
    for name in ReplaySample.__slots__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_slabs_stay_as_they_are_while_play_goes_on(backend: str, mode: str) -> None:
    with manager_of(backend=backend, mode=mode, queue_maxsize=2, leased_slabs=SLABS) as manager:
        buffer, copies = replay_for(manager), replay_for(manager)
        for _ in range(8):
            copies.take(taken(manager, buffer))
            assert manager.communicator.get_queue_info()["leased"] <= SLABS
        manager.collect_experiences(timeout=20)
        assert manager.communicator.get_queue_info()["leased"] == SLABS
        assert_same(buffer, copies)


def test_copies_are_kept_where_slabs_are_not_shared() -> None:
    with (
        manager_of(backend="inline", leased_slabs=SLABS) as shared,
        manager_of(backend="inline", use_shared_memory=False) as copying,
    ):
        one, other = replay_for(shared), replay_for(copying)
        for _ in range(6):
            taken(shared, one)
            taken(copying, other)
        assert copying.communicator.get_queue_info()["leased"] == 0
        assert_same(one, other)


def test_a_round_of_more_slabs_than_are_free_is_kept_too() -> None:
    """The manager copies slabs of a long round out of its way."""
    with (
        manager_of(backend="inline", queue_maxsize=1, leased_slabs=SLABS, episodes_per_worker=40) as manager,
        manager_of(backend="inline", queue_maxsize=64, episodes_per_worker=40) as roomy,
    ):
        one, other = replay_for(manager), replay_for(roomy)
        for _ in range(3):
            taken(manager, one)
            other.take(roomy.collect_experiences().slabs)
            roomy.release_experiences()
        assert len(one) == len(other) > 0


def test_lent_slabs_are_leased() -> None:
    with manager_of(backend="inline", queue_maxsize=2, leased_slabs=3) as manager:
        lent = manager.lend_slabs(3)
        assert len({item.lease for item in lent}) == 3
        assert manager.communicator.get_queue_info()["leased"] == 3
        manager.collect_experiences()
        manager.end_leases(item.lease for item in lent if item.lease is not None)
        assert manager.communicator.get_queue_info()["leased"] == 0
        with pytest.raises(ParallelError, match="none of the 7 slabs is free; make the manager with more"):
            manager.lend_slabs(100)


def test_lent_slabs_have_memory_of_their_own_where_slabs_are_not_shared() -> None:
    with manager_of(backend="inline", use_shared_memory=False) as manager:
        (lent,) = manager.lend_slabs(1)
        assert lent.lease is None
        assert lent.slab.shape == manager.arena.size.shape


def test_memory_of_leased_slabs_is_taken_at_the_start() -> None:
    with manager_of(backend="inline", leased_slabs=3) as manager:
        block = manager.arena._block
        size = manager.arena.size.slab_bytes
        assert os.fstat(block._fd).st_blocks * 512 >= 3 * 0.5 * size
