"""What is remembered of a transition: the one source of truth for fields, types and shapes.

Experience lies in **slabs**: blocks of [steps x slots], one column for each field. A slot is where one
decision row has its place: a game in turn-based games, a (game, seat) in simultaneous ones. The worker
writes each decision once, in place; nothing is pickled, and nothing is copied on the way to the learner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keisei.games.contract import GameSpec


@dataclass(frozen=True, slots=True)
class SlabShape:
    """The sizes that fix a slab's memory."""

    steps: int
    games: int
    seats: int
    packed_bytes: int
    simultaneous: bool

    @classmethod
    def of(cls, spec: GameSpec, steps: int, games: int) -> SlabShape:
        return cls(steps, games, spec.seats, spec.packed_bytes, spec.simultaneous)

    @property
    def slots(self) -> int:
        return self.games * self.seats if self.simultaneous else self.games

    @property
    def transitions(self) -> int:
        return self.steps * self.slots


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    dtype: np.dtype[Any]
    shape: Callable[[SlabShape], tuple[int, ...]]
    per_transition: bool = True
    """False for what only a few transitions have; its memory is reserved, but seldom touched."""


def _field(name: str, dtype: Any, shape: Callable[[SlabShape], tuple[int, ...]], often: bool = True) -> Field:
    return Field(name, np.dtype(dtype), shape, often)


FIELDS: tuple[Field, ...] = (
    # What each row saw, packed; ``Game.unpack`` expands it. One row more than steps: where the slab ends.
    _field("packed", np.uint8, lambda s: (s.steps + 1, s.slots, s.packed_bytes)),
    _field("acting", np.bool_, lambda s: (s.steps + 1, s.slots)),
    _field("seat", np.int8, lambda s: (s.steps + 1, s.slots)),
    _field("episode", np.int32, lambda s: (s.steps, s.slots)),
    _field("ply", np.int32, lambda s: (s.steps, s.slots)),
    # What it did, who decided (0 is the learner), which learner it belongs to (-1: nobody learns from it), and which
    # version of the weights that was.
    _field("action", np.int32, lambda s: (s.steps, s.slots)),
    _field("log_prob", np.float32, lambda s: (s.steps, s.slots)),
    _field("value", np.float32, lambda s: (s.steps + 1, s.slots)),
    _field("policy", np.int16, lambda s: (s.steps, s.slots)),
    _field("owner", np.int16, lambda s: (s.steps, s.slots)),
    _field("version", np.int32, lambda s: (s.steps, s.slots)),
    # What came of it, for each game and seat.
    _field("reward", np.float32, lambda s: (s.steps, s.games, s.seats)),
    _field("terminated", np.bool_, lambda s: (s.steps, s.games)),
    _field("truncated", np.bool_, lambda s: (s.steps, s.games)),
    _field("ending", np.uint8, lambda s: (s.steps, s.games)),
    # Of games that finished in a step: their result; of truncated ones also the last position and its value.
    _field("score", np.float32, lambda s: (s.steps, s.games, s.seats), False),
    _field("final_packed", np.uint8, lambda s: (s.steps, s.slots, s.packed_bytes), False),
    _field("final_seat", np.int8, lambda s: (s.steps, s.slots), False),
    _field("final_value", np.float32, lambda s: (s.steps, s.slots), False),
)


def bytes_per_transition(shape: SlabShape) -> float:
    """What one transition costs on its way to the learner."""
    total = sum(
        int(np.prod(field.shape(shape))) * field.dtype.itemsize for field in FIELDS if field.per_transition
    )
    return total / shape.transitions
