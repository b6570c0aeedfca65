"""The bytes of a saved batch of games: a checked envelope and a careful reader.

    magic 8 | version u16 | digest of game and options 16 | body | CRC-32 of all before u32

All numbers are little-endian. Nothing is unpickled, so a hostile file cannot run code.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from hashlib import blake2b

from keisei.errors import SavedStateError
from keisei.games.contract import GameSpec

MAGIC = b"KEISEIGB"
VERSION = 1
_HEAD = struct.Struct("<8sH16s")
_CRC = struct.Struct("<I")


def digest_of(spec: GameSpec, options: Mapping[str, object]) -> bytes:
    """Computes 16 bytes that identify a game and its options."""
    text = f"{spec!r} {json.dumps(options, sort_keys=True, default=_name)}"
    return blake2b(text.encode(), digest_size=16).digest()


def _name(option: object) -> str:
    """Names an option that JSON cannot hold. The name contains no memory address, so it is the same in every
    process."""
    name = getattr(option, "__qualname__", None)
    return repr(option) if name is None else f"{getattr(option, '__module__', '')}.{name}"


def wrap(digest: bytes, body: bytes) -> bytes:
    head = _HEAD.pack(MAGIC, VERSION, digest) + body
    return head + _CRC.pack(zlib.crc32(head))


def unwrap(blob: bytes, digest: bytes, game: str) -> bytes:
    """Checks that a blob is whole and belongs to this game, and returns its body."""
    blob = _as_bytes(blob)
    if len(blob) < _HEAD.size + _CRC.size:
        raise SavedStateError(
            f"a saved {game} state has at least {_HEAD.size + _CRC.size} bytes, got {len(blob)}"
        )
    magic, version, made_by = _HEAD.unpack_from(blob)
    if magic != MAGIC:
        raise SavedStateError(f"this is not a saved state of a Keisei game: it starts with {magic!r}")
    if version != VERSION:
        raise SavedStateError(
            f"saved state has format {version}, this version of Keisei reads format {VERSION}"
        )
    (crc,) = _CRC.unpack_from(blob, len(blob) - _CRC.size)
    if crc != zlib.crc32(blob[: -_CRC.size]):
        raise SavedStateError("saved state is damaged: its checksum does not fit; take an earlier one")
    if made_by != digest:
        raise SavedStateError(f"saved state was made by another game, or by {game} with other options")
    return blob[_HEAD.size : -_CRC.size]


def _as_bytes(blob: object) -> bytes:
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise SavedStateError(f"a saved state is bytes, got {type(blob).__name__}")
    return bytes(blob)


class Reader:
    """Reads a body from front to back, and never past its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        if count > len(self._body) - self._at:
            raise SavedStateError(f"saved state ends early: {count} more bytes were announced")
        self._at += count
        return self._body[self._at - count : self._at]

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self.take(form.size))

    def finish(self) -> None:
        if self._at != len(self._body):
            raise SavedStateError(f"saved state has {len(self._body) - self._at} bytes too many")
