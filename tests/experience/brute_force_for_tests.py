"""What every decision should teach, slow and obvious: whole games are looked at, and every sum is written out.

This is read beside the papers, and shares nothing with ``keisei.experience``. One column of a table is a list of
plies, in which games follow each other. Slabs cut it at certain plies. For a decision of seat s at ply t, let
t = t_0 < t_1 < … be the plies of the decisions that follow it in its chain:

- where rewards are each seat's own, the later decisions of the same seat and owner;
- in a zero-sum game of two, the later decisions of the owner in either seat, seen by s: what is good for the other
  seat is bad for s.

With V_j the value of decision j, and u_j the ply at which its outcome is known, the surprise of decision j is

    delta_j = sum of g^(p - t_j) r_p over the plies t_j <= p < u_j,  + g^(u_j - t_j) B_j  - V_j

where B_j is the value of what is found at ply u_j: the next decision, the position where the slab ends, the last
position of a game that was cut off, or nothing where the game is over. Then

    GAE (Schulman et al., 2016, eq. 16):        A = sum over j of (g l)^(t_j - t) delta_j
    V-trace (Espeholt et al., 2018, eq. 1):     v = V + sum over j of (g l)^(t_j - t) c_0 … c_(j-1) rho_j delta_j

with rho and c the clipped ratios of probabilities. The sums end where the slab ends in which the outcome of t itself
is known. The value of a decision that is still open there is believed, and nothing after it is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Row:
    """A seat that must act."""

    name: int
    """Every position that a seat sees has a number of its own."""
    seat: int
    owner: int


@dataclass(frozen=True)
class Ply:
    """One step of one game."""

    rows: Mapping[int, Row]
    """Who must act, by seat."""
    rewards: Sequence[float]
    """What it brought to each seat."""
    end: str = ""
    """terminated, truncated, or nothing where the game goes on."""
    finals: Mapping[int, int] | None = None
    """Where the game was cut off: the names of the last positions, by seat."""


@dataclass(frozen=True)
class Rule:
    discount: float
    trace: float
    rho_clip: float
    trace_clip: float
    zero_sum_chain: bool
    """One chain for both seats of a turn-based zero-sum game."""


class Opinions(Protocol):
    """What is thought of positions by whom it concerns, when the slab is learned from in update ``update``."""

    def decision(self, name: int, update: int) -> float: ...
    def slab_end(self, name: int, update: int) -> float: ...
    def final(self, name: int, update: int) -> float: ...
    def anew(self, name: int, update: int) -> float:
        """The value of a decision that was carried from an earlier slab."""
        ...

    def ratio(self, name: int, update: int) -> float:
        """pi / mu of a decision; 1 where experience is not corrected."""
        ...


@dataclass(frozen=True)
class Lesson:
    """What is learned from one decision."""

    update: int
    value: float
    gae: float
    """The advantage by GAE; with the value, it is what the value should have been."""
    vtrace: float
    """The advantage by V-trace."""
    target: float
    """What the value should have been by V-trace."""


@dataclass(frozen=True)
class Outcome:
    """When it is known what came of a decision."""

    what: str
    """decision, slab end or game end"""
    ply: int
    slab: int | None
    """The number of the slab that tells; None if no slab does."""


@dataclass(frozen=True)
class Link:
    """One decision of a chain, seen by the seat that the chain is told for."""

    ply: int
    value: float
    earned: float
    after: float
    """B."""
    known: int
    """u."""
    ratio: float


def lessons(
    plies: Sequence[Ply],
    ends: Sequence[int],
    updates: Sequence[int],
    owner: int,
    rule: Rule,
    opinions: Opinions,
) -> dict[int, Lesson]:
    """By name, of all decisions of an owner in one column. Slab k ends before ply ``ends[k]`` and is learned from in
    update ``updates[k]``. The last of ``plies`` is the position where the record ends."""
    column = _Column(plies, ends, updates, owner, rule, opinions)
    found: dict[int, Lesson] = {}
    for t in range(ends[-1]):
        for row in plies[t].rows.values():
            if row.owner == owner and column.outcome(t, row.seat).slab is not None:
                found[row.name] = column.lesson(t, row.seat)
    return found


@dataclass(frozen=True)
class _Column:
    plies: Sequence[Ply]
    ends: Sequence[int]
    updates: Sequence[int]
    owner: int
    rule: Rule
    opinions: Opinions

    def slab_of(self, ply: int) -> int | None:
        return next((number for number, end in enumerate(self.ends) if ply < end), None)

    def last_ply_of_the_game(self, t: int) -> float:
        return next((p for p in range(t, len(self.plies)) if self.plies[p].end), math.inf)

    def partner(self, ply: int, seat: int) -> Row | None:
        """Who acts at a ply in the chain of a seat."""
        rows = self.plies[ply].rows
        if self.rule.zero_sum_chain:
            (row,) = rows.values()
            return row
        return rows.get(seat)

    def outcome(self, t: int, seat: int) -> Outcome:
        last = self.last_ply_of_the_game(t)
        for ply in range(t + 1, len(self.plies)):
            if ply > last:
                return Outcome("game end", ply, self.slab_of(ply - 1))
            row = self.partner(ply, seat)
            if row is not None and ply in self.ends:
                return Outcome("slab end", ply, self.ends.index(ply))
            if row is not None and row.owner == self.owner:
                return Outcome("decision", ply, self.slab_of(ply))
        return Outcome("nothing yet", len(self.plies), None)

    def lesson(self, t: int, seat: int) -> Lesson:
        chain = self.chain(t, seat)
        first = chain[0]
        gae = math.fsum(self.weight(t, link.ply) * self.surprise(link) for link in chain)
        target = self.vtrace(chain)
        afterwards = self.vtrace(chain[1:]) if chain[1:] else first.after
        later = self.rule.discount ** (first.known - first.ply) * afterwards
        slab = self.outcome(t, seat).slab
        assert slab is not None
        return Lesson(self.updates[slab], first.value, gae, first.earned + later - first.value, target)

    def weight(self, t: int, ply: int) -> float:
        return (self.rule.discount * self.rule.trace) ** (ply - t)

    def surprise(self, link: Link) -> float:
        return link.earned + self.rule.discount ** (link.known - link.ply) * link.after - link.value

    def vtrace(self, chain: Sequence[Link]) -> float:
        """v of the first decision of a chain."""
        rule, total = self.rule, chain[0].value
        for j, link in enumerate(chain):
            passed = math.prod(min(rule.trace_clip, before.ratio) for before in chain[:j])
            rho = min(rule.rho_clip, link.ratio)
            total += self.weight(chain[0].ply, link.ply) * passed * rho * self.surprise(link)
        return total

    def chain(self, t: int, seat: int) -> list[Link]:
        """The decision at t and those after it whose outcome the same slab tells."""
        slab = self.outcome(t, seat).slab
        assert slab is not None
        links, ply = [self.link(t, seat, slab, first=True)], t
        while True:
            row = self.partner(ply, seat)
            assert row is not None
            outcome = self.outcome(ply, row.seat)
            if outcome.what != "decision":
                return links
            ply = outcome.ply
            row = self.partner(ply, seat)
            assert row is not None
            if self.outcome(ply, row.seat).slab != slab:
                return links
            links.append(self.link(ply, seat, slab, first=False))

    def link(self, ply: int, seat: int, slab: int, first: bool) -> Link:
        row = self.partner(ply, seat)
        assert row is not None
        update, outcome = self.updates[slab], self.outcome(ply, row.seat)
        carried = first and self.slab_of(ply) != slab
        opinion = self.opinions.anew if carried else self.opinions.decision
        value = self.seen(opinion(row.name, update), row.seat, seat)
        earned = math.fsum(
            self.rule.discount ** (p - ply) * self.plies[p].rewards[seat] for p in range(ply, outcome.ply)
        )
        after = self.after(outcome, seat, value, update)
        return Link(ply, value, earned, after, outcome.ply, self.opinions.ratio(row.name, update))

    def after(self, outcome: Outcome, seat: int, own: float, update: int) -> float:
        if outcome.what == "game end":
            return self.last_word(self.plies[outcome.ply - 1], seat, own, update)
        row = self.partner(outcome.ply, seat)
        assert row is not None
        opinion = self.opinions.slab_end if outcome.what == "slab end" else self.opinions.decision
        return self.seen(opinion(row.name, update), row.seat, seat)

    def last_word(self, last: Ply, seat: int, own: float, update: int) -> float:
        if last.end == "terminated":
            return 0.0
        assert last.finals is not None
        if self.rule.zero_sum_chain:
            ((other, name),) = last.finals.items()
            return self.seen(self.opinions.final(name, update), other, seat)
        return self.opinions.final(last.finals[seat], update) if seat in last.finals else own

    def seen(self, value: float, by: int, seat: int) -> float:
        return -value if self.rule.zero_sum_chain and by != seat else value
