"""The messages between manager and workers: small, binary, without pickle. Each worker has its own pipe."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from traceback import format_exception
from typing import Protocol, TypeAlias

from keisei.errors import in_one_line
from keisei.experience.slab import SlabRecord
from keisei.policies.seating import SELF_PLAY, Lineup

_ORDER = struct.Struct("<BiiqiiiBihd")
_QUESTION = struct.Struct("<Biii")
_NEED = struct.Struct("<BiQ")
_PIECE = struct.Struct("<BiB")

PIECE_BYTES = 2048
"""Size of one part of a state that travels through the pipe. A pipe takes messages of this size whole. So a worker
that stops in the middle of a long state never leaves half a message behind."""
THROUGH_PIPE = -2
"""Used in place of a state slot if the state is too large for a slot. It then travels through the pipe."""


REASON_BYTES, TRACEBACK_BYTES = 1000, 3000
"""The most of an error that travels through the pipe."""
_END_OF_REASON = b"\0"


class OrderKind(IntEnum):
    PLAY = 1
    """Plays one slab of a table."""
    FORGET = 2
    """Drops a table, because another worker plays it now."""
    STOP = 3


class Start(IntEnum):
    """Where the games of a table come from."""

    GO_ON = 0
    """The worker already holds them."""
    LOAD = 1
    """They are loaded from a state slot."""
    BEGIN = 2
    """They are new games."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order to a worker."""

    kind: OrderKind
    table: int = 0
    epoch: int = 0
    sequence: int = 0
    version: int = -1
    """The version of the behaviour to play with; -1 means the newest."""
    slab: int = 0
    state_slot: int = 0
    """The slot for the state of the games after the slab."""
    start: Start = Start.GO_ON
    source: int = 0
    """The state slot to load from."""
    lineup: Lineup = SELF_PLAY
    """The opponents of games that begin in this slab."""

    def encode(self) -> bytes:
        return _ORDER.pack(
            self.kind, self.table, self.epoch, self.sequence, self.version, self.slab, self.state_slot,
            self.start, self.source, self.lineup.member, self.lineup.share,
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> Order:
        kind, table, epoch, sequence, version, slab, state_slot, start, source, *lineup = _ORDER.unpack(data)
        return cls(
            OrderKind(kind), table, epoch, sequence, version, slab, state_slot, Start(start), source, Lineup(*lineup)
        )  # fmt: skip


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
    """The worker has written the positions of a step into a slab. It waits until the decisions are in the same
    slab."""

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
    """The worker asks for the next part of the state that it loads. It asks for one part at a time, so the manager
    never waits for a worker that does not read."""

    table: int
    offset: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ends with an error."""

    reason: str
    """The error and its place, in one line."""
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        return cls(in_one_line(error), "".join(format_exception(error)))


Reply: TypeAlias = Ready | SlabRecord | Question | StatePiece | NeedState | Failed


class Manager(Protocol):
    """The calls to the manager that a worker makes while it plays."""

    def ask(self, question: Question) -> None:
        """Waits until the manager has written the decisions of a step into the slab."""
        ...

    def fetch_state(self, table: int) -> bytes:
        """Fetches the state of a table if it is too large for a slot of the arena."""
        ...

    def deliver_piece(self, piece: StatePiece) -> None:
        """Sends one part of such a state."""
        ...


ANSWER = b"\x01"
"""The manager's reply to a question: the decisions are in the slab."""
_PIECE_SIGN = b"\xff"
"""First byte of a state part that the manager sends. No order and no answer starts with it."""


def state_piece(state: bytes, offset: int) -> bytes:
    """Makes the manager's reply to ``NeedState``. The last part is shorter than the others."""
    return _PIECE_SIGN + state[offset : offset + PIECE_BYTES]


def piece_content(message: bytes) -> bytes | None:
    """Reads the content of a message made by ``state_piece``; None for any other message."""
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
            return bytes([ReplyKind.FAILED]) + _encode_failure(reply)


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
            reason, _, traceback = data[1:].partition(_END_OF_REASON)
            return Failed(reason.decode(errors="replace"), traceback.decode(errors="replace"))


def _encode_failure(failed: Failed) -> bytes:
    """Cuts the traceback, since a pipe takes up to 4096 bytes whole or not at all. Its end is the most useful part."""
    reason = failed.reason.encode()[:REASON_BYTES].replace(_END_OF_REASON, b" ")
    return reason + _END_OF_REASON + failed.traceback.encode()[-TRACEBACK_BYTES:]
