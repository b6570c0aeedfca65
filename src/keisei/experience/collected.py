"""The result of a collection: slabs in a fixed order, and views of their columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import Array


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to keep a slab beyond the next collection. Its memory is not used again until the lease ends."""

    slab: int
    """The number of the slab in the arena."""


@dataclass(frozen=True, slots=True)
class Leases:
    """What a buffer does with slabs when it takes experience."""

    kept: Sequence[Lease] = ()
    """Slabs of this collection that stay with the buffer. The others may go back to the workers at once."""
    ended: Sequence[Lease] = ()
    """Slabs of earlier collections that the buffer no longer needs."""


@dataclass(frozen=True, slots=True)
class LentSlab:
    """An empty slab for what a buffer restores."""

    slab: Slab
    lease: Lease | None
    """None if the slab has memory of its own, which nobody else waits for."""


@dataclass(frozen=True, slots=True)
class CollectedSlab:
    """One slab and the record that committed it."""

    record: SlabRecord
    first_game: int
    """The number of the game in slot 0. With the slot, it identifies a game across all tables."""
    slab: Slab

    @property
    def lease(self) -> Lease:
        """The lease with which a buffer keeps this slab."""
        return Lease(self.record.slab)


@dataclass(frozen=True, slots=True)
class Experiences:
    """Experience in the order (table, sequence). ``len`` counts transitions, so an empty collection is falsy.

    The arrays are views of shared memory. They are valid until the next collection, ``release_experiences`` or
    ``stop_workers``.
    """

    slabs: Sequence[CollectedSlab]
    version: int
    """The newest version of the weights when this was handed out."""

    def __len__(self) -> int:
        return sum(item.record.transitions for item in self.slabs)

    def __iter__(self) -> Iterator[CollectedSlab]:
        return iter(self.slabs)

    def column(self, name: str) -> Array:
        """Gets one field of all transitions that acted, as one new array: [transitions, …]."""
        parts = [_acted(item.slab, name) for item in self.slabs]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def policy_lag(self) -> float:
        """How many versions the experience is behind the newest weights, on average."""
        if not self.slabs:
            return 0.0
        lags = [(self.version - item.record.version) * item.record.transitions for item in self.slabs]
        return sum(lags) / max(1, len(self))

    def digest(self) -> str:
        """Computes a digest of every written byte and of the order. Equal experience, equal digest."""
        total = hashlib.blake2b(digest_size=16)
        for item in self.slabs:
            record = item.record
            total.update(f"{record.table} {record.epoch} {record.sequence} {record.version}".encode())
            for content in item.slab.written():
                total.update(content)
        return total.hexdigest()


def _acted(slab: Slab, name: str) -> Array:
    values: Array = getattr(slab, name)[: slab.shape.steps]
    acting = slab.acting[: slab.shape.steps]
    if values.shape[:2] == acting.shape:
        return values[acting]
    per_game = np.repeat(values, slab.shape.seats, axis=1) if slab.shape.simultaneous else values
    chosen: Array = per_game[acting]
    return chosen
