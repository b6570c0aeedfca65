"""What travels between the manager and an actor: the briefing at its start, a task with each call, and what was
played."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import ByteArray
from keisei.parallel.arena import ArenaSize
from keisei.parallel.messages import Failed, encode_reply
from keisei.parallel.weights.shelf import PlaceKind
from keisei.parallel.weights.weight_codec import Compression, WeightLayout

FASTEST = 1
"""The level of zlib. Higher levels take much longer and save little."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an actor needs to know before it plays. It is the same for all actors, except for the plan."""

    plan: str
    """The ``WorkerPlan``, as JSON."""
    size: ArenaSize
    """The size of the manager's arena."""
    weights: tuple[WeightLayout, Compression, int] | None
    shelf: tuple[PlaceKind, ...] | None
    compress: bool
    """Whether slabs are compressed on their way."""
    paths: tuple[str, ...]
    """Where the manager's process imports from."""


@dataclass(frozen=True, slots=True)
class Task:
    """One order, with all that it needs. New weights and members travel beside it."""

    order: bytes
    forget: tuple[int, ...]
    """Tables that others play now."""
    state: bytes
    """The state of the table, if the order loads one."""
    on_shelf: tuple[int, ...]
    """All members that games may meet. The actor clears the others from its shelf."""


@dataclass(frozen=True, slots=True)
class Played:
    """The direct return of a call: the record of a slab, the slab, and the state of its table; or why there is none."""

    reply: bytes
    """A ``SlabRecord`` or ``Failed``."""
    steps: int
    """The steps that the actor has made so far."""
    slab: ByteArray = field(default_factory=lambda: np.zeros(0, np.uint8))
    state: bytes = b""
    compressed: bool = False

    @classmethod
    def of(cls, record: SlabRecord, steps: int, slab: Slab, state: bytes, compress: bool) -> Played:
        content = zlib.compress(slab.content(), FASTEST) if compress else slab.content()
        return cls(encode_reply(record), steps, np.frombuffer(content, np.uint8), state, compress)

    @classmethod
    def failed(cls, error: BaseException, steps: int) -> Played:
        return cls(encode_reply(Failed.of(error)), steps)

    def unload(self, slab: Slab) -> None:
        """Copies the slab to its place in the manager's arena."""
        slab.load(zlib.decompress(self.slab.data) if self.compressed else self.slab.data)
