"""What a worker is given when it starts: what to play, and the memory to play in."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from keisei.config import Settings
from keisei.errors import ParallelError
from keisei.experience.memory import SharedBlock
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, slab_layout
from keisei.games.contract import Array
from keisei.parallel.config import EnvConfig
from keisei.parallel.model_sync import WeightReader
from keisei.policies.networks import ModelConfig
from keisei.policies.seating import Seating

STATE_BYTES = 1 << 28
"""Reserved for each state of a worker's games; memory that is not written to costs nothing."""
MAX_IN_FLIGHT = 64
"""Slabs that a worker is ordered to play ahead, at the most. A pipe takes some 250 small messages; manager
and worker must never both wait for the other to read."""
_LENGTH = struct.Struct("<Q")


class WorkerPlan(Settings):
    """What a worker plays. It travels as JSON."""

    worker: int
    env: EnvConfig
    model: ModelConfig | None
    """None plays at random."""
    games: int
    first_game: int
    seed: int
    slab_steps: int
    slabs: int
    max_game_length: int | None
    temperature: float
    epsilon: float
    seating: Seating
    central: bool
    """True where the manager decides, and the worker only steps games."""
    epoch: int = 0
    resume_from: int | None = None
    """Which state to take up; None starts anew."""


def state_slots(slabs: int) -> int:
    """One state for each slab that a worker may have finished without the manager having looked at it, and one
    more: the last that the manager knows is whole, which a successor takes up."""
    return min(slabs, MAX_IN_FLIGHT) + 1


@dataclass
class WorkerMemory:
    """The shared memory of one worker: its slabs, the states of its games, and its control words."""

    shape: SlabShape
    slabs: int
    experience: SharedBlock
    state: SharedBlock
    control_block: SharedBlock
    weights: WeightReader | None
    _views: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def allocate(cls, shape: SlabShape, slabs: int, weights: WeightReader | None) -> WorkerMemory:
        experience = SharedBlock(slab_layout(shape).nbytes * slabs, sparse=True)
        state = SharedBlock(state_slots(slabs) * STATE_BYTES, sparse=True)
        return cls(shape, slabs, experience, state, SharedBlock(64), weights)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_views": {}}

    def slab(self, index: int) -> Slab:
        key = f"slab {index}"
        if key not in self._views:
            self._views[key] = Slab(self.shape, self.experience, index * slab_layout(self.shape).nbytes)
        slab: Slab = self._views[key]
        return slab

    @property
    def control(self) -> Array:
        """[2]: the worker's steps, counted so that the manager sees a hung worker; and a flag by which the
        manager stops a worker that it cannot kill."""
        if "control" not in self._views:
            self._views["control"] = self.control_block.array("uint64", (2,), 0)
        control: Array = self._views["control"]
        return control

    def write_state(self, slot: int, state: bytes) -> None:
        if len(state) > STATE_BYTES - _LENGTH.size:
            raise ParallelError(
                f"the games of a worker take {len(state):,} bytes to save, and {STATE_BYTES:,} are reserved; play "
                f"fewer games in each worker, or give the game a shorter snapshot"
            )
        start = slot * STATE_BYTES
        buffer = self.state.buffer
        buffer[start : start + _LENGTH.size] = _LENGTH.pack(len(state))
        buffer[start + _LENGTH.size : start + _LENGTH.size + len(state)] = state

    def read_state(self, slot: int) -> bytes:
        start = slot * STATE_BYTES
        (length,) = _LENGTH.unpack(self.state.buffer[start : start + _LENGTH.size])
        return bytes(self.state.buffer[start + _LENGTH.size : start + _LENGTH.size + length])

    def close(self) -> None:
        self._views.clear()
        for block in (self.experience, self.state, self.control_block):
            block.close()
