"""The shared memory of collection: one block for all tables, which every worker maps.

It holds slabs, saved states of tables, and two control words for each worker. Any worker can play any table in it, so
a worker needs only one file descriptor, and one more if the learner meets a league. Pages that nobody writes to cost
nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from keisei.errors import SharedMemoryError
from keisei.experience.schema import SlabShape, bytes_per_transition
from keisei.experience.slab import Slab, common_bytes, slab_layout
from keisei.games.contract import Array
from keisei.machine.memory import free_memory
from keisei.machine.shared_memory import SharedBlock, aligned
from keisei.parallel.config import MAX_WORKERS
from keisei.parallel.weights.shelf import Shelf

_LENGTH = struct.Struct("<Q")
_CONTROL_BYTES = 64
"""One cache line for each worker, since workers count their steps there. They would slow each other down if they
shared a line."""
LEAST_STATE_BYTES = 1 << 20
STATE_BYTES_A_GAME = 1 << 13
"""Shogi takes about 400 bytes a game. Slots are much larger, because unused pages are free. A state that still does
not fit goes through the pipe."""


@dataclass(frozen=True, slots=True)
class ArenaSize:
    """The number and size of the arena's parts."""

    shape: SlabShape
    slabs: int
    slots: int
    """Slots for the states of tables."""
    slot_bytes: int

    @classmethod
    def of(cls, shape: SlabShape, slabs: int, slots: int) -> ArenaSize:
        return cls(shape, slabs, slots, aligned(LEAST_STATE_BYTES + STATE_BYTES_A_GAME * shape.games))

    @property
    def slab_bytes(self) -> int:
        return slab_layout(self.shape).nbytes

    @property
    def nbytes(self) -> int:
        return MAX_WORKERS * _CONTROL_BYTES + self.slabs * self.slab_bytes + self.slots * self.slot_bytes


def demand_memory(shape: SlabShape, slabs: int) -> None:
    """Raises an error if this many slabs in use do not fit into the free memory. The block takes pages only when they
    are written. Without this check, the system would kill a worker hours later."""
    needed, free = int(bytes_per_transition(shape) * shape.transitions) * slabs, free_memory()
    if free is not None and needed > free:
        raise SharedMemoryError(
            f"{slabs} slabs of {shape.steps} steps x {shape.games} games take {needed / 2**20:,.0f} MB, and "
            f"{free / 2**20:,.0f} MB are left; fewer tables, fewer games, a shorter horizon, a smaller queue_maxsize "
            f"or a smaller replay take less"
        )


class Arena:
    """Makes views views on the block. A worker process gets the arena as an argument when it starts."""

    def __init__(self, size: ArenaSize, shelf: Shelf | None = None, block: SharedBlock | None = None) -> None:
        self.size = size
        self.shelf = shelf
        """The weights of the league; None without one."""
        self._block = SharedBlock(size.nbytes, sparse=True) if block is None else block
        self._slabs: dict[int, Slab] = {}
        self._controls: dict[int, Array] = {}
        self._first_slab = MAX_WORKERS * _CONTROL_BYTES
        self._first_slot = self._first_slab + size.slabs * size.slab_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return Arena, (self.size, self.shelf, self._block)

    def slab(self, index: int) -> Slab:
        if index not in self._slabs:
            if not 0 <= index < self.size.slabs:
                raise IndexError(f"the arena has slabs 0 … {self.size.slabs - 1}, and no slab {index}")
            offset = self._first_slab + index * self.size.slab_bytes
            self._slabs[index] = Slab(self.size.shape, self._block, offset)
        return self._slabs[index]

    def reserve(self, slabs: int) -> None:
        """Takes the memory of the first slabs now, except that of fields which only a few transitions have. A buffer
        that keeps slabs fills them for hours, and must not run out of memory then."""
        for index in range(slabs):
            start = self._first_slab + index * self.size.slab_bytes
            self._block.reserve(start, common_bytes(self.size.shape))

    def control(self, worker: int) -> Array:
        """[2]: the worker's step count, which shows whether it hangs, and a flag that asks it to stop."""
        if worker not in self._controls:
            self._controls[worker] = self._block.array("uint64", (2,), worker * _CONTROL_BYTES)
        return self._controls[worker]

    def write_state(self, slot: int, state: bytes) -> bool:
        """Writes a state into a slot. Returns False if the state is too large."""
        if len(state) > self.size.slot_bytes - _LENGTH.size:
            return False
        start = self._first_slot + slot * self.size.slot_bytes
        buffer = self._block.buffer
        buffer[start : start + _LENGTH.size] = _LENGTH.pack(len(state))
        buffer[start + _LENGTH.size : start + _LENGTH.size + len(state)] = state
        return True

    def read_state(self, slot: int, most: int | None = None) -> bytes:
        """Reads the state in a slot, or its first bytes, at most ``most``."""
        start = self._first_slot + slot * self.size.slot_bytes
        buffer = self._block.buffer
        (length,) = _LENGTH.unpack(buffer[start : start + _LENGTH.size])
        length = length if most is None else min(length, most)
        return bytes(buffer[start + _LENGTH.size : start + _LENGTH.size + length])

    def close(self) -> None:
        self._slabs.clear()
        self._controls.clear()
        self._block.close()
        if self.shelf is not None:
            self.shelf.close()
