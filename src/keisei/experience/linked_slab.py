"""A slab with the links of its decisions: what estimators work on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keisei.experience.links import Links
from keisei.experience.slab import Slab
from keisei.games.contract import Array, FloatArray
from keisei.native import core

__all__ = ["LinkedSlab"]


@dataclass(slots=True, eq=False)
class LinkedSlab:
    """The decisions of a slab whose links are closed, and earlier ones that it closes.

    Positions are numbered as in ``native/links/links.h``: those of decisions, those at the end, the last ones of
    truncated games, those of earlier decisions.
    """

    slab: Slab
    maker: core.Linker
    links: Links
    places: NDArray[np.intp]
    """[n]: the decisions, in order. Those of earlier slabs come last."""
    waited: Array
    """The decisions of earlier slabs that were open (``OpenDecisions``), closed now or not."""
    positions: NDArray[np.intp] = field(init=False)
    """[n]: what was seen at the decisions."""
    values: FloatArray = field(init=False)
    """By position, as they were when the slab was played. Those of earlier decisions are not known."""
    log_probs: FloatArray | None = field(init=False, default=None)
    """[n]: log-probabilities of the actions under the policy that learns now, if V-trace compares."""

    def __post_init__(self) -> None:
        shape = self.slab.shape
        between = (shape.steps + 1) * shape.slots
        self.positions = np.where(self.places < shape.transitions, self.places, self.places + between)
        unknown = np.zeros(len(self.waited), np.float32)
        self.values = np.concatenate([self.slab.value.ravel(), self.slab.final_value.ravel(), unknown])

    def __len__(self) -> int:
        return len(self.places)

    def packed_at(self, positions: NDArray[np.intp], out: Array) -> None:
        """Copies what was seen at some positions, which are in order, as below."""
        size = self.slab.shape.packed_bytes
        columns = self.slab.packed.reshape(-1, size), self.slab.final_packed.reshape(-1, size)
        _copy(positions, [*columns, self.waited["packed"]], out)

    def actions_at(self, positions: NDArray[np.intp], out: Array) -> None:
        """Copies the actions at some positions; 0 where nobody has decided."""
        shape = self.slab.shape
        nobody = np.broadcast_to(np.int32(0), (shape.steps + 1) * shape.slots)
        _copy(positions, [self.slab.action.ravel(), nobody, self.waited["action"]], out)

    def behaviour(self, out: Array) -> None:
        """Copies the log-probabilities of the actions under the policy that acted, [n]."""
        _copy(self.places, [self.slab.log_prob.ravel(), self.waited["log_prob"]], out)

    def to_judge(self, everything: bool) -> NDArray[np.intp]:
        """Finds the positions of earlier decisions, or all that estimates use."""
        asked = np.zeros(len(self.values), np.bool_)
        asked[self.positions] = True
        if everything:
            following = self.links.next[self.places]
            asked[following[following >= 0]] = True
        else:
            asked[: len(asked) - len(self.waited)] = False
        return np.flatnonzero(asked)

    def hear(self, positions: NDArray[np.intp], values: FloatArray, log_probs: FloatArray | None) -> None:
        """Takes the judge's word on some positions."""
        self.values[positions] = values
        if log_probs is not None:
            by_position = np.zeros_like(self.values)
            by_position[positions] = log_probs
            self.log_probs = by_position[self.positions]


def _copy(numbers: NDArray[np.intp], columns: list[Array], out: Array) -> None:
    """Copies rows of columns that are numbered one after the other. The numbers are in order."""
    first = start = 0
    for column, end in zip(columns, np.searchsorted(numbers, np.cumsum([*map(len, columns)])), strict=True):
        if start < end:  # they are in bounds, and numpy buffers the output if it must look
            np.take(column, numbers[start:end] - first, axis=0, out=out[start:end], mode="clip")
        first, start = first + len(column), end
