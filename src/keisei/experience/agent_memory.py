"""The memory of one independent agent: a replay of its own decisions, in memory of its own.

One thread writes it, and any thread may draw from it. Writers never wait: a count of writes is odd while one goes on,
and whoever drew meanwhile draws again. So no sample has a part from before a write and a part from after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from keisei.errors import CheckpointError, ConfigError
from keisei.experience.agent_slabs import copy_of_agent, empty_slab, shape_of_agent, spec_of_agent
from keisei.experience.collected import CollectedSlab, LentSlab
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replayed import ReplaySample
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab
from keisei.experience.steps_due import MOST_OWED
from keisei.games.contract import FloatArray, GameSpec
from keisei.runs.state import State

__all__ = ["AgentMemory", "DrawnSamples", "MemoryView"]

Found = TypeVar("Found")
_PAUSE = 2e-5
"""Seconds that a reader waits before it tries again."""


class AgentMemory:
    """Keeps the decisions of one agent. ``len`` counts those that may be drawn."""

    def __init__(
        self,
        spec: GameSpec,
        shape: SlabShape,
        settings: ReplaySettings,
        discount: float,
        *,
        agent: int,
        batch_size: int,
        tables: int = 1,
        seed: int = 0,
    ) -> None:
        """``spec`` and ``shape`` are those of the whole game and of the workers' slabs. ``batch_size`` is the size of
        the learner's samples. ``seed`` keys those that are drawn ahead."""
        self.agent = agent
        self._batch_size, self._seed = batch_size, seed
        self._steps_are_fixed = isinstance(settings.learning_steps, int)
        own = shape_of_agent(shape)
        self._replay = ReplayBuffer(
            spec_of_agent(spec), own, settings, discount, batch_size=batch_size, tables=tables
        )
        self._slabs = [empty_slab(own) for _ in range(self._replay.most_leases)]
        self._at = 0
        self._writes = 0
        self._owed = 0
        self._drawn_ahead = 0

    def __len__(self) -> int:
        return len(self._replay)

    @property
    def capacity(self) -> int:
        """The number of decisions that fit."""
        return self._replay.capacity

    @property
    def nbytes(self) -> int:
        return self._replay.nbytes

    def take(self, collected: Sequence[CollectedSlab]) -> None:
        """Copies what the agent has decided. Gradient steps that are due add up until ``view`` hands them out."""
        self._writes += 1
        try:
            due = 0
            for item in collected:
                self._replay.take([copy_of_agent(item, self.agent, self._next_slab())])
                # A fixed number of steps is due once for all slabs of a collection.
                due = self._replay.steps() + (0 if self._steps_are_fixed else due)
            self._owed += due
        finally:
            self._writes += 1

    def due(self) -> int:
        """Gets the gradient steps that are due."""
        return self._owed if len(self) else 0

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        """Draws whole decisions, also while another thread writes."""
        return self._whole(lambda: self._replay.sample(size, seed, key, progress))

    def snapshot(self, steps: int, progress: float = 1.0) -> list[ReplaySample]:
        """Draws the samples of so many gradient steps at once. They are copies, so the memory may be written while
        they are learned from."""
        first, self._drawn_ahead = self._drawn_ahead, self._drawn_ahead + steps
        keys = range(first, first + steps)
        return self._whole(
            lambda: [self._replay.sample(self._batch_size, self._seed, key, progress) for key in keys]
        )

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        """Sets the priorities of a sample; those of decisions that are gone are counted."""
        self._replay.update_priorities(sample, errors)

    def view(self) -> MemoryView:
        """Gets the memory to learn from. What was due counts as handed out."""
        due, self._owed = self.due(), 0
        return MemoryView(self, due)

    def numbers(self) -> Mapping[str, float]:
        return self._replay.numbers()

    def state(self) -> State:
        state = self._replay.state()
        return State(
            state.tensors,
            {"replay": state.document, "owed": self._owed, "drawn_ahead": self._drawn_ahead},
            state.pieces,
        )

    def restore(self, state: State) -> None:
        document = state.document if isinstance(state.document, dict) else {}
        self._replay.restore(State(state.tensors, document.get("replay"), state.pieces), self._lend)
        owed, drawn = document.get("owed"), document.get("drawn_ahead")
        if (
            type(owed) is not int
            or type(drawn) is not int
            or not (0 <= owed < MOST_OWED and 0 <= drawn < 1 << 53)
        ):
            raise CheckpointError(
                f"the checkpoint does not say how many gradient steps are due to agent {self.agent}: {owed!r}; take an "
                f"earlier checkpoint"
            )
        self._owed, self._drawn_ahead = owed if len(self) else 0, drawn

    def _next_slab(self) -> Slab:
        """Gets the memory of the oldest slab, which the next one takes."""
        slab = self._slabs[self._at]
        self._at = (self._at + 1) % len(self._slabs)
        return slab

    def _lend(self, count: int) -> Sequence[LentSlab]:
        self._at = 0
        return [LentSlab(self._next_slab(), None) for _ in range(count)]

    def _whole(self, draw: Callable[[], Found]) -> Found:
        """Draws until nothing was written meanwhile."""
        while True:
            before = self._writes
            try:
                found = draw()
            except (ConfigError, IndexError, ValueError):
                if before == self._writes and not before % 2:
                    raise
            else:
                if before == self._writes and not before % 2:
                    return found
            time.sleep(_PAUSE)


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A memory as its learner sees it, with the gradient steps that are due."""

    memory: AgentMemory
    due: int

    def steps(self) -> int:
        return self.due

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        return self.memory.sample(size, seed, key, progress)

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        self.memory.update_priorities(sample, errors)

    def drawn(self, progress: float) -> DrawnSamples:
        """Draws all samples now."""
        return DrawnSamples(self.memory, self.memory.snapshot(self.due, progress))


class DrawnSamples:
    """Samples that were drawn before learning begins. They are handed out in order, whatever the key. One that nobody
    has learned from yet is handed out again, so a step that has failed loses nothing."""

    def __init__(self, memory: AgentMemory, samples: Sequence[ReplaySample]) -> None:
        self._memory, self._samples = memory, list(samples)
        self._errors: list[tuple[ReplaySample, FloatArray]] = []

    def steps(self) -> int:
        """Gets the steps of the whole training."""
        return len(self._samples)

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        return self._samples[len(self._errors)]

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        """Keeps the errors for ``settle``."""
        self._errors.append((sample, errors))

    def settle(self) -> None:
        """Sets the priorities in the memory. Only the thread that writes the memory may call it."""
        for sample, errors in self._errors:
            self._memory.update_priorities(sample, errors)
        self._errors.clear()
