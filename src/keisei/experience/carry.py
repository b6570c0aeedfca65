"""The carry: decisions whose outcome is not known at the end of a slab, until a later slab of their table shows it.

A seat that waits at the end of a slab has a last decision without a next one. Its game continues in the next slab
of its table. So the decision waits for that slab, with the rewards so far. Three things may happen there:

- The seat acts, or the game ends: the decision *closes*. The learner learns from it with the others of that slab.
- Neither: it waits on, with the rewards and plies of that slab added.
- The slab is not the next one, because slabs in between were dropped or the games were reset: the outcome will
  never be known. The decision is dropped, and counted.

When a decision closes, the weights may be newer than those of its own slab. So it keeps the log-probability of the
policy that acted, while its value (and V-trace's ratio) is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from keisei.errors import CheckpointError
from keisei.experience.advantages import CreditRule, OpenDecisions, Outlook, ratios
from keisei.experience.saved_columns import check_actions, columns_like
from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import BoolArray, ByteArray, FloatArray, IntArray
from keisei.runs.json_values import Json
from keisei.runs.state import State

LONGEST_WAIT = 32
"""Slabs after which a decision is no longer carried, since the policy that made it is too old."""
GAP, RESET, AGE = "gap", "reset", "age"
"""Reasons for drops: a slab in between is missing; the table's games were reset; the decision waited too long."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Decisions without an outcome, [n] each."""

    place: IntArray
    """game * seats + seat"""
    packed: ByteArray
    """[n, packed_bytes]"""
    action: IntArray
    log_prob: FloatArray
    """Log-probabilities under the policy that acted."""
    earned: FloatArray
    """The seat's rewards since the decision, discounted to it."""
    plies: IntArray
    """Plies from the decision to the first position of the next slab."""
    slabs: IntArray
    """How many slabs ended while it waited."""

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def none(cls, packed_bytes: int) -> Self:
        """No decisions, of a game with such positions."""
        whole, numbers = np.zeros(0, np.int32), np.zeros(0, np.float32)
        packed = np.zeros((0, packed_bytes), np.uint8)
        return cls(whole, packed, whole, numbers, numbers, whole, whole)

    @classmethod
    def where(cls, slab: Slab, found: OpenDecisions) -> Self:
        """Gives copies of the open decisions of a slab, so the slab may be given back."""
        at = (found.step, found.slot)
        return cls(
            place=found.place.astype(np.int32),
            packed=slab.packed[at],
            action=slab.action[at],
            log_prob=slab.log_prob[at],
            earned=found.earned,
            plies=(slab.shape.steps - found.step).astype(np.int32),
            slabs=np.ones(len(found.step), np.int32),
        )

    @classmethod
    def joined(cls, parts: Iterable[Waiting]) -> Self:
        """All parts in one; there must be some."""
        parts = list(parts)
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def chosen(self, which: BoolArray | slice) -> Self:
        return type(self)(*(getattr(self, name)[which] for name in type(self).__slots__))

    def after(self, outlook: Outlook, steps: int, discount: float) -> Self:
        """Gives the same decisions after one more slab."""
        return replace(
            self,
            earned=self.earned + _power(discount, self.plies) * outlook.worth[self.place],
            plies=self.plies + np.int32(steps),
            slabs=self.slabs + np.int32(1),
        )


@dataclass(frozen=True, slots=True)
class Closed:
    """Decisions whose outcome is now known, [n] each. Their own value is still to be computed."""

    packed: ByteArray
    """[n, packed_bytes]"""
    action: IntArray
    log_prob: FloatArray
    """Log-probabilities under the policy that acted."""
    target: FloatArray
    """Rewards up to the next decision and the value there, discounted to this decision."""
    own: FloatArray
    """How much the decision's own value is added, as in ``Outlook``."""
    ahead: FloatArray
    """The next decision's target minus its value, discounted."""
    trail: FloatArray
    """The same, multiplied by the trace."""

    def __len__(self) -> int:
        return len(self.action)

    @classmethod
    def by(cls, outlook: Outlook, waiting: Waiting, rule: CreditRule) -> Self:
        """Closes decisions of earlier slabs."""
        at, distance = waiting.place, _power(rule.discount, waiting.plies)
        return cls(
            packed=waiting.packed,
            action=waiting.action,
            log_prob=waiting.log_prob,
            target=waiting.earned + distance * outlook.worth[at],
            own=distance * outlook.own[at],
            ahead=distance * outlook.ahead[at],
            trail=distance * _power(rule.trace, waiting.plies) * outlook.trail[at],
        )

    @classmethod
    def joined(cls, parts: Iterable[Closed]) -> Self:
        """All parts in one; there must be some."""
        parts = list(parts)
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def estimates(
        self, log_probs: FloatArray, values: FloatArray, rule: CreditRule, *, vtrace: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Computes advantages and returns from the new log-probabilities and values; see ``advantages`` for the
        formulas."""
        rho, c = ratios(log_probs, self.log_prob, rule) if vtrace else (np.float32(1), np.float32(1))
        delta = self.target + self.own * values - values
        correction = rho * delta + c * self.trail
        return delta + self.ahead if vtrace else correction, values + correction


def _power(base: float, plies: IntArray) -> FloatArray:
    """Computes base^plies, rounded once."""
    return np.power(base, plies, dtype=np.float64).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Key:
    """The slab at whose end decisions wait."""

    epoch: int
    sequence: int


class Carry:
    """The waiting decisions of one owner, table by table. It survives updates and is part of the checkpoint."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[_Key, Waiting]] = {}
        self._dropped = dict.fromkeys((GAP, RESET, AGE), 0)

    def __len__(self) -> int:
        return sum(len(waiting) for _, waiting in self._tables.values())

    @property
    def dropped(self) -> Mapping[str, int]:
        """The number of dropped decisions, by reason."""
        return dict(self._dropped)

    def advance(
        self, record: SlabRecord, slab: Slab, found: OpenDecisions, outlook: Outlook, rule: CreditRule
    ) -> Closed | None:
        """Processes the next slab of a table: closes decisions whose outcome it shows, and keeps those that it
        leaves open."""
        now_open, closed = [Waiting.where(slab, found)], None
        before = self._before(record)
        if before is not None:
            if before.place.max(initial=0) >= len(outlook.closes):
                raise CheckpointError(
                    f"the decisions that table {record.table} carries are of seats that it does not have; the run "
                    f"continues from an earlier checkpoint"
                )
            closes = outlook.closes[before.place]
            closed = Closed.by(outlook, before.chosen(closes), rule)
            longer = before.chosen(~closes)
            now_open.append(self._young(longer.after(outlook, slab.shape.steps, rule.discount)))
        waiting = Waiting.joined(now_open)
        if len(waiting):
            self._tables[record.table] = (_Key(record.epoch, record.sequence), waiting)
        return closed

    def _before(self, record: SlabRecord) -> Waiting | None:
        """Gives the decisions that wait for exactly this slab."""
        if record.table not in self._tables:
            return None
        key, waiting = self._tables.pop(record.table)
        if key.epoch == record.epoch and key.sequence + 1 == record.sequence:
            return waiting
        self._dropped[RESET if key.epoch != record.epoch else GAP] += len(waiting)
        return None

    def _young(self, waiting: Waiting) -> Waiting:
        young = waiting.slabs <= LONGEST_WAIT
        self._dropped[AGE] += int((~young).sum())
        return waiting.chosen(young)

    def state(self) -> State:
        """Gives all rows in the order of the tables, with the key and the number of rows of each table."""
        tables = sorted(self._tables)
        kept = [self._tables[table] for table in tables]
        keys: list[Json] = [
            [table, key.epoch, key.sequence, len(waiting)]
            for table, (key, waiting) in zip(tables, kept, strict=True)
        ]
        document: Json = {"tables": keys, "dropped": {**self._dropped}}
        if not kept:
            return State(document=document)
        whole = Waiting.joined(waiting for _, waiting in kept)
        rows = {field.name: getattr(whole, field.name) for field in fields(whole)}
        return State({"carry": rows}, document)

    def restore(self, state: State, packed_bytes: int, num_actions: int) -> None:
        """Restores a state of a game with such positions and actions."""
        try:
            tables, dropped = _tables_of(state, Waiting.none(packed_bytes)), _dropped_of(state)
            for _, waiting in tables.values():
                check_actions(waiting.action, num_actions)
            self._tables, self._dropped = tables, dropped
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(
                f"the checkpoint does not hold the decisions that were waiting for their outcome: {error!r}; take an "
                f"earlier checkpoint"
            ) from error


def _tables_of(state: State, nothing: Waiting) -> dict[int, tuple[_Key, Waiting]]:
    document = state.document
    if not isinstance(document, dict) or not isinstance(document["tables"], list):
        raise ValueError("the state has no list of tables")
    if not document["tables"]:
        return {}
    examples = {name: getattr(nothing, name) for name in Waiting.__slots__}
    whole = Waiting(**columns_like(examples, state.tensors["carry"]))
    if not all((column >= 0).all() for column in (whole.place, whole.plies, whole.slabs)):
        raise ValueError("its decisions have places and counts below 0")
    tables: dict[int, tuple[_Key, Waiting]] = {}
    start = 0
    for table, epoch, sequence, rows in document["tables"]:
        if any(type(number) is not int or number < 0 for number in (table, epoch, sequence, rows)):
            raise ValueError(f"{[table, epoch, sequence, rows]} are not the numbers of a table")
        tables[table] = (_Key(epoch, sequence), whole.chosen(slice(start, start := start + rows)))
    if len(whole) != start:
        raise ValueError(f"its tables list {start} rows, and its columns have others")
    return tables


def _dropped_of(state: State) -> dict[str, int]:
    document = state.document
    assert isinstance(document, dict)
    dropped = document["dropped"]
    return {reason: int(dropped[reason]) for reason in (GAP, RESET, AGE)}
