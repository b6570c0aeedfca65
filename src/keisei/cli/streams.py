"""Standard input, output and error of the command. They are open from the start, and never make the command fail.

A command may be started with closed streams, on a terminal that shows ASCII alone, or on one that is closed while it
works.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["outlive_readers", "prepare_streams"]

_ERRORS = "keisei-stand-in"
_ASCII = "plain-ascii"


def prepare_streams() -> None:
    """Opens streams that are closed, and lets every text be written to them."""
    _open_closed()
    codecs.register_error(_ERRORS, _stand_in)
    codecs.register(_named_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_ASCII if is_ascii else None, errors=_ERRORS)


def outlive_readers(*streams: TextIO) -> None:
    """Lets the command go on when a stream can no longer be written to: its terminal or pipe is closed, or the disk
    that it goes to is full. What cannot be written is dropped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream in streams and isinstance(stream, io.TextIOWrapper) and _has_descriptor(stream):
            setattr(sys, name, _dropping(stream))


def _open_closed() -> None:
    """Opens ``/dev/null`` in the place of closed streams. Otherwise the next file that is opened gets the number 1 or
    2, and whatever is written to standard output or error goes into it."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(opened, True)
            assert opened == descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """Replaces what cannot be encoded. Few terminals need that, so its tables are loaded when one does."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from keisei.cli.stand_ins import plain

    return plain(error.object[error.start : error.end]), error.end


def _named_ascii(name: str) -> codecs.CodecInfo | None:
    """Finds ASCII under another name, since typer writes UTF-8 to a stream that is named ASCII."""
    if name.replace("_", "-") != _ASCII:
        return None
    known = codecs.lookup("ascii")
    return codecs.CodecInfo(
        known.encode,
        known.decode,
        known.streamreader,
        known.streamwriter,
        known.incrementalencoder,
        known.incrementaldecoder,
        _ASCII,
    )


class _Dropping(io.FileIO):
    """A file that takes whatever is written, and drops what it cannot write."""

    def write(self, content: ReadableBuffer, /) -> int:
        try:
            written = super().write(content)
        except OSError:
            written = None
        return memoryview(content).nbytes if written is None else written


def _dropping(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    with suppress(OSError):
        stream.flush()
    file = io.BufferedWriter(_Dropping(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        file,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _has_descriptor(stream: io.TextIOWrapper) -> bool:
    try:
        return stream.fileno() >= 0
    except OSError:
        return False
