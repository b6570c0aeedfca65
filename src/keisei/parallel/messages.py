"""What manager and workers say to each other: small binary messages, one pipe a worker, no pickle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from keisei.experience.slab import SlabRecord

_ORDER = struct.Struct("<BiiqiiiBi")
_QUESTION = struct.Struct("<Biii")
_NEED = struct.Struct("<BiQ")
_PIECE = struct.Struct("<BiB")

PIECE_BYTES = 2048
"""Of a state that travels through the pipe. A pipe takes messages of this size whole, so that a worker that stops
in the middle of a long state never leaves half a message behind."""
THROUGH_PIPE = -2
"""Stands for a state slot: the state is too large for one, and travels through the pipe."""


class OrderKind(IntEnum):
    PLAY = 1
    """Play one slab of a table."""
    FORGET = 2
    """Another worker plays this table now."""
    STOP = 3


class Start(IntEnum):
    """Where the games of a table are taken up."""

    GO_ON = 0
    """The worker has them in hand."""
    LOAD = 1
    """They lie in a state slot."""
    BEGIN = 2
    """They begin anew."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told to do."""

    kind: OrderKind
    table: int = 0
    epoch: int = 0
    sequence: int = 0
    version: int = -1
    """The behaviour to play with; -1 means the newest."""
    slab: int = 0
    state_slot: int = 0
    """Where to leave the state of the games when the slab is played."""
    start: Start = Start.GO_ON
    source: int = 0
    """The state slot to load from."""

    def encode(self) -> bytes:
        return _ORDER.pack(
            self.kind, self.table, self.epoch, self.sequence, self.version, self.slab, self.state_slot,
            self.start, self.source,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> Order:
        kind, table, epoch, sequence, version, slab, state_slot, start, source = _ORDER.unpack(data)
        return cls(OrderKind(kind), table, epoch, sequence, version, slab, state_slot, Start(start), source)


class ReplyKind(IntEnum):
    READY = 1
    DONE = 2
    QUESTION = 3
    FAILED = 4
    PIECE = 5
    NEED = 6


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has started and waits for orders."""


@dataclass(frozen=True, slots=True)
class Question:
    """The worker has written a step's positions into a slab and waits for decisions in the same place."""

    table: int
    slab: int
    step: int


@dataclass(frozen=True, slots=True)
class StatePiece:
    """A part of a state that is too large for its slot. The record of the slab follows the last part."""

    table: int
    is_first: bool
    content: bytes


@dataclass(frozen=True, slots=True)
class NeedState:
    """The worker wants the next part of the state that it is to load. It asks for one part at a time, so that the
    manager never waits for a worker that does not read."""

    table: int
    offset: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ends with an error."""

    traceback: str


Reply: TypeAlias = Ready | SlabRecord | Question | StatePiece | NeedState | Failed

ANSWER = b"\x01"
"""The manager's reply to a question: the decisions are in the slab."""
_PIECE_SIGN = b"\xff"
"""Starts a part of a state that the manager sends; no order and no answer does."""


def state_piece(state: bytes, offset: int) -> bytes:
    """The manager's reply to ``NeedState``. A part that is shorter than the others is the last one."""
    return _PIECE_SIGN + state[offset : offset + PIECE_BYTES]


def piece_content(message: bytes) -> bytes | None:
    """What ``state_piece`` has sent; None for any other message."""
    return message[1:] if message[:1] == _PIECE_SIGN else None


def encode_reply(reply: Reply) -> bytes:
    match reply:
        case Ready():
            return bytes([ReplyKind.READY])
        case SlabRecord():
            return bytes([ReplyKind.DONE]) + reply.encode()
        case Question():
            return _QUESTION.pack(ReplyKind.QUESTION, reply.table, reply.slab, reply.step)
        case StatePiece():
            return _PIECE.pack(ReplyKind.PIECE, reply.table, reply.is_first) + reply.content
        case NeedState():
            return _NEED.pack(ReplyKind.NEED, reply.table, reply.offset)
        case Failed():
            # A pipe takes up to 4096 bytes whole or not at all; the end of a traceback says the most.
            return bytes([ReplyKind.FAILED]) + reply.traceback.encode()[-3500:]


def decode_reply(data: bytes) -> Reply:
    match ReplyKind(data[0]):
        case ReplyKind.READY:
            return Ready()
        case ReplyKind.DONE:
            return SlabRecord.decode(data[1:])
        case ReplyKind.QUESTION:
            return Question(*_QUESTION.unpack(data)[1:])
        case ReplyKind.PIECE:
            _, table, is_first = _PIECE.unpack(data[: _PIECE.size])
            return StatePiece(table, bool(is_first), data[_PIECE.size :])
        case ReplyKind.NEED:
            return NeedState(*_NEED.unpack(data)[1:])
        case ReplyKind.FAILED:
            return Failed(data[1:].decode(errors="replace"))
