"""Decisions of a rollout whose outcome is not known at the end of a slab, until a later slab of their table shows it.

A seat that waits at the end of a slab has a last decision without a next one. Its game continues in the next slab of
its table. So the decision waits for that slab, with the rewards so far. Three things may happen there:

- The seat acts, or the game ends: the learner learns from the decision with the others of that slab.
- Neither: it waits on.
- The slab is not the next one, because slabs in between were dropped or the games were reset. The seat does not act
  where its last slab ended, so the outcome will never be known. The decision is dropped, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from keisei.errors import CheckpointError
from keisei.experience.collected import CollectedSlab
from keisei.experience.linked_slab import LinkedSlab
from keisei.experience.links import AGE, GAP, OPEN, RESET, ROW, LinkRule, Links, OpenRows, linker
from keisei.experience.saved_columns import check_actions, columns_like
from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import Array, GameSpec
from keisei.runs.json_values import Json
from keisei.runs.state import Saved, State

__all__ = ["OpenDecisions"]

LONGEST_WAIT = 32
"""Slabs after which a decision no longer waits, since the policy that made it is too old."""
_LARGEST_COUNT = 1 << 30


@dataclass(frozen=True, slots=True)
class _Key:
    """The slab at whose end decisions wait."""

    epoch: int
    sequence: int


class OpenDecisions:
    """The open decisions of one owner, table by table. They survive updates and are part of the checkpoint.

    Each is a row of ``ROW``, with what is learned from it later: its position, its action, the log-probability under
    the policy that acted, and how many slabs have ended while it waited.
    """

    def __init__(self, spec: GameSpec, rule: LinkRule) -> None:
        self._spec, self._rule = spec, rule
        kept = ("packed", np.uint8, (spec.packed_bytes,)), ("action", np.int32), ("log_prob", np.float32)
        self._nothing: Array = np.zeros(0, [*ROW.descr, *kept, ("slabs", np.int32)])
        self._tables: dict[int, tuple[_Key, Array]] = {}
        self._dropped = dict.fromkeys((GAP, RESET, AGE), 0)

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._tables.values())

    @property
    def dropped(self) -> Mapping[str, int]:
        """The number of decisions whose outcome will never be known, by reason."""
        return dict(self._dropped)

    def link(self, item: CollectedSlab) -> LinkedSlab:
        """Follows the games of a table through its next slab. Links that the slab does not close wait on."""
        slab, shape = item.slab, item.slab.shape
        earlier, most = self._before(item.record), self._rule.most_open(shape)
        if earlier["chain"].max(initial=-1) >= most:
            raise CheckpointError(
                f"the decisions of table {item.record.table} that wait for their outcome are of seats that it does not "
                f"have; the run continues from an earlier checkpoint"
            )
        earlier["place"] = shape.transitions + np.arange(len(earlier))
        rows, links = OpenRows(most, earlier), Links(shape.transitions + len(earlier), plies=True)
        maker, closed = linker(shape, self._rule), np.empty(shape.transitions + most, np.int32)
        rows.follow(maker, 0, slab, links, closed, games=True, end=True)
        self._keep(item.record, self._waiting(slab, rows.rows, earlier))
        return LinkedSlab(slab, maker, links, np.flatnonzero(links.next != OPEN), earlier)

    def _before(self, record: SlabRecord) -> Array:
        """Finds the decisions that wait for exactly this slab."""
        key, rows = self._tables.pop(record.table, (_Key(record.epoch, record.sequence - 1), self._nothing))
        if (key.epoch, key.sequence + 1) == (record.epoch, record.sequence):
            return rows
        self._dropped[RESET if key.epoch != record.epoch else GAP] += len(rows)
        return self._nothing

    def _waiting(self, slab: Slab, rows: Array, earlier: Array) -> Array:
        """Makes copies of open decisions, so that the slab may be given back."""
        places = slab.shape.transitions
        waiting = np.zeros(len(rows), self._nothing.dtype)
        for name in ROW.names or ():
            waiting[name] = rows[name]
        new, old = rows["place"] < places, rows["place"] >= places
        here, before = rows["place"][new], earlier[rows["place"][old] - places]
        for name in ("packed", "action", "log_prob"):
            column: Array = getattr(slab, name)
            waiting[name][new] = column.reshape(-1, *column.shape[2:])[here]
            waiting[name][old] = before[name]
        waiting["slabs"][new], waiting["slabs"][old] = 1, before["slabs"] + 1
        return waiting

    def _keep(self, record: SlabRecord, waiting: Array) -> None:
        young = waiting["slabs"] <= LONGEST_WAIT
        self._dropped[AGE] += int((~young).sum())
        if young.any():
            self._tables[record.table] = (_Key(record.epoch, record.sequence), waiting[young])

    # Checkpoints.

    def state(self) -> State:
        """Gets all rows in the order of the tables, with the key and the number of rows of each table."""
        tables = sorted(self._tables.items())
        keys: list[Json] = [[table, key.epoch, key.sequence, len(rows)] for table, (key, rows) in tables]
        document: Json = {"tables": keys, "dropped": {**self._dropped}}
        if not tables:
            return State(document=document)
        whole = np.concatenate([rows for _, (_, rows) in tables])
        return State({"carry": {name: whole[name].copy() for name in self._saved_columns()}}, document)

    def restore(self, state: State) -> None:
        try:
            tables, dropped = self._tables_of(state), _dropped_of(state)
            self._tables, self._dropped = tables, dropped
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(
                f"the checkpoint does not hold the decisions that were waiting for their outcome: {error!r}; take an "
                f"earlier checkpoint"
            ) from error

    def _saved_columns(self) -> list[str]:
        """All but the place, which each slab gives anew."""
        return [name for name in self._nothing.dtype.names or () if name != "place"]

    def _tables_of(self, state: State) -> dict[int, tuple[_Key, Array]]:
        document = state.document
        if not isinstance(document, dict) or not isinstance(document["tables"], list):
            raise ValueError("the state has no list of tables")
        if not document["tables"]:
            return {}
        whole = self._rows_of(state.tensors["carry"])
        tables: dict[int, tuple[_Key, Array]] = {}
        start = 0
        for table, epoch, sequence, rows in document["tables"]:
            if any(type(number) is not int or number < 0 for number in (table, epoch, sequence, rows)):
                raise ValueError(f"{[table, epoch, sequence, rows]} are not the numbers of a table")
            own = whole[start : start + rows]
            if len(np.unique(own["chain"])) != len(own):
                raise ValueError(f"table {table} has two decisions of one seat")
            tables[table], start = (_Key(epoch, sequence), own), start + rows
        if len(whole) != start:
            raise ValueError(f"its tables list {start} rows, and its columns have others")
        return tables

    def _rows_of(self, tensors: Mapping[str, Saved]) -> Array:
        columns = columns_like(
            {name: self._nothing[name] for name in self._saved_columns()}, self._as_today(tensors)
        )
        rows = np.zeros(len(columns["chain"]), self._nothing.dtype)
        for name, column in columns.items():
            rows[name] = column
        counts = np.array([rows[name] for name in ("chain", "seat", "plies", "slabs")])
        if ((counts < 0) | (counts > _LARGEST_COUNT)).any():
            raise ValueError(f"its decisions have numbers outside 0 … {_LARGEST_COUNT}")
        if (rows["seat"] >= self._spec.seats).any():
            raise ValueError("its decisions are of seats that the game does not have")
        check_actions(rows["action"], self._spec.num_actions)
        return rows

    def _as_today(self, tensors: Mapping[str, Saved]) -> Mapping[str, Saved]:
        """Earlier versions called a chain a place, since each seat had its own, and rounded the rewards."""
        if "place" not in tensors:
            return tensors
        older = {name: np.array(column) for name, column in tensors.items()}
        place = older.pop("place")
        return older | {
            "chain": place,
            "seat": place % self._spec.seats,
            "earned": older["earned"].astype(np.float64),
            "factor": self._rule.discount ** older["plies"].astype(np.float64),
        }


def _dropped_of(state: State) -> dict[str, int]:
    document = state.document
    assert isinstance(document, dict)
    dropped = document["dropped"]
    return {reason: int(dropped[reason]) for reason in (GAP, RESET, AGE)}
