"""Links: what came of each decision.

A decision's link says what it earned until its return goes on, how many plies passed, and in which position it goes
on: at a later decision of the same owner in its *chain*, at the end of the slab, at the last position of a truncated
game, or nowhere, because the game is over. In a zero-sum game of two, the decisions of both seats may make one chain,
in which the sign turns with the mover. Else each seat's decisions make a chain of their own. What others do in between
is part of the environment. Where a truncated game has no last position for a seat, its own last decision stands in.

The native core follows the games of a table through each slab once (``native/links/links.h``). A link that the slab
leaves *open* waits as a row of its table for the next slab, which continues the games. If another slab comes, because
some in between were dropped or the games were reset, the return goes on where the last slab ended, if the chain's seat
acts there; else nobody will ever know, and the decision is dropped and counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab
from keisei.games.contract import Array, BoolArray, FloatArray, GameSpec, IntArray
from keisei.native import core

__all__ = [
    "AGE",
    "GAP",
    "NONE",
    "OPEN",
    "OVERWRITTEN",
    "RESET",
    "ROW",
    "LinkRule",
    "Links",
    "OpenRows",
    "is_one_chain",
    "linker",
]

GAP, RESET, AGE, OVERWRITTEN = "gap", "reset", "age", "overwritten"
"""Reasons for drops: a slab of the table is missing; its games were reset; the decision waited too long; the ring came
round before its outcome was known."""

NONE = -1
"""The next position of a decision whose game is over."""
OPEN = -2
"""The next position of what has no link."""

ROW = np.dtype(
    [
        ("chain", np.int32),
        ("place", np.int32),
        ("seat", np.int32),
        ("plies", np.int32),
        ("earned", np.float64),
        ("factor", np.float64),
    ]
)
"""An open decision, as the core has it: ``earned`` are its rewards so far, and ``factor`` is discount^plies."""


@dataclass(frozen=True, slots=True)
class LinkRule:
    """How decisions are linked."""

    n_step: int
    """Decisions of the chain from one to where its return goes on."""
    discount: float
    """Per ply."""
    owner: int
    """Whose decisions count."""
    one_chain: bool
    """Whether the decisions of both seats make one chain."""

    def most_open(self, shape: SlabShape) -> int:
        """The most decisions of a table that can be open."""
        return shape.games * (1 if self.one_chain else shape.seats) * self.n_step


def is_one_chain(spec: GameSpec) -> bool:
    """Whether one seat of this game wins what the other loses, so that their decisions may make one chain."""
    return spec.zero_sum and spec.seats == 2 and not spec.simultaneous


def linker(shape: SlabShape, rule: LinkRule, slabs: int = 1) -> core.Linker:
    """Makes what links the decisions of slabs of a shape."""
    return core.Linker(
        slabs, shape.steps, shape.games, shape.seats, shape.simultaneous,
        rule.n_step, rule.discount, rule.owner, rule.one_chain,
    )  # fmt: skip


class Links:
    """What came of decisions, by place (``native/links/links.h``)."""

    def __init__(self, places: int, *, plies: bool = False) -> None:
        # Filled, so that the memory is taken now.
        self.rewards: FloatArray = np.full(places, 0, np.float32)
        """Until the return goes on, discounted to the decision."""
        self.discounts: FloatArray = np.full(places, 0, np.float32)
        """The factor of the value there. It is negative where the other seat of a chain acts, and 0 after the end."""
        self.next: IntArray = np.full(places, OPEN, np.int32)
        """The number of the position where the return goes on; ``NONE`` after the end."""
        self.plies: IntArray = np.full(places if plies else 0, 0, np.int32)
        """Plies until then. Estimators with a trace need them."""

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        return self.rewards, self.discounts, self.next, self.plies

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class OpenRows:
    """The open decisions of one table, each chain's oldest first."""

    def __init__(self, most: int, rows: Array | None = None) -> None:
        self._rows: Array = np.full(most, 0, ROW)  # filled, so that the memory is taken now
        self._count = 0 if rows is None else len(rows)
        if rows is not None:
            self.rows[:] = rows[list(ROW.names or ())]

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Array:
        """A view of them, in the type ``ROW``."""
        return self._rows[: self._count]

    def keep(self, which: BoolArray) -> int:
        """Keeps some rows, and gives the number of the others."""
        before, kept = self._count, self.rows[which]
        self._count = len(kept)
        self._rows[: self._count] = kept
        return before - self._count

    def follow(
        self,
        maker: core.Linker,
        index: int,
        slab: Slab,
        links: Links,
        closed: IntArray,
        *,
        games: bool,
        end: bool,
    ) -> IntArray:
        """Follows the ``games`` of the table through a slab. At its ``end``, returns may go on where their chain acts.
        Gives the places of links that are closed by this, in ``closed``."""
        found, self._count = maker.follow(
            index, games, end, slab.acting, slab.seat, slab.owner, slab.reward, slab.terminated, slab.truncated,
            slab.final_seat, self._rows.view(np.uint8), self._count, *links.arrays, closed,
        )  # fmt: skip
        return closed[:found]
