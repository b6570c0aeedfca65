"""What a replay should hold, slow and obvious: whole games are walked ply by ply, once for every decision.

This shares nothing with ``keisei.experience``. One column of a table is a list of plies, in which games follow each
other; it is cut into slabs of equal length. Some slabs never arrive. For a decision of seat s at ply t:

- Its chain are the owner's later decisions in the same game: those of the same seat, or, where both seats make one
  chain, those of either seat.
- Its reward is the sum of g^(p - t) times what ply p brings to s, from t to the ply before the next position.
- The next position is that of the n-th later decision of the chain. If the game ends before, there is none. If the
  game is cut off before, it is the last position, as s sees it, or as the other seat does in a common chain; and
  where there is no such position, that of the last decision of the chain.
- If the record breaks off before, because the next slab is missing, it is the position where the record breaks off.
  If nobody of the chain acts there, the decision is lost.
- The discount is g^(plies to the next position), negative if the other seat acts there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from brute_force_for_tests import Ply, Row

NOTHING = -1
"""The name of no position."""


@dataclass(frozen=True)
class Rule:
    n_step: int
    discount: float
    owner: int
    common_chain: bool


@dataclass(frozen=True)
class Outcome:
    reward: float
    next: int
    """The name of the next position, or ``NOTHING``."""
    discount: float
    known_by: int
    """The number of the slab that tells it."""


@dataclass(frozen=True)
class Column:
    """The plies of one game slot."""

    plies: Sequence[Ply]
    """One more than the slabs have."""
    steps: int
    """Plies of a slab."""
    arrived: Sequence[int]
    """The numbers of the slabs that arrive, in order."""
    rule: Rule

    def outcomes(self) -> dict[int, Outcome | None]:
        """By name, what came of all decisions of the owner in slabs that arrive; None if it is lost. Those whose
        outcome no slab tells are left out."""
        found: dict[int, Outcome | None] = {}
        for slab in self.arrived:
            for t in range(slab * self.steps, (slab + 1) * self.steps):
                for row in self.plies[t].rows.values():
                    if row.owner == self.rule.owner:
                        self._walk(t, row, found)
        return found

    def _walk(self, t: int, decision: Row, found: dict[int, Outcome | None]) -> None:
        last, met = decision, 0
        for p in range(t + 1, len(self.plies)):
            before = self.plies[p - 1]
            slab_before, slab = (p - 1) // self.steps, p // self.steps
            if before.end:
                found[decision.name] = self._after_the_game(t, p, decision, last)
                return
            row = self._of_the_chain(self.plies[p], decision.seat)
            if slab != slab_before and slab not in self.arrived:
                later = [number for number in self.arrived if number > slab]
                if later:
                    end = None if row is None else self._outcome(t, p, decision, row.name, row.seat, later[0])
                    found[decision.name] = end
                return
            if row is not None and row.owner == self.rule.owner:
                met += 1
                if met == self.rule.n_step:
                    found[decision.name] = self._outcome(t, p, decision, row.name, row.seat, slab)
                    return
                last = row

    def _of_the_chain(self, ply: Ply, seat: int) -> Row | None:
        if self.rule.common_chain:
            (row,) = ply.rows.values()
            return row
        return ply.rows.get(seat)

    def _after_the_game(self, t: int, p: int, decision: Row, last: Row) -> Outcome:
        ply, slab = self.plies[p - 1], (p - 1) // self.steps
        if ply.end == "terminated":
            return self._outcome(t, p, decision, NOTHING, decision.seat, slab)
        assert ply.finals is not None
        if self.rule.common_chain:
            ((seat, name),) = ply.finals.items()
            return self._outcome(t, p, decision, name, seat, slab)
        if decision.seat in ply.finals:
            return self._outcome(t, p, decision, ply.finals[decision.seat], decision.seat, slab)
        return self._outcome(t, p, decision, last.name, last.seat, slab)

    def _outcome(self, t: int, p: int, decision: Row, name: int, seat: int, slab: int) -> Outcome:
        g = self.rule.discount
        reward = math.fsum(g ** (q - t) * self.plies[q].rewards[decision.seat] for q in range(t, p))
        if name == NOTHING:
            return Outcome(reward, NOTHING, 0.0, slab)
        return Outcome(reward, name, g ** (p - t) * (1 if seat == decision.seat else -1), slab)
