"""Replays over random games of every kind, and what they hold in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from brute_force_for_tests import NOTHING, Ply
from histories_for_tests import Kind, Opinion, action_of, names_of, record_of, slabs_of

from keisei.experience.collected import CollectedSlab
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replayed import ReplaySample
from keisei.experience.schema import SlabShape

DISCOUNT = 0.9


def replay_of(
    kind: Kind,
    steps: int,
    games: int,
    slabs: int,
    *,
    discount: float = DISCOUNT,
    owner: int = 0,
    batch_size: int = 4,
    tables: int = 1,
    **settings: Any,
) -> ReplayBuffer:
    """A replay of so many slabs."""
    shape = SlabShape(steps, games, kind.seats, packed_bytes=4, simultaneous=kind.simultaneous)
    given = {
        "capacity": slabs * shape.transitions,
        "n_step": 1,
        "learning_starts": 0,
        "prioritised": True,
    } | settings
    return ReplayBuffer(
        kind.spec, shape, ReplaySettings(**given), discount, batch_size=batch_size, owner=owner, tables=tables
    )


def cut(columns: Sequence[Sequence[Ply]], kind: Kind, steps: int, table: int = 0) -> list[CollectedSlab]:
    """The slabs of a table. Each has another number in the arena."""
    ends = range(steps, len(columns[0]), steps)
    items = slabs_of(columns, kind, ends, Opinion(0, False), table)
    return [retold(item, slab=1000 * table + number) for number, item in enumerate(items)]


def retold(item: CollectedSlab, **changes: int) -> CollectedSlab:
    return replace(item, record=replace(item.record, **changes))


@dataclass(frozen=True)
class Held:
    """What a sample says of one decision."""

    action: int
    reward: float
    next: int
    discount: float


def held(sample: ReplaySample) -> dict[int, Held]:
    """A sample by the names of its decisions."""
    assert not sample.next_packed[sample.discounts == 0].any()
    next_names = [
        name if discount else NOTHING
        for name, discount in zip(names_of(sample.next_packed), sample.discounts, strict=True)
    ]
    rows = zip(
        sample.actions.tolist(), sample.rewards.tolist(), next_names, sample.discounts.tolist(), strict=True
    )
    return dict(zip(names_of(sample.packed), (Held(*row) for row in rows), strict=True))


def all_held(buffer: ReplayBuffer) -> dict[int, Held]:
    """All that a prioritised replay holds, before priorities differ: with as many shares as decisions, each is drawn
    once."""
    if not len(buffer):
        return {}
    sample = buffer.view().sample(len(buffer), seed=0, key=0)
    found = held(sample)
    assert len(found) == len(buffer) == len(set(sample.places.tolist()))
    assert all(row.action == action_of(name) for name, row in found.items())
    return found


__all__ = ["DISCOUNT", "Held", "all_held", "cut", "held", "np", "record_of", "replay_of", "retold"]
