"""Pieces of checkpoints: large bytes that never change, such as the slabs of a replay.

Many checkpoints of a run have the same pieces. Each is written once. A later checkpoint gets a hard link to the file,
so every checkpoint is whole by itself, and the file goes with the last checkpoint that has it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from keisei.errors import CheckpointError, ForeignFileError
from keisei.runs.durable_files import write_new
from keisei.runs.foreign_files import check_regular, read_foreign

__all__ = ["Piece", "PieceFile", "piece_path", "read_file", "read_verified", "write_pieces"]

logger = logging.getLogger(__name__)

_SUFFIX = ".piece"
LARGEST_FILE = 8 << 30
"""Bytes of a file of a checkpoint. It is read into memory as a whole."""


class Piece(Protocol):
    """Bytes that never change, under a name that identifies their content."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes."""
        ...

    @property
    def nbytes(self) -> int: ...

    def read(self) -> bytes:
        """Reads the bytes. Raises ``CheckpointError`` if they are damaged or no longer there."""
        ...


@dataclass(frozen=True, slots=True)
class PieceFile:
    """A piece on disk. It is read when it is needed: players need only weights."""

    path: Path
    digest: str
    nbytes: int

    def read(self) -> bytes:
        return read_verified(self.path, self.nbytes, self.digest)


def piece_path(checkpoint: Path, name: str) -> Path:
    return checkpoint / f"{name}{_SUFFIX}"


def write_pieces(checkpoint: Path, pieces: Mapping[str, Piece]) -> dict[str, Piece]:
    """Writes the pieces of a checkpoint, or links those that are files already, here or in checkpoints beside it.
    Returns the pieces that exist now. A piece whose bytes are gone is left out with a warning, since the rest can still
    be saved."""
    known = {path.name: path for path in checkpoint.parent.glob(f"update-*/*{_SUFFIX}")} if pieces else {}
    written: dict[str, Piece] = {}
    for name, piece in pieces.items():
        path = piece_path(checkpoint, name)
        source = known.get(path.name, piece.path if isinstance(piece, PieceFile) else None)
        try:
            if source is None or not _linked(source, path, piece.nbytes):
                write_new(path, piece.read())
            written[name] = piece
        except CheckpointError as error:
            logger.warning("the checkpoint is saved without one of its pieces: %s", error)
    return written


def read_verified(path: Path, nbytes: object, digest: object) -> bytes:
    """Reads a file and compares it with its size and SHA-256."""
    if not isinstance(nbytes, int) or not 0 <= nbytes <= LARGEST_FILE:
        raise CheckpointError(
            f"{path} has {nbytes!r:.40} bytes in the manifest, which no file of a checkpoint has"
        )
    content = read_file(path, nbytes)
    if len(content) != nbytes:
        raise CheckpointError(
            f"{path} is damaged: it has {len(content)} bytes where the manifest says {nbytes}"
        )
    if sha256(content).hexdigest() != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the manifest's")
    return content


def read_file(path: Path, most: int) -> bytes:
    """Reads a file of a checkpoint. The folder of the checkpoint is the one that the caller names."""
    try:
        return read_foreign(path.parent, path.name, most)
    except ForeignFileError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error


def _linked(source: Path, path: Path, nbytes: int) -> bool:
    """Makes a hard link. Returns False if the file system has none, or if the file is damaged or missing."""
    try:
        if not check_regular(source, nbytes) or source.lstat().st_size != nbytes:
            return False
        os.link(source, path)
    except OSError:
        return False
    return True
