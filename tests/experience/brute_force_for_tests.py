"""What every decision should teach, slow and obvious: whole games are looked at, and every sum is written out.

This is read beside the papers, and shares nothing with ``keisei.experience``. One column of a table is a list of
plies, in which games follow each other. Slabs cut it at certain plies; some of them never arrive, and at some the games
were reset. For a decision of seat s at ply t, let t = t_0 < t_1 < … be the plies of the decisions that follow it in its
chain:

- where rewards are each seat's own, the later decisions of the same seat and owner;
- in a zero-sum game of two, the later decisions of the owner in either seat, seen by s: what is good for the other
  seat is bad for s.

Nothing follows the end of a game. Where the record breaks off, because the next slab is missing or begins anew, the
return goes on in the position where it breaks off, if somebody of the chain acts there; else the decision is lost. Both
are known when a later slab of the table arrives.

Advantages. Their returns also go on where a slab ends, if somebody of the chain acts there. With V_j the value of
decision j, and u_j the ply at which its outcome is known, the surprise of decision j is

    delta_j = sum of g^(p - t_j) r_p over the plies t_j <= p < u_j,  + g^(u_j - t_j) B_j  - V_j

where B_j is the value of what is found at ply u_j: the next decision, the position where the slab ends, the last
position of a game that was cut off, or nothing where the game is over. Then

    GAE (Schulman et al., 2016, eq. 16):        A = sum over j of (g l)^(t_j - t) delta_j
    V-trace (Espeholt et al., 2018, eq. 1):     v = V + sum over j of (g l)^(t_j - t) c_0 … c_(j-1) rho_j delta_j

with rho and c the clipped ratios of probabilities. The sums end where the slab ends in which the outcome of t itself
is known. The value of a decision that is still open there is believed, and nothing after it is added.

n-step returns, as a replay holds them. They run on beyond the end of a slab, to the n-th later decision of the chain.
Where a game is cut off and the chain has no last position, that of its last decision stands in. The discount is
g^(plies to the next position), negative if the other seat acts there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

NOTHING = -1
"""The name of no position."""


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
class Outcome:
    """When it is known what came of a decision."""

    what: str
    """decision, slab end, game end, lost, or nothing yet"""
    ply: int
    slab: int | None
    """The number of the slab that tells; None if no slab does."""


@dataclass(frozen=True)
class Column:
    """The plies of one place of a table, and the slabs that tell of them."""

    plies: Sequence[Ply]
    """The last one is the position where the record ends."""
    ends: Sequence[int]
    """Slab k ends before ply ``ends[k]``."""
    arrived: Collection[int]
    """The numbers of the slabs that arrive."""
    owner: int
    discount: float
    one_chain: bool
    """One chain for both seats of a turn-based zero-sum game."""
    stops: bool
    """Whether returns go on where a slab ends."""
    resets: Collection[int] = ()
    """The numbers of the slabs that do not continue the games of the one before."""

    def decisions(self) -> list[tuple[int, Row]]:
        """The decisions of the owner in slabs that arrive, with their plies."""
        return [
            (t, row)
            for t in range(self.ends[-1])
            if self.slab_of(t) in self.arrived
            for row in self.plies[t].rows.values()
            if row.owner == self.owner
        ]

    def slab_of(self, ply: int) -> int | None:
        return next((number for number, end in enumerate(self.ends) if ply < end), None)

    def partner(self, ply: int, seat: int) -> Row | None:
        """Who acts at a ply in the chain of a seat."""
        rows = self.plies[ply].rows
        if self.one_chain:
            (row,) = rows.values()
            return row
        return rows.get(seat)

    def outcome(self, t: int, seat: int) -> Outcome:
        """What the decision of a seat at ply t leads to."""
        for ply in range(t + 1, len(self.plies)):
            before = self.slab_of(ply - 1)
            if self.plies[ply - 1].end:
                return Outcome("game end", ply, before)
            row = self.partner(ply, seat)
            if ply in self.ends:
                assert before is not None
                if self.stops and row is not None:
                    return Outcome("slab end", ply, before)
                if before + 1 not in self.arrived or before + 1 in self.resets:
                    later = next((slab for slab in sorted(self.arrived) if slab > before), None)
                    what = "nothing yet" if later is None else "lost" if row is None else "slab end"
                    return Outcome(what, ply, later)
            if row is not None and row.owner == self.owner:
                return Outcome("decision", ply, self.slab_of(ply))
        return Outcome("nothing yet", len(self.plies), None)

    def number_lost(self) -> int:
        """How many decisions lead nowhere that anybody will know."""
        return sum(self.outcome(t, row.seat).what == "lost" for t, row in self.decisions())

    def number_waiting(self) -> int:
        return sum(self.outcome(t, row.seat).what == "nothing yet" for t, row in self.decisions())

    def earned(self, t: int, until: int, seat: int) -> float:
        return math.fsum(self.discount ** (p - t) * self.plies[p].rewards[seat] for p in range(t, until))


# n-step returns.


@dataclass(frozen=True)
class Return:
    """What a replay holds of a decision."""

    reward: float
    next: int
    """The name of the next position, or ``NOTHING``."""
    discount: float
    known_by: int
    """The number of the slab that tells it."""


def returns(column: Column, n_step: int) -> dict[int, Return | None]:
    """By name, what came of all decisions; None if a decision is lost. Those whose outcome no slab tells are left
    out."""
    found: dict[int, Return | None] = {}
    for t, row in column.decisions():
        last, at = row, t
        for met in range(1, n_step + 1):
            outcome = column.outcome(at, last.seat)
            if outcome.what != "decision" or met == n_step:
                break
            at, last = outcome.ply, _row(column, outcome.ply, last.seat)
        if outcome.what == "lost":
            found[row.name] = None
        elif outcome.slab is not None:
            found[row.name] = _return(column, t, row, last, outcome)
    return found


def _row(column: Column, ply: int, seat: int) -> Row:
    row = column.partner(ply, seat)
    assert row is not None
    return row


def _return(column: Column, t: int, row: Row, last: Row, outcome: Outcome) -> Return:
    assert outcome.slab is not None
    seat, name = last.seat, last.name
    if outcome.what != "game end":
        there = _row(column, outcome.ply, last.seat)
        seat, name = there.seat, there.name
    elif column.plies[outcome.ply - 1].end == "terminated":
        name = NOTHING
    else:
        finals = column.plies[outcome.ply - 1].finals or {}
        if column.one_chain:
            ((seat, name),) = finals.items()
        elif row.seat in finals:
            name = finals[row.seat]
    discount = column.discount ** (outcome.ply - t) * (1 if seat == row.seat else -1)
    reward = column.earned(t, outcome.ply, row.seat)
    return Return(reward, name, 0.0 if name == NOTHING else discount, outcome.slab)


# Advantages.


@dataclass(frozen=True)
class Credit:
    """How surprises are passed back."""

    trace: float
    rho_clip: float
    trace_clip: float


class Opinions(Protocol):
    """What is thought of positions by whom it concerns, when the slab is learned from in update ``update``."""

    def decision(self, name: int, update: int) -> float: ...
    def slab_end(self, name: int, update: int) -> float: ...
    def final(self, name: int, update: int) -> float: ...
    def anew(self, name: int, update: int) -> float:
        """The value of a decision whose outcome only a later slab told."""
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
class Surprise:
    """One decision of a chain, seen by the seat that the chain is told for."""

    ply: int
    value: float
    earned: float
    after: float
    """B."""
    known: int
    """u."""
    ratio: float


def lessons(column: Column, updates: Sequence[int], credit: Credit, opinions: Opinions) -> dict[int, Lesson]:
    """By name, of all decisions. Slab k is learned from in update ``updates[k]``."""
    teacher = _Teacher(column, updates, credit, opinions)
    return {
        row.name: teacher.lesson(t, row.seat)
        for t, row in column.decisions()
        if column.outcome(t, row.seat).what not in ("lost", "nothing yet")
    }


@dataclass(frozen=True)
class _Teacher:
    column: Column
    updates: Sequence[int]
    credit: Credit
    opinions: Opinions

    def lesson(self, t: int, seat: int) -> Lesson:
        chain = self.chain(t, seat)
        first = chain[0]
        gae = math.fsum(self.weight(t, link.ply) * self.surprise(link) for link in chain)
        target = self.vtrace(chain)
        afterwards = self.vtrace(chain[1:]) if chain[1:] else first.after
        later = self.column.discount ** (first.known - first.ply) * afterwards
        slab = self.column.outcome(t, seat).slab
        assert slab is not None
        return Lesson(self.updates[slab], first.value, gae, first.earned + later - first.value, target)

    def weight(self, t: int, ply: int) -> float:
        return (self.column.discount * self.credit.trace) ** (ply - t)

    def surprise(self, link: Surprise) -> float:
        return link.earned + self.column.discount ** (link.known - link.ply) * link.after - link.value

    def vtrace(self, chain: Sequence[Surprise]) -> float:
        """v of the first decision of a chain."""
        total = chain[0].value
        for j, link in enumerate(chain):
            passed = math.prod(min(self.credit.trace_clip, before.ratio) for before in chain[:j])
            rho = min(self.credit.rho_clip, link.ratio)
            total += self.weight(chain[0].ply, link.ply) * passed * rho * self.surprise(link)
        return total

    def chain(self, t: int, seat: int) -> list[Surprise]:
        """The decision at t and those after it whose outcome the same slab tells."""
        slab = self.column.outcome(t, seat).slab
        assert slab is not None
        links, ply = [self.link(t, seat, slab, first=True)], t
        while True:
            outcome = self.column.outcome(ply, _row(self.column, ply, seat).seat)
            if outcome.what != "decision":
                return links
            ply = outcome.ply
            if self.column.outcome(ply, _row(self.column, ply, seat).seat).slab != slab:
                return links
            links.append(self.link(ply, seat, slab, first=False))

    def link(self, ply: int, seat: int, slab: int, first: bool) -> Surprise:
        row, update = _row(self.column, ply, seat), self.updates[slab]
        outcome = self.column.outcome(ply, row.seat)
        late = first and self.column.slab_of(ply) != slab
        opinion = self.opinions.anew if late else self.opinions.decision
        value = self.seen(opinion(row.name, update), row.seat, seat)
        earned = self.column.earned(ply, outcome.ply, seat)
        after = self.after(outcome, seat, value, update)
        return Surprise(ply, value, earned, after, outcome.ply, self.opinions.ratio(row.name, update))

    def after(self, outcome: Outcome, seat: int, own: float, update: int) -> float:
        if outcome.what == "game end":
            return self.last_word(self.column.plies[outcome.ply - 1], seat, own, update)
        row = _row(self.column, outcome.ply, seat)
        opinion = self.opinions.slab_end if outcome.what == "slab end" else self.opinions.decision
        return self.seen(opinion(row.name, update), row.seat, seat)

    def last_word(self, last: Ply, seat: int, own: float, update: int) -> float:
        if last.end == "terminated":
            return 0.0
        assert last.finals is not None
        if self.column.one_chain:
            ((other, name),) = last.finals.items()
            return self.seen(self.opinions.final(name, update), other, seat)
        return self.opinions.final(last.finals[seat], update) if seat in last.finals else own

    def seen(self, value: float, by: int, seat: int) -> float:
        return -value if self.column.one_chain and by != seat else value
