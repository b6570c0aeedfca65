"""Shared memory without a name.

Named shared memory survives a killed process, and somebody must remove it. A ``SharedBlock`` is an open file
without a name: the kernel frees it when the last process that maps it ends, in any way. A child inherits it when it
starts.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import context, reduction
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from keisei.errors import SharedMemoryError
from keisei.machine.memory import free_memory

ALIGNMENT = 64
"""A cache line. Arrays that start on one never share it with an array that another process writes."""


class SharedBlock:
    """A block of bytes, first all zero, shared by this process and its later children.

    Pass it to ``multiprocessing.Process`` as an argument (start methods ``spawn``, ``forkserver`` and ``fork`` all
    work). It cannot be pickled at any other time.
    """

    def __init__(self, nbytes: int, *, sparse: bool = False) -> None:
        """With ``sparse``, memory is only taken where something is written, for blocks that are rarely full."""
        if nbytes <= 0:
            raise SharedMemoryError(f"a shared block has at least 1 byte, got {nbytes}")
        # Checked first, since the kernel promises more memory than it has, and later kills a process.
        free = None if sparse else free_memory()
        if free is not None and nbytes > free:
            raise SharedMemoryError(_too_large(nbytes, f"{_megabytes(free)} are free"))
        fd = _open_nameless()
        try:
            os.ftruncate(fd, nbytes)
            if not sparse and hasattr(os, "posix_fallocate"):
                # Allocate the pages now. Otherwise a write without free memory ends in SIGBUS, not in an error.
                os.posix_fallocate(fd, 0, nbytes)
            mapping = _map(fd, nbytes, sparse)
        except (OSError, OverflowError, MemoryError) as error:
            os.close(fd)
            raise SharedMemoryError(_too_large(nbytes, f"the system says: {error}")) from error
        self._hold(fd, mapping, sparse)

    @classmethod
    def private(cls, nbytes: int) -> Self:
        """Makes a block of this process alone. It needs no file descriptor, of which a process has only some
        thousand."""
        block = cls.__new__(cls)
        try:
            block._hold(-1, mmap.mmap(-1, nbytes), sparse=True)
        except (OSError, OverflowError, MemoryError) as error:
            raise SharedMemoryError(_too_large(nbytes, f"the system says: {error}")) from error
        return block

    def _hold(self, fd: int, mapping: mmap.mmap, sparse: bool) -> None:
        self._fd = fd
        self._sparse = sparse
        self._mapping: mmap.mmap | None = mapping
        self._nbytes = len(mapping)

    @property
    def nbytes(self) -> int:
        return self._nbytes

    @property
    def closed(self) -> bool:
        return self._mapping is None

    @property
    def buffer(self) -> mmap.mmap:
        """The bytes of the block, writable."""
        if self._mapping is None:
            raise SharedMemoryError("this shared block is closed; take what you need from it before close()")
        return self._mapping

    def array(self, dtype: npt.DTypeLike, shape: int | Sequence[int], offset: int = 0) -> npt.NDArray[Any]:
        """Makes an array view of the block. Every process sees what is written to it."""
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise SharedMemoryError(f"a shared array holds plain numbers, got dtype {kind}")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        end = offset + math.prod(shape) * kind.itemsize
        if offset < 0 or min(shape, default=0) < 0 or end > self._nbytes:
            raise SharedMemoryError(
                f"an array of {shape} {kind} at byte {offset} needs bytes {offset} to {end}; "
                f"the block has {self._nbytes}"
            )
        # frombuffer keeps the memory mapped. Views of np.ndarray(buffer=...) would crash after close().
        return np.frombuffer(self.buffer, np.uint8)[offset:end].view(kind).reshape(shape)

    def reserve(self, offset: int, nbytes: int) -> None:
        """Takes memory for a part of a sparse block now, before something is written there."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._fd, offset, nbytes)
        except OSError as error:
            raise SharedMemoryError(_too_large(nbytes, f"the system says: {error}")) from error

    def close(self) -> None:
        """Releases the memory. Arrays that are still in use keep it until they are deleted."""
        mapping, self._mapping = self._mapping, None
        if mapping is None:
            return
        if self._fd >= 0:
            os.close(self._fd)
        try:
            mapping.close()
        except BufferError:
            # An array still uses these bytes and holds the mapping itself; to unmap it now would crash.
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_mapping", None) is not None:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if context.get_spawning_popen() is None:
            raise SharedMemoryError(
                "a shared block goes to another process only while that is being started: "
                "give it to multiprocessing.Process among the arguments, not through a queue or a pipe"
            )
        if self._mapping is None or self._fd < 0:
            state = "closed" if self._mapping is None else "private"
            raise SharedMemoryError(f"this shared block is {state} and cannot be given to a process")
        return _rebuild, (self._nbytes, self._sparse, reduction.DupFd(self._fd))

    def __repr__(self) -> str:
        return f"<SharedBlock {self._nbytes} bytes{', closed' if self.closed else ''}>"


def _rebuild(nbytes: int, sparse: bool, handle: Any) -> SharedBlock:
    """Maps the parent's memory in the child."""
    fd: int = handle.detach()
    block = SharedBlock.__new__(SharedBlock)
    block._hold(fd, _map(fd, nbytes, sparse), sparse)
    return block


def _map(fd: int, nbytes: int, sparse: bool) -> mmap.mmap:
    """Maps a file. The kernel enters all pages at once; page by page, the first pass over a large block would take
    eight times as long."""
    if sparse or not hasattr(mmap, "MAP_POPULATE"):
        return mmap.mmap(fd, nbytes)
    return mmap.mmap(fd, nbytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """One array of a layout: what it holds, and where."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    """Offset in bytes, from the start of the layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Named arrays, one after the other, each on its own cache line."""

    arrays: tuple[ArrayPlace, ...]
    nbytes: int
    """A multiple of the alignment, so that layouts can follow each other."""

    @classmethod
    def of(cls, arrays: Iterable[tuple[str, npt.DTypeLike, Sequence[int]]]) -> Layout:
        places: list[ArrayPlace] = []
        end = 0
        for name, dtype, shape in arrays:
            if any(place.name == name for place in places):
                raise SharedMemoryError(f"two arrays of one layout are named {name!r}; names must differ")
            place = ArrayPlace(name, np.dtype(dtype), tuple(shape), end)
            places.append(place)
            end += aligned(math.prod(place.shape) * place.dtype.itemsize)
        return cls(tuple(places), end)

    def views(self, block: SharedBlock, offset: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Makes the arrays as views of a block, from an aligned offset on."""
        if offset % ALIGNMENT:
            raise SharedMemoryError(f"a layout starts at a multiple of {ALIGNMENT} bytes, got {offset}")
        return {a.name: block.array(a.dtype, a.shape, offset + a.offset) for a in self.arrays}


def aligned(nbytes: int) -> int:
    """Rounds a size up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _open_nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("keisei", os.MFD_CLOEXEC)
    fd, path = tempfile.mkstemp(prefix="keisei-")
    os.unlink(path)
    return fd


def _too_large(nbytes: int, why: str) -> str:
    return (
        f"no shared memory of {_megabytes(nbytes)} can be had: {why}. "
        "Fewer workers, fewer games per worker or shorter slabs need less"
    )


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 2**20:,.1f} MB"
