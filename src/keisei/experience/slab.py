"""A slab: a block of experience in shared memory, and the record that commits it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from keisei.experience.schema import FIELDS, Field, SlabShape
from keisei.games.contract import Array, BoolArray, ByteArray, FloatArray, IntArray
from keisei.machine.shared_memory import Layout, SharedBlock

CHECKSUM_LIMIT = 1024
"""Rows larger than this many bytes are left out of checksums, which would take longer than the transport."""


def slab_layout(shape: SlabShape) -> Layout:
    return Layout.of([(field.name, field.dtype, field.shape(shape)) for field in FIELDS])


def common_bytes(shape: SlabShape) -> int:
    """Computes the bytes of the fields that every transition has. They come before the others."""
    layout = zip(slab_layout(shape).arrays, FIELDS, strict=True)
    return min(placed.offset for placed, field in layout if not field.per_transition)


class Slab:
    """Views of the columns of one slab. The shapes are those of ``schema.FIELDS``."""

    packed: ByteArray
    acting: BoolArray
    seat: Array
    episode: IntArray
    ply: IntArray
    action: IntArray
    log_prob: FloatArray
    value: FloatArray
    policy: Array
    owner: Array
    version: IntArray
    reward: FloatArray
    terminated: BoolArray
    truncated: BoolArray
    ending: ByteArray
    score: FloatArray
    opponent: Array
    final_packed: ByteArray
    final_seat: Array
    final_value: FloatArray

    def __init__(self, shape: SlabShape, block: SharedBlock, offset: int = 0) -> None:
        self.shape = shape
        for name, view in slab_layout(shape).views(block, offset).items():
            setattr(self, name, view)

    def columns(self) -> Iterator[tuple[Field, Array]]:
        for field in FIELDS:
            yield field, getattr(self, field.name)

    def clear_step(self, step: int) -> None:
        """Clears a step in which not every slot is written. Empty slots have no owner."""
        for field, column in self.columns():
            if field.per_transition and step < len(column):
                column[step] = -1 if field.name == "owner" else 0

    def clear_finals(self, step: int) -> None:
        """Clears the last positions of truncated games. Seats that would not act have no last position; their
        ``final_seat`` is -1."""
        cut = self.finished("final_value")[step]
        self.final_packed[step, cut] = 0
        self.final_value[step, cut] = 0
        self.final_seat[step, cut] = -1

    def written(self, *, large: bool = True) -> Iterator[memoryview]:
        """Yields the written bytes of each column; without ``large``, large rows are left out."""
        skipped = () if large or self.shape.packed_bytes <= CHECKSUM_LIMIT else ("packed", "final_packed")
        for field, column in self.columns():
            if field.name in skipped:
                continue
            if not field.per_transition:
                column = column[self.finished(field.name)]
            yield np.ascontiguousarray(column).view(np.uint8).reshape(-1).data

    def content(self) -> bytes:
        """Gets all that was written, for a file."""
        return b"".join(self.written())

    def load(self, content: bytes | memoryview) -> None:
        """Fills the slab with the bytes of ``content``. Bytes of a file are verified before."""
        rest = memoryview(content)
        for field, column in self.columns():
            # What tells where games have finished comes before the fields that only finished games have.
            where = ... if field.per_transition else self.finished(field.name)
            chosen = column[where]
            column[where] = np.frombuffer(rest[: chosen.nbytes], field.dtype).reshape(chosen.shape)
            rest = rest[chosen.nbytes :]
        if rest:
            raise ValueError(f"the content of a slab has {len(rest)} bytes more than the slab")

    def checksum(self) -> int:
        """Computes the CRC-32 of what was written."""
        crc = 0
        for content in self.written(large=False):
            crc = zlib.crc32(content, crc)
        return crc

    def finished(self, name: str) -> BoolArray:
        """Tells where a field was written that only finished games have."""
        if name in ("score", "opponent"):
            return self.terminated | self.truncated
        return (
            np.repeat(self.truncated, self.shape.seats, axis=1) if self.shape.simultaneous else self.truncated
        )


_RECORD = struct.Struct("<iiiqiqqIdddddi")


@dataclass(frozen=True, slots=True)
class SlabRecord:
    """The commit of a slab: all that the manager needs to know of it, in a few dozen bytes."""

    table: int
    """The table that the games belong to."""
    worker: int
    """The worker that played them."""
    epoch: int
    """How often the table's games were reset."""
    sequence: int
    """Counts the slabs of a table from 0, without a gap."""
    slab: int
    version: int
    """The version of the weights that played it."""
    transitions: int
    """Rows that acted."""
    checksum: int
    started: float
    """``time.monotonic`` of the worker's machine."""
    seconds: float
    game_seconds: float
    policy_seconds: float
    waited_seconds: float
    """How long the worker had waited for the order."""
    state_slot: int
    """The slot of the arena with the state of the games after this slab; negative if it came through the pipe."""

    def encode(self) -> bytes:
        return _RECORD.pack(
            self.table, self.worker, self.epoch, self.sequence, self.slab, self.version, self.transitions,
            self.checksum, self.started, self.seconds, self.game_seconds, self.policy_seconds,
            self.waited_seconds, self.state_slot,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> SlabRecord:
        return cls(*_RECORD.unpack(data))

    def without_slab(self) -> SlabRecord:
        """Makes the record of a slab whose content was copied."""
        return replace(self, slab=-1)
