"""Memory that several processes see, without a name.

Named shared memory outlives a process that is killed, and someone has to sweep it up. A ``SharedBlock`` is an
open file that no folder lists: the kernel frees it when the last process that maps it is gone, however it
went. A child gets it by inheritance, while it is being started.
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
"""A cache line: arrays that start on one never share it with a neighbour that another process writes."""


class SharedBlock:
    """So many bytes, zeros at first, that this process and the children it starts from now on all see.

    Give it to ``multiprocessing.Process`` among the arguments (start methods ``spawn``, ``forkserver`` and
    ``fork`` all work); at any other time it refuses to be pickled.
    """

    def __init__(self, nbytes: int, *, sparse: bool = False) -> None:
        """``sparse`` takes memory only where something is written: for room that is seldom used."""
        if nbytes <= 0:
            raise SharedMemoryError(f"a shared block has at least 1 byte, got {nbytes}")
        # Asked first: the kernel promises more than it has, and kills someone when the promise is called in.
        free = None if sparse else free_memory()
        if free is not None and nbytes > free:
            raise SharedMemoryError(_too_large(nbytes, f"{_megabytes(free)} are free"))
        fd = _open_nameless()
        try:
            os.ftruncate(fd, nbytes)
            if not sparse and hasattr(os, "posix_fallocate"):
                # Have the pages now: without them, a write that finds no memory ends in SIGBUS, not an error.
                os.posix_fallocate(fd, 0, nbytes)
            mapping = _map(fd, nbytes, sparse)
        except (OSError, OverflowError, MemoryError) as error:
            os.close(fd)
            raise SharedMemoryError(_too_large(nbytes, f"the system says: {error}")) from error
        self._hold(fd, mapping, sparse)

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
        """The bytes themselves, writable."""
        if self._mapping is None:
            raise SharedMemoryError("this shared block is closed; take what you need from it before close()")
        return self._mapping

    def array(self, dtype: npt.DTypeLike, shape: int | Sequence[int], offset: int = 0) -> npt.NDArray[Any]:
        """A view on the block: what is written to it, every process sees."""
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
        # By way of frombuffer, which keeps the mapping from being unmapped; np.ndarray(buffer=...) does not,
        # and its views would crash after close().
        return np.frombuffer(self.buffer, np.uint8)[offset:end].view(kind).reshape(shape)

    def close(self) -> None:
        """Give the memory back. Arrays that are still in use keep it, and free it when they go."""
        mapping, self._mapping = self._mapping, None
        if mapping is None:
            return
        os.close(self._fd)
        try:
            mapping.close()
        except BufferError:
            # An array still looks at these bytes; unmapping now would crash it. It holds the mapping itself.
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
        if self._mapping is None:
            raise SharedMemoryError("this shared block is closed and cannot be given to a process")
        return _rebuild, (self._nbytes, self._sparse, reduction.DupFd(self._fd))

    def __repr__(self) -> str:
        return f"<SharedBlock {self._nbytes} bytes{', closed' if self.closed else ''}>"


def _rebuild(nbytes: int, sparse: bool, handle: Any) -> SharedBlock:
    """In the child: map the memory that the parent has."""
    fd: int = handle.detach()
    block = SharedBlock.__new__(SharedBlock)
    block._hold(fd, _map(fd, nbytes, sparse), sparse)
    return block


def _map(fd: int, nbytes: int, sparse: bool) -> mmap.mmap:
    """Page by page, the first pass over a large block would take eight times as long as the next ones; here
    the kernel enters all pages at once."""
    if sparse or not hasattr(mmap, "MAP_POPULATE"):
        return mmap.mmap(fd, nbytes)
    return mmap.mmap(fd, nbytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)


@dataclass(frozen=True, slots=True)
class Field:
    """One array of a layout."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    """In bytes, from the start of the layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Named arrays, one after the other, each on its own cache line."""

    fields: tuple[Field, ...]
    nbytes: int
    """A multiple of the alignment, so that layouts can follow each other."""

    @classmethod
    def of(cls, arrays: Iterable[tuple[str, npt.DTypeLike, Sequence[int]]]) -> Layout:
        fields: list[Field] = []
        end = 0
        for name, dtype, shape in arrays:
            if any(field.name == name for field in fields):
                raise SharedMemoryError(f"two arrays of one layout are named {name!r}; names must differ")
            field = Field(name, np.dtype(dtype), tuple(shape), end)
            fields.append(field)
            end += aligned(math.prod(field.shape) * field.dtype.itemsize)
        return cls(tuple(fields), end)

    def views(self, block: SharedBlock, offset: int = 0) -> dict[str, npt.NDArray[Any]]:
        """The arrays, in a block, from a byte on. That byte must be aligned too."""
        if offset % ALIGNMENT:
            raise SharedMemoryError(f"a layout starts at a multiple of {ALIGNMENT} bytes, got {offset}")
        return {f.name: block.array(f.dtype, f.shape, offset + f.offset) for f in self.fields}


def aligned(nbytes: int) -> int:
    """Rounded up to whole cache lines."""
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
