"""What manager and workers say to each other: small binary messages, one pipe a worker, no pickle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from keisei.experience.slab import SlabRecord

_ORDER = struct.Struct("<Bqiiq")
_RESET_DONE = struct.Struct("<Bi")
_QUESTION = struct.Struct("<Bii")


class OrderKind(IntEnum):
    PLAY = 1
    """Play one slab."""
    RESET = 2
    """Start all games anew, under the epoch of the order."""
    STOP = 3


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told to do."""

    kind: OrderKind
    sequence: int = 0
    slab: int = 0
    epoch: int = 0
    version: int = -1
    """The weights to play with; -1 means the newest."""

    def encode(self) -> bytes:
        return _ORDER.pack(self.kind, self.sequence, self.slab, self.epoch, self.version)

    @classmethod
    def decode(cls, data: bytes) -> Order:
        kind, *rest = _ORDER.unpack(data)
        return cls(OrderKind(kind), *rest)


class ReplyKind(IntEnum):
    READY = 1
    DONE = 2
    QUESTION = 3
    RESET_DONE = 4
    FAILED = 5


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has built its games and waits for orders."""


@dataclass(frozen=True, slots=True)
class Question:
    """The worker has written a step's positions into a slab and waits for decisions in the same place."""

    slab: int
    step: int


@dataclass(frozen=True, slots=True)
class ResetDone:
    """All games have started anew."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ends with an error."""

    traceback: str


Reply: TypeAlias = Ready | SlabRecord | Question | ResetDone | Failed

ANSWER = b"\x01"
"""The manager's reply to a question: the decisions are in the slab."""


def encode_reply(reply: Reply) -> bytes:
    if isinstance(reply, Ready):
        return bytes([ReplyKind.READY])
    if isinstance(reply, SlabRecord):
        return bytes([ReplyKind.DONE]) + reply.encode()
    if isinstance(reply, Question):
        return _QUESTION.pack(ReplyKind.QUESTION, reply.slab, reply.step)
    if isinstance(reply, ResetDone):
        return _RESET_DONE.pack(ReplyKind.RESET_DONE, reply.epoch)
    # A pipe takes up to 4096 bytes whole or not at all; the end of a traceback says the most.
    text = reply.traceback.encode()
    return bytes([ReplyKind.FAILED]) + text[-3500:]


def decode_reply(data: bytes) -> Reply:
    kind = ReplyKind(data[0])
    if kind is ReplyKind.READY:
        return Ready()
    if kind is ReplyKind.DONE:
        return SlabRecord.decode(data[1:])
    if kind is ReplyKind.QUESTION:
        return Question(*_QUESTION.unpack(data)[1:])
    if kind is ReplyKind.RESET_DONE:
        return ResetDone(_RESET_DONE.unpack(data)[1])
    return Failed(data[1:].decode(errors="replace"))
