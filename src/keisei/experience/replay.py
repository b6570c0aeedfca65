"""The replay: earlier decisions with their outcomes so far, from which a learner draws samples.

It is a ring of slabs. Workers write them, and the replay keeps them under leases, so nothing is copied when it takes
experience. When it is full, it gives back as many slabs as it takes. A decision can be drawn as soon as its outcome is
known (``experience.links``).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from keisei.errors import CheckpointError, ConfigError, SharedMemoryError
from keisei.experience.collected import CollectedSlab, Lease, Leases
from keisei.experience.contract import Lend
from keisei.experience.drawing import Drawing, EqualDrawing, PrioritisedDrawing
from keisei.experience.links import OVERWRITTEN, LinkRule, is_one_chain
from keisei.experience.replay_config import ReplaySettings
from keisei.experience.replay_slabs import SIDE_BYTES, SlabRing, StoredSlab
from keisei.experience.replayed import ReplaySample
from keisei.experience.saved_columns import check_actions
from keisei.experience.schema import SlabShape
from keisei.experience.slab import slab_layout
from keisei.experience.steps_due import StepsDue
from keisei.games.contract import FloatArray, GameSpec
from keisei.machine.memory import free_memory
from keisei.runs import metric_names as tags
from keisei.runs.json_values import Json
from keisei.runs.pieces import Piece
from keisei.runs.state import State

__all__ = ["ReplayBuffer"]

logger = logging.getLogger(__name__)


class ReplayBuffer:
    """Keeps the decisions of one ``owner``. Those of others are part of the environment."""

    def __init__(
        self,
        spec: GameSpec,
        shape: SlabShape,
        settings: ReplaySettings,
        discount: float,
        *,
        batch_size: int,
        tables: int = 1,
        owner: int = 0,
    ) -> None:
        """``shape`` is that of the manager's slabs. ``batch_size`` is the size of the learner's samples; ``steps``
        uses it. All memory is taken or checked here; ``SharedMemoryError`` says what would fit."""
        self._num_actions = spec.num_actions
        rule = LinkRule(settings.n_step, discount, owner, _both_seats(spec, settings))
        beside = SlabRing.bytes_beside(shape, rule, tables)
        slabs = _slabs_that_fit(shape, settings, tables, beside)
        self._settings = settings
        self._beside = beside
        self._ring = SlabRing(shape, slabs, rule, tables)
        self._drawing: Drawing = (
            PrioritisedDrawing(self._ring, settings) if settings.prioritised else EqualDrawing(self._ring)
        )
        self._due = StepsDue(settings, batch_size)
        self._late = 0
        self._lost_before = 0
        """Decisions that were overwritten while they waited, before the replay was last empty."""
        self._warned = False

    def __len__(self) -> int:
        """The number of decisions that may be drawn."""
        return len(self._drawing)

    @property
    def capacity(self) -> int:
        """The number of decisions that fit."""
        return len(self._ring) * self._ring.shape.transitions

    @property
    def most_leases(self) -> int:
        return len(self._ring)

    @property
    def nbytes(self) -> int:
        """The most memory that it takes, slabs included."""
        return len(self._ring) * _slab_bytes(self._ring.shape, self._settings) + self._beside

    @property
    def waiting(self) -> int:
        """The number of decisions whose outcome is not known yet."""
        return sum(map(len, self._ring.open.values()))

    @property
    def dropped(self) -> Mapping[str, int]:
        """The number of decisions whose outcome will never be known, by reason: ``gap``, ``reset`` or
        ``overwritten``."""
        return dict(self._ring.dropped)

    @property
    def late_priorities(self) -> int:
        """The number of priorities that came after their decision was overwritten."""
        return self._late

    def take(self, collected: Sequence[CollectedSlab]) -> Leases:
        """Takes experience in the order (table, sequence). Keeps its slabs, and ends the leases of the oldest."""
        taken: dict[Lease, None] = {}
        overwritten: dict[Lease, None] = {}
        inserted = episodes = 0
        for item in collected:
            record, slab, old = item.record, item.slab, self._ring[self._ring.at]
            lease = item.lease if record.slab >= 0 else None
            inserted += self._insert(StoredSlab(record.table, record.epoch, record.sequence, slab, lease))
            episodes += int(slab.terminated.sum()) + int(slab.truncated.sum())
            taken |= {} if lease is None else {lease: None}
            overwritten |= {} if old is None or old.lease is None else {old.lease: None}
        self._due.add(inserted, episodes)
        self._warn_of_long_returns()
        # Where a collection is larger than the ring, some of its own slabs are overwritten at once.
        kept = tuple(lease for lease in taken if lease not in overwritten)
        return Leases(kept, tuple(lease for lease in overwritten if lease not in taken))

    def steps(self) -> int:
        """Gets the gradient steps that are due since the last experience was taken."""
        return self._due.steps() if len(self) else 0

    def numbers(self) -> Mapping[str, float]:
        return {
            tags.REPLAYED: len(self),
            tags.CARRIED: self.waiting,
            tags.DROPPED_CARRIES: sum(self.dropped.values()),
            tags.LATE_PRIORITIES: self.late_priorities,
        }

    def view(self) -> ReplayBuffer:
        """Gets the replay itself, to learn from. It changes only when it takes the next experience."""
        return self

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        """Draws decisions. ``progress``, 0 … 1, is the share of the run that is done, for ``beta``."""
        if not len(self):
            raise ConfigError("the replay has no decision to draw: collect something before you learn")
        return self._ring.sample(*self._drawing.draw(size, seed, key, progress))

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        """Sets the priorities of a sample by the size of its errors. Decisions that were overwritten meanwhile are
        left out and counted."""
        places = sample.places
        current = self._ring.generations[places // self._ring.shape.transitions] == sample.generations
        self._late += int((~current).sum())
        self._drawing.update(places[current], errors[current])

    def _warn_of_long_returns(self) -> None:
        """Warns once if most decisions are overwritten before their outcome is known."""
        lost = self.dropped[OVERWRITTEN] - self._lost_before
        if lost > self._due.counts.inserted and not self._warned:
            self._warned = True
            logger.warning(
                "the replay overwrites most decisions before their outcome is known (%d so far): it is too small for "
                "n_step = %d; take a larger capacity or a smaller n_step",
                lost,
                self._settings.n_step,
            )

    def _insert(self, stored: StoredSlab) -> int:
        """Puts a slab into the ring. Gives the number of decisions that can be drawn now and could not before."""
        if stored.slab.shape != self._ring.shape:
            raise ConfigError(
                f"the replay keeps slabs of {self._ring.shape}, and is given one of {stored.slab.shape}; make it for "
                f"the slabs of the manager"
            )
        self._drawing.remove_slab(self._ring.at)
        closed = self._ring.put(stored)
        self._drawing.add(closed)
        return len(closed)

    # Checkpoints.

    def state(self) -> State:
        """Gets the state. With ``save_replay`` the slabs are pieces, which are written once; what came of their
        decisions follows from them."""
        counters: dict[str, Json] = {"late": self._late, "dropped": dict(self.dropped)}
        if not self._settings.save_replay:
            return State(document=counters)
        pieces: dict[str, Piece] = {}
        slabs: list[Json] = []
        for stored in self._ring.by_age():
            name = f"slab_{stored.digest[:32]}"
            pieces[name] = stored
            slabs.append([stored.table, stored.epoch, stored.sequence, name])
        generations: list[Json] = self._ring.generations.tolist()
        document: dict[str, Json] = {
            **counters,
            "made_by": self._made_by(),
            "slabs": slabs,
            "first": (self._ring.at - len(slabs)) % len(self._ring),
            "generations": generations,
            "due": asdict(self._due.counts),
        }
        if not isinstance(self._drawing, PrioritisedDrawing):
            return State(document=document, pieces=pieces)
        document["highest"] = self._drawing.highest
        priorities = self._drawing.all_priorities()
        return State({"replay": {"priorities": priorities}}, document, pieces)

    def restore(self, state: State, lend: Lend) -> None:
        """Restores a state exactly, if the replay was saved. Otherwise it stays empty, and says why."""
        try:
            document = _table_of(state.document)
            late = int(document["late"])
            dropped = {why: int(document["dropped"][why]) for why in self.dropped}
            if why_not := self._why_not(document, state.pieces):
                starts = self._settings.learning_starts
                logger.warning("%s: it fills again, and learning starts after %d decisions", why_not, starts)
                self._lost_before = dropped[OVERWRITTEN]
            else:
                self._refill(document, state, lend)
            self._late = late
            self._ring.dropped.update(dropped)  # what is followed again was counted before
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError(
                f"the checkpoint does not hold a replay as this version saves it: {error!r}; take an earlier checkpoint"
            ) from error

    def _why_not(self, document: Mapping[str, Any], pieces: Mapping[str, Piece]) -> str:
        """Says why a replay cannot be restored; empty if it can."""
        if "slabs" not in document:
            return "the replay was not saved with the checkpoint (save_replay)"
        if document["made_by"] != self._made_by():
            return "the settings of the replay or of the tables have changed"
        try:
            for *_, name in document["slabs"]:
                if name not in pieces:
                    return "a part of the replay is missing in the checkpoint"
                pieces[name].read()
        except CheckpointError as error:
            return f"the replay is not whole ({error})"
        return ""

    def _refill(self, document: Mapping[str, Any], state: State, lend: Lend) -> None:
        """Takes all slabs again, oldest first. The outcomes of decisions depend on the slabs alone, so they are the
        same."""
        self._ring.begin_at(document["first"])
        for entry, lent in zip(document["slabs"], lend(len(document["slabs"])), strict=True):
            table, epoch, sequence, name = entry
            lent.slab.load(state.pieces[name].read())
            check_actions(lent.slab.action[lent.slab.acting[:-1]], self._num_actions)
            self._insert(StoredSlab(table, epoch, sequence, lent.slab, lent.lease))
        self._ring.generations[:] = document["generations"]
        self._due.restore(document["due"])
        if isinstance(self._drawing, PrioritisedDrawing):
            # A copy, since the numbers of a checkpoint may be a view of its file.
            priorities = np.asarray(state.tensors["replay"]["priorities"]).copy()
            self._drawing.restore(priorities, float(document["highest"]))

    def _made_by(self) -> Json:
        """All that the stored places and outcomes depend on."""
        ring = self._ring
        return {
            "slabs": len(ring),
            "shape": asdict(ring.shape),
            "rule": asdict(ring.rule),
            "prioritised": self._settings.prioritised,
            "alpha": self._settings.alpha,
        }


def _table_of(document: Json) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError(f"the state is {type(document).__name__}, and not a table")
    return document


def _both_seats(spec: GameSpec, settings: ReplaySettings) -> bool:
    possible = is_one_chain(spec)
    if settings.chain == "both-seats" and not possible:
        raise ConfigError(
            f"chain = both-seats is for zero-sum games of two seats that take turns, and {spec.name} is none; take "
            f"auto or own-seat"
        )
    return possible and settings.chain != "own-seat"


def _slab_bytes(shape: SlabShape, settings: ReplaySettings) -> int:
    """Computes the most bytes that a slab takes, with all that is stored beside it."""
    drawing = PrioritisedDrawing.BYTES if settings.prioritised else EqualDrawing.BYTES
    return slab_layout(shape).nbytes + (SIDE_BYTES + drawing) * shape.transitions


def _slabs_that_fit(shape: SlabShape, settings: ReplaySettings, tables: int, beside: int) -> int:
    """Computes the slabs of the ring. Raises an error if there are too few for the tables or too many for the
    memory. ``beside`` are the bytes that do not depend on their number."""
    each, least = _slab_bytes(shape, settings), 2 * tables
    if settings.capacity is not None:
        slabs, asked = -(-settings.capacity // shape.transitions), f"capacity = {settings.capacity:,}"
    else:
        slabs = max(0, int(((settings.megabytes or 0) * 2**20 - beside) / each))
        asked = f"megabytes = {settings.megabytes:g}"
    size = f"slabs of {shape.steps} steps x {shape.slots} ({each / 2**10:,.0f} KB each)"
    if slabs < least:
        raise ConfigError(
            f"{asked} makes {slabs} {size}, and a replay has at least two for each of the {tables} tables; take at "
            f"least capacity = {least * shape.transitions:,} (megabytes = {_in_megabytes(least * each + beside):.2f}), "
            f"fewer tables, fewer games or a shorter horizon"
        )
    free = free_memory()
    if free is not None and slabs * each + beside > free:
        most = max(0, free - beside) // each
        raise SharedMemoryError(
            f"{asked} makes a replay of {slabs} {size}, {(slabs * each + beside) / 2**20:,.0f} MB in all, and "
            f"{free / 2**20:,.0f} MB are left; at most capacity = {most * shape.transitions:,} fits"
        )
    return slabs


def _in_megabytes(size: int) -> float:
    """Rounds up, so that what is advised is enough."""
    return math.ceil(size / 2**20 * 100) / 100
