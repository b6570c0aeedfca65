"""Random games of every kind, as plain lists of plies and as the slabs that a worker would have written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, pairwise

import numpy as np
from brute_force_for_tests import Ply, Row

from keisei.experience.collected import CollectedSlab
from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord, slab_layout
from keisei.games.contract import Array, GameSpec, ObservationSpec
from keisei.machine.shared_memory import SharedBlock

GAMES = 3


@dataclass(frozen=True)
class Kind:
    """A shape of game."""

    seats: int
    zero_sum: bool = False
    simultaneous: bool = False

    @property
    def spec(self) -> GameSpec:
        observation = ObservationSpec((1,), np.dtype(np.float32))
        return GameSpec("history", self.seats, 9, observation, 4, self.simultaneous, self.zero_sum)

    @property
    def turning(self) -> bool:
        """One chain, in which the view turns with the mover."""
        return self.zero_sum and self.seats == 2 and not self.simultaneous


KINDS = [
    Kind(seats=2, zero_sum=True),
    Kind(seats=2),
    Kind(seats=3, zero_sum=True),
    Kind(seats=2, zero_sum=True, simultaneous=True),
    Kind(seats=3, simultaneous=True),
]


LONELY = Kind(seats=1, simultaneous=True)
"""What one agent sees of a game."""


@dataclass
class Histories:
    """Draws columns of plies."""

    rng: np.random.Generator
    kind: Kind
    owners: str
    """alone: owner 0 decides everything; seated: each seat has an owner from game to game, and openings have none;
    mixed: every decision has another."""
    names: count[int] = field(default_factory=count)

    def column(self, plies: int) -> list[Ply]:
        """So many plies, games one after the other, and the position after the last."""
        found: list[Ply] = []
        while len(found) <= plies:
            found += self._game()
        return found[: plies + 1]

    def _game(self) -> list[Ply]:
        """One game. Agents rest now and then, and some drop out for good."""
        rng, seats = self.rng, range(self.kind.seats)
        length = int(rng.integers(1, 9))
        opening = int(rng.integers(3))
        seated = rng.choice([-1, 0, 0, 1], size=len(seats)).tolist()
        out_from = rng.integers(1, 14, size=len(seats)).tolist()
        resting = float(rng.choice([0.0, 0.3, 0.7]))
        plies = []
        for number in range(length):
            acting = [int(rng.integers(len(seats)))]
            if self.kind.simultaneous:
                acting = [s for s in seats if number < out_from[s] and rng.random() >= resting]
            rows = {s: Row(next(self.names), s, self._owner(seated[s], number < opening)) for s in acting}
            last = number == length - 1
            end = str(rng.choice(["terminated", "truncated"])) if last else ""
            plies.append(Ply(rows, self._rewards(), end, self._finals() if end == "truncated" else None))
        return plies

    def _owner(self, seated: int, opening: bool) -> int:
        if self.owners == "alone":
            return 0
        if self.owners == "mixed":
            return int(self.rng.choice([-1, 0, 0, 1]))
        return -1 if opening else seated

    def _rewards(self) -> list[float]:
        rewards = self.rng.normal(size=self.kind.seats).astype(np.float32).tolist()
        if self.kind.turning:
            rewards[1] = -rewards[0]
        return rewards

    def _finals(self) -> dict[int, int]:
        seats = self.kind.seats
        if not self.kind.simultaneous:
            return {int(self.rng.integers(seats)): next(self.names)}
        some = self.rng.permutation(seats)[: self.rng.integers(1, seats + 1)]
        return {int(seat): next(self.names) for seat in some}


@lru_cache(maxsize=1 << 16)
def _number(*key: int) -> float:
    """Normally distributed, and nothing but its key decides it."""
    return float(np.float32(np.random.default_rng(key).normal()))


@dataclass(frozen=True)
class Opinion:
    """What is thought of positions when they are played and, later, by the judge. Every question has another
    answer, so that none is taken for another."""

    seed: int
    vtrace: bool

    def number(self, *key: int) -> float:
        return _number(self.seed, *key)

    def played(self, name: int) -> float:
        return self.number(name, 1)

    def behaviour(self, name: int) -> float:
        return -abs(self.number(name, 2))

    def judged(self, name: int, update: int) -> float:
        return self.number(name, 3, update)

    def judged_log_prob(self, name: int, update: int) -> float:
        return -abs(self.number(name, 4, update))

    def decision(self, name: int, update: int) -> float:
        return self.judged(name, update) if self.vtrace else self.played(name)

    def slab_end(self, name: int, update: int) -> float:
        return self.judged(name, update) if self.vtrace else self.number(name, 5)

    def final(self, name: int, update: int) -> float:
        return self.judged(name, update) if self.vtrace else self.number(name, 6)

    def anew(self, name: int, update: int) -> float:
        return self.judged(name, update)

    def ratio(self, name: int, update: int) -> float:
        if not self.vtrace:
            return 1.0
        return math.exp(self.judged_log_prob(name, update) - self.behaviour(name))


def action_of(name: int) -> int:
    return name % 7


def names_of(packed: Array) -> list[int]:
    names: list[int] = np.ascontiguousarray(packed).view(np.uint32)[:, 0].tolist()
    return names


class JudgeOf:
    """Answers as the opinion says, in the update that is now, and remembers whom it was asked about."""

    def __init__(self, opinion: Opinion) -> None:
        self.opinion = opinion
        self.update = 0
        self.asked: list[list[int]] = []

    def __call__(self, packed: Array, actions: Array) -> tuple[Array, Array]:
        names = names_of(packed)
        self.asked.append(names)
        opinion, update = self.opinion, self.update
        log_probs = [
            opinion.judged_log_prob(name, update) if action == action_of(name) else math.nan
            for name, action in zip(names, actions.tolist(), strict=True)
        ]
        values = [opinion.judged(name, update) for name in names]
        return np.array(log_probs, np.float32), np.array(values, np.float32)


def slabs_of(
    columns: Sequence[Sequence[Ply]], kind: Kind, ends: Sequence[int], opinion: Opinion, table: int = 0
) -> list[CollectedSlab]:
    """The columns of a table, cut into slabs."""
    bounds = list(pairwise([0, *ends]))
    return [
        CollectedSlab(record_of(table, sequence), 0, _slab(columns, kind, start, end, opinion))
        for sequence, (start, end) in enumerate(bounds)
    ]


def record_of(table: int, sequence: int, epoch: int = 0) -> SlabRecord:
    return SlabRecord(table, 0, epoch, sequence, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


def _slab(columns: Sequence[Sequence[Ply]], kind: Kind, start: int, end: int, opinion: Opinion) -> Slab:
    shape = SlabShape(end - start, len(columns), kind.seats, packed_bytes=4, simultaneous=kind.simultaneous)
    slab = Slab(shape, SharedBlock(slab_layout(shape).nbytes))
    # What nobody may look at is poisoned.
    slab.value[:], slab.log_prob[:], slab.final_value[:], slab.final_seat[:] = np.nan, np.nan, np.nan, 1
    for game, plies in enumerate(columns):
        for step in range(end - start + 1):
            _write_rows(slab, step, game, plies[start + step], opinion)
        for step in range(end - start):
            _write_outcome(slab, step, game, plies[start + step], opinion)
    return slab


def _slot(slab: Slab, game: int, seat: int) -> int:
    return game * slab.shape.seats + seat if slab.shape.simultaneous else game


def _packed(name: int) -> Array:
    return np.array([name], np.uint32).view(np.uint8)


def _write_rows(slab: Slab, step: int, game: int, ply: Ply, opinion: Opinion) -> None:
    for seat, row in ply.rows.items():
        slot, name = _slot(slab, game, seat), row.name
        slab.acting[step, slot] = True
        slab.seat[step, slot] = seat
        slab.packed[step, slot] = _packed(name)
        if step == slab.shape.steps:
            slab.value[step, slot] = opinion.number(name, 5)
            continue
        slab.owner[step, slot] = row.owner
        slab.action[step, slot] = action_of(name)
        if row.owner >= 0:
            slab.log_prob[step, slot] = opinion.behaviour(name)
            slab.value[step, slot] = opinion.played(name)


def _write_outcome(slab: Slab, step: int, game: int, ply: Ply, opinion: Opinion) -> None:
    slab.reward[step, game] = ply.rewards
    slab.terminated[step, game] = ply.end == "terminated"
    slab.truncated[step, game] = ply.end == "truncated"
    if ply.finals is None:
        return
    slots = [_slot(slab, game, seat) for seat in range(slab.shape.seats)]
    slab.final_seat[step, slots] = -1
    for seat, name in ply.finals.items():
        slot = _slot(slab, game, seat)
        slab.final_seat[step, slot] = seat
        slab.final_packed[step, slot] = _packed(name)
        slab.final_value[step, slot] = opinion.number(name, 6)
