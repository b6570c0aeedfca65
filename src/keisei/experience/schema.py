"""The schema of a transition: the one list of fields, types and shapes.

Experience is stored in **slabs**: blocks of [steps x slots], one column for each field. A slot is the place of one
decision row: a game in turn-based games, a (game, seat) in simultaneous ones. The worker writes each decision once,
in place. Nothing is pickled or copied on the way to the learner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keisei.games.contract import GameSpec


@dataclass(frozen=True, slots=True)
class SlabShape:
    """The sizes that determine a slab's memory."""

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
    """False for fields that only a few transitions have. Their memory is reserved, but rarely used."""


def _field(name: str, dtype: Any, shape: Callable[[SlabShape], tuple[int, ...]], often: bool = True) -> Field:
    return Field(name, np.dtype(dtype), shape, often)


FIELDS: tuple[Field, ...] = (
    # What each row saw, packed; ``Game.unpack`` expands it. There is one row more than steps, for the end of the slab.
    _field("packed", np.uint8, lambda s: (s.steps + 1, s.slots, s.packed_bytes)),
    _field("acting", np.bool_, lambda s: (s.steps + 1, s.slots)),
    _field("seat", np.int8, lambda s: (s.steps + 1, s.slots)),
    _field("episode", np.int32, lambda s: (s.steps, s.slots)),
    _field("ply", np.int32, lambda s: (s.steps, s.slots)),
    # The action, the policy that decided (0 is the learner, -1 is chance), the owner (-1: nobody learns from it), and
    # the version of the weights.
    _field("action", np.int32, lambda s: (s.steps, s.slots)),
    _field("log_prob", np.float32, lambda s: (s.steps, s.slots)),
    _field("value", np.float32, lambda s: (s.steps + 1, s.slots)),
    _field("policy", np.int16, lambda s: (s.steps, s.slots)),
    _field("owner", np.int16, lambda s: (s.steps, s.slots)),
    _field("version", np.int32, lambda s: (s.steps, s.slots)),
    # The outcome of the step, for each game and seat.
    _field("reward", np.float32, lambda s: (s.steps, s.games, s.seats)),
    _field("terminated", np.bool_, lambda s: (s.steps, s.games)),
    _field("truncated", np.bool_, lambda s: (s.steps, s.games)),
    _field("ending", np.uint8, lambda s: (s.steps, s.games)),
    # For games that finished in a step: their result, and the policy that the learner met in it (0: itself). For
    # truncated ones also the last position and its value.
    _field("score", np.float32, lambda s: (s.steps, s.games, s.seats), False),
    _field("opponent", np.int16, lambda s: (s.steps, s.games), False),
    _field("final_packed", np.uint8, lambda s: (s.steps, s.slots, s.packed_bytes), False),
    _field("final_seat", np.int8, lambda s: (s.steps, s.slots), False),
    _field("final_value", np.float32, lambda s: (s.steps, s.slots), False),
)


def bytes_per_transition(shape: SlabShape) -> float:
    """Computes the bytes of one transition."""
    total = sum(
        int(np.prod(field.shape(shape))) * field.dtype.itemsize for field in FIELDS if field.per_transition
    )
    return total / shape.transitions
