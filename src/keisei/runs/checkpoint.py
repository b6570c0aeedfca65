"""A checkpoint on disk: a directory that is written under another name, flushed to the disk, and renamed.

    update-000000042/
      manifest.json           format, game, counters, and size and SHA-256 of each file below
      model.safetensors       one file for each group of tensors
      optimizer.safetensors
      blobs.safetensors       bytes, such as the games of each table
      slab_1f3a….piece        bytes that other checkpoints have too; the file is shared by hard links

The manifest has a digest of itself, so any flipped bit is detected. Nothing here is a pickle. A checkpoint may
name code all the same, such as the network of a member of a league; it is imported only where the user trusts the run
(``policies.trust``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from keisei.errors import (
    CheckpointError,
    CheckpointVersionError,
    CheckpointWriteError,
    KeiseiError,
    in_one_line,
)
from keisei.runs.durable_files import sync_directory, write_new
from keisei.runs.json_values import Json, check_json
from keisei.runs.pieces import Piece, PieceFile, piece_path, read_file, read_verified, write_pieces
from keisei.runs.state import Saved

FORMAT = "keisei-checkpoint"
VERSION = 1
MANIFEST = "manifest.json"
PARTIAL = ".partial-"
"""The prefix of a checkpoint's name while it is being written."""

LARGEST_MANIFEST = 256 << 20
_LARGEST_COUNT = 1 << 53
_BLOBS = "blobs"
_GROUP = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(r"update-(\d{9,})(?:-(\d+))?")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a run needs to continue. Saving and loading keep every bit."""

    game: str
    counters: Mapping[str, int | float]
    """Counters of the run. ``update`` is required, and names the checkpoint."""
    tensors: Mapping[str, Mapping[str, Any]]
    """Groups of named tensors, such as ``model`` and ``optimizer``, each ``Saved``. Each group becomes a file."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """Plain bytes, such as the saved games of each table."""
    documents: Mapping[str, Json] = field(default_factory=dict)
    """Other data as JSON, such as an optimiser's settings."""
    config_digest: str = ""
    """The digest of the configuration it was trained with."""
    created: str = ""
    """When it was saved, in ISO 8601 and UTC; saving sets it."""
    pieces: Mapping[str, Piece] = field(default_factory=dict)
    """Large parts that are written once, under a name that identifies their content. They are verified when they are
    read."""
    path: Path | None = None
    """Where it was loaded from."""

    def __post_init__(self) -> None:
        update = self.counters.get("update")
        if not isinstance(update, int) or isinstance(update, bool) or update < 0:
            raise CheckpointError(
                f"a checkpoint counts its updates: counters['update'] is {update!r}, not 0, 1, 2 …"
            )
        for group in self.tensors:
            if not _GROUP.fullmatch(group) or group == _BLOBS:
                raise CheckpointError(
                    f"{group!r} cannot name a group of tensors: it is a file name of small letters, digits and _, "
                    f"and {_BLOBS!r} is taken"
                )
        for name in self.pieces:
            if not _GROUP.fullmatch(name):
                raise CheckpointError(
                    f"{name!r} cannot name a piece: it is a file name of small letters, digits and _"
                )
        check_json("counters", self.counters)
        check_json("documents", self.documents)

    @property
    def update(self) -> int:
        return int(self.counters["update"])


def save_checkpoint(directory: Path, checkpoint: Checkpoint, name: str | None = None) -> Path:
    """Writes a checkpoint below ``directory`` and returns its path. It exists as a whole or not at all. Its ``name``,
    by default that of its update, must be free.

    If it cannot be written, for example because the disk is full, ``CheckpointWriteError`` is raised. The attempt
    leaves no files, and earlier checkpoints do not change.
    """
    contents = _serialised(checkpoint)
    path = directory / (name or _free_name(directory, checkpoint.update))
    if path.exists():
        raise CheckpointWriteError(
            f"cannot write checkpoint {path}: there is one already; choose another name"
        )
    partial = directory / f"{PARTIAL}{path.name}"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        pieces = write_pieces(partial, checkpoint.pieces)
        contents[MANIFEST] = _manifest(checkpoint, contents, pieces)
        for name, content in contents.items():
            write_new(partial / name, content)
        sync_directory(partial)
        os.rename(partial, path)
        sync_directory(directory)
    except OSError as error:
        for attempt in (partial, path):  # the name was free, so these files are from this attempt
            shutil.rmtree(attempt, ignore_errors=True)
        size = sum(map(len, contents.values()))
        raise CheckpointWriteError(
            f"cannot write checkpoint {path} ({size / 1e6:.1f} MB): {error.strerror or error}. Earlier checkpoints "
            f"are whole; make room on the disk, or see who may write there"
        ) from error
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint and verifies every byte, except its pieces, which are verified when they are read.
    ``CheckpointError`` names the file and the damage."""
    manifest = _verified_manifest(path / MANIFEST)
    contents = {
        name: read_verified(path / name, entry.get("bytes"), entry.get("sha256"))
        for name, entry in _files(path, manifest).items()
    }
    try:
        blobs = safetensors.numpy.load(contents.pop(f"{_BLOBS}.safetensors"))
        _check_types(manifest)
        return Checkpoint(
            path=path,
            game=cast(str, manifest["game"]),
            counters=cast(Mapping[str, int | float], manifest["counters"]),
            tensors={Path(name).stem: safetensors.torch.load(content) for name, content in contents.items()},
            blobs={name: blob.tobytes() for name, blob in blobs.items()},
            documents=cast(Mapping[str, Json], manifest["documents"]),
            config_digest=cast(str, manifest["config_digest"]),
            created=cast(str, manifest["created"]),
            pieces=_pieces(path, manifest),
        )
    except CheckpointError as error:
        if str(path) in str(error):
            raise
        raise CheckpointError(f"{path}: {error}") from error
    except (KeyError, AttributeError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of Keisei, though its checksums are right: {error!r}"
        ) from error


@contextmanager
def restoring(checkpoint: Checkpoint, part: str) -> Iterator[None]:
    """Wraps only the work that restores a part of a run from a checkpoint. Checksums prove that a checkpoint is
    unchanged, not that its content is valid. Any error in its content becomes a ``CheckpointError`` that names the file
    and the part."""
    where = checkpoint.path or f"the checkpoint of update {checkpoint.update}"
    try:
        yield
    except CheckpointError as error:
        if checkpoint.path is None or str(checkpoint.path.parents[1]) in str(error):
            raise  # its message already names a file of the run
        raise CheckpointError(f"{where}: {error}") from error
    except KeiseiError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{where} does not hold {part} as Keisei saves it, though its checksums are right: {in_one_line(error)}"
        ) from error


def check_game(checkpoint: Checkpoint, game: str) -> None:
    """Compares the game of a checkpoint with that of its run."""
    if checkpoint.game != game:
        raise CheckpointError(
            f"{checkpoint.path or 'the checkpoint'} is of the game {checkpoint.game!r:.100}, and its run plays "
            f"{game!r}; it belongs to another run"
        )


def checkpoint_name(update: int) -> str:
    """Makes the name of an update's checkpoint, which is also the name of its player."""
    return f"update-{update:09d}"


def checkpoint_rank(name: str) -> tuple[int, int] | None:
    """Computes the sort key of a checkpoint's name, (update, attempt); None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2] or 0)) if match else None


def _free_name(directory: Path, update: int) -> str:
    """Finds a free name. A second checkpoint of one update gets another name, since directories cannot be exchanged in
    one step."""
    ranks = map(checkpoint_rank, os.listdir(directory)) if directory.is_dir() else ()
    attempt = max((rank[1] + 1 for rank in ranks if rank and rank[0] == update), default=0)
    return checkpoint_name(update) + (f"-{attempt}" if attempt else "")


def _serialised(checkpoint: Checkpoint) -> dict[str, bytes]:
    contents = {
        f"{group}.safetensors": safetensors.torch.save(
            {name: _plain(tensor) for name, tensor in tensors.items()}
        )
        for group, tensors in checkpoint.tensors.items()
    }
    blobs = {name: np.frombuffer(blob, np.uint8) for name, blob in checkpoint.blobs.items()}
    contents[f"{_BLOBS}.safetensors"] = safetensors.numpy.save(blobs)
    return contents


def _plain(saved: Saved) -> Tensor:
    """Makes an independent copy in main memory, since the format does not support views and tied weights."""
    tensor = saved if isinstance(saved, Tensor) else torch.from_numpy(saved)
    return tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format)


def _manifest(checkpoint: Checkpoint, contents: Mapping[str, bytes], pieces: Mapping[str, Piece]) -> bytes:
    manifest: dict[str, Json] = {
        "format": FORMAT,
        "version": VERSION,
        "game": checkpoint.game,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config_digest": checkpoint.config_digest,
        "counters": dict(checkpoint.counters),
        "documents": dict(checkpoint.documents),
        "files": {
            name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            for name, content in contents.items()
        },
        "pieces": {name: {"bytes": piece.nbytes, "sha256": piece.digest} for name, piece in pieces.items()},
    }
    return _sealed(manifest)


def _sealed(manifest: Mapping[str, Json]) -> bytes:
    """Writes the manifest as text, with the digest of the rest as its last entry."""
    digest = sha256(_text(manifest)).hexdigest()
    return _text({**manifest, "sha256": digest})


def _text(document: Json) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _verified_manifest(path: Path) -> dict[str, Json]:
    content = read_file(path, LARGEST_MANIFEST)
    try:
        manifest = json.loads(content)
        rest = {key: value for key, value in manifest.items() if key != "sha256"}
        whole = content == _sealed(rest)
    except (ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: it is not a JSON table") from error
    if not whole:
        raise CheckpointError(f"{path} is damaged: it does not fit its own SHA-256")
    made_by = (manifest.get("format"), manifest.get("version"))
    if made_by != (FORMAT, VERSION):
        raise CheckpointVersionError(
            f"{path} is of format {made_by[0]!r}, version {made_by[1]!r}; this version of Keisei reads {FORMAT!r}, "
            f"version {VERSION}. Use the version of Keisei that wrote it"
        )
    return rest


def _files(path: Path, manifest: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """Reads the files that a manifest lists. Only plain names are allowed, so it cannot point outside."""
    files = manifest.get("files")
    if not isinstance(files, dict) or f"{_BLOBS}.safetensors" not in files:
        raise CheckpointError(f"{path / MANIFEST} lists no files; it was not written by Keisei")
    for name, entry in files.items():
        stem, _, suffix = name.partition(".")
        if not _GROUP.fullmatch(stem) or suffix != "safetensors" or not isinstance(entry, dict):
            raise CheckpointError(f"{path / MANIFEST} lists {name!r}, which is not a file of a checkpoint")
    return files


def _check_types(manifest: Mapping[str, Json]) -> None:
    """Checks the types and ranges in a manifest, which checksums do not cover. Raises ``ValueError``."""
    for name in ("game", "created", "config_digest"):
        if not isinstance(manifest[name], str):
            raise ValueError(f"{name} is no text")
    for name in ("counters", "documents"):
        if not isinstance(manifest[name], dict):
            raise ValueError(f"{name} is no table")
    for name, value in cast(dict[str, Json], manifest["counters"]).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST_COUNT:
            raise ValueError(f"the counter {name!r} is {value!r:.40}")


def _pieces(path: Path, manifest: Mapping[str, Json]) -> dict[str, PieceFile]:
    """Reads the pieces that a manifest lists. Earlier versions list none."""
    pieces = cast(Mapping[str, Mapping[str, Json]], manifest.get("pieces", {}))
    if not all(_GROUP.fullmatch(name) and isinstance(entry, dict) for name, entry in pieces.items()):
        raise CheckpointError(f"{path / MANIFEST} lists pieces whose names are none of a checkpoint")
    return {
        name: PieceFile(piece_path(path, name), cast(str, entry["sha256"]), cast(int, entry["bytes"]))
        for name, entry in pieces.items()
    }
