"""Versioned weights: the learner writes them once, and every worker reads the newest, without waiting.

The block holds two slots. Version v is in slot v mod 2, so the newest version stays unchanged while the next one is
written. Each slot has a sequence number, which is odd during a write. A reader notes the number, copies the slot, and
compares the number again. If it has changed, the writer has overwritten the slot, and the reader tries again with the
newest version. The writer takes no lock and waits for no reader, so a killed reader blocks nobody.

Why this is safe: On x86, stores become visible in program order, and loads are done in order. Large copies use
streaming stores, which the C library fences. Every step here is a separate call, which no compiler reorders. On ARM,
the processor may reorder both. There, a worker is told of a version by a message through a pipe, which is sent after
the write. The kernel's locks order the write before the message, and the message before the read. For a worker that
polls ``version`` instead, ``_fence`` orders the steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import WeightsError, WeightsVersionError
from keisei.games.contract import Array, ByteArray, IntArray
from keisei.machine.shared_memory import Layout, SharedBlock
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.weights.weight_codec import (
    Compression,
    CompressionReport,
    WeightLayout,
    Weights,
    check_compression,
    check_half_range,
    compression_report,
    pack,
    same_bits,
    tensors_of,
    unpack,
    write_tensors,
)
from keisei.policies.behaviour import Play, PlaySettings

__all__ = [
    "Compression",
    "CompressionReport",
    "ModelSynchronizer",
    "SyncStats",
    "WeightCopy",
    "WeightReader",
    "WeightsOfVersion",
    "compression_report",
]

SLOTS = 2
PLAIN: Play = (PlaySettings(),)
ATTEMPTS = 200
"""A reader gives up after this many attempts. It only happens if the writer publishes all the time."""

T = TypeVar("T")


class _Shared:
    """The arrays in the block, for writer and readers."""

    def __init__(self, block: SharedBlock, capacity: int, players: int) -> None:
        views = _block_layout(capacity, players).views(block)
        self.latest: IntArray = views["latest"]
        self.sequence: IntArray = views["sequence"]
        self.version: IntArray = views["version"]
        self.length: IntArray = views["length"]
        self.settings: Array = views["settings"]
        self.slots: list[ByteArray] = [views[f"slot {slot}"] for slot in range(SLOTS)]

    def settings_at(self, slot: int) -> Play:
        return tuple(PlaySettings(*own) for own in self.settings[slot].tolist())


def _block_layout(capacity: int, players: int) -> Layout:
    return Layout.of(
        [
            ("latest", np.int64, (1,)),
            *((name, np.int64, (SLOTS,)) for name in ("sequence", "version", "length")),
            ("settings", np.float64, (SLOTS, players, len(PLAIN[0]))),
            *((f"slot {slot}", np.uint8, (capacity,)) for slot in range(SLOTS)),
        ]
    )


_FENCE = threading.Lock()


def _fence() -> None:
    """Keeps loads and stores in order: none of them moves across this call. A release keeps earlier ones before it,
    and an acquire keeps later ones after it. So a release and then an acquire separate them. It costs 0.1
    microseconds."""
    with _FENCE:
        pass
    with _FENCE:
        pass


@dataclass(frozen=True, slots=True)
class WeightsOfVersion:
    """The weights of one version as they are stored, on their way to another machine."""

    version: int
    settings: Play
    content: ByteArray


@dataclass(frozen=True, slots=True)
class SyncStats:
    version: int
    published: int
    """Versions written, including the first one."""
    unchanged: int
    """How often ``publish`` found the weights unchanged and wrote nothing."""
    bytes_written: int
    seconds_writing: float
    payload_bytes: int
    """Size of the newest version in the block."""


class ModelSynchronizer:
    """The learner's side: writes versioned weights into shared memory. Only one process publishes."""

    def __init__(
        self,
        source: Weights,
        compression: Compression = "none",
        *,
        first_version: int = 1,
        settings: Play = PLAIN,
    ) -> None:
        """The weights of ``source`` become ``first_version``. Models that are published later must have the same
        tensors."""
        if first_version < 0:
            raise WeightsError(f"versions are 0 or more, got {first_version}")
        state = tensors_of(source)
        self.compression = check_compression(compression)
        self._layout = WeightLayout.of(state)
        self._stored = self._layout.stored(compression)
        self._block = SharedBlock(_block_layout(self._stored.nbytes, len(settings)).nbytes)
        self._players = len(settings)
        self._shared: _Shared | None = _Shared(self._block, self._stored.nbytes, self._players)
        self._plain = torch.zeros(self._stored.nbytes if compression == "lossless" else 0, dtype=torch.uint8)
        """The last weights before compression. New weights are compared with them, since the slot holds compressed
        bytes."""
        self._writing = threading.Lock()
        self._published = self._unchanged = self._bytes = 0
        self._seconds = 0.0
        self._write(self._shared, state, first_version, settings)

    def publish(self, source: Weights, settings: Play = PLAIN) -> int:
        """Publishes weights and gives their version. If nothing has changed, this is the version before.

        ``settings`` say how to play with them. Readers get them together with the weights.
        """
        shared = self._require_open()
        state = tensors_of(source)
        self._layout.check(state, "the published model")
        if len(settings) != self._players:
            raise WeightsError(
                f"settings of {len(settings)} players were published for {self._players}; give one for each"
            )
        # Copy on one thread. With several threads, each tensor waits for the slowest of them. When workers keep all
        # cores busy, publishing 20M parameters then takes 170 ms instead of 9.
        with self._writing, torch_threads(1):
            version = int(shared.latest[0])
            slot = version % SLOTS
            if shared.settings_at(slot) == settings and same_bits(state, self._comparable(shared, slot)):
                self._unchanged += 1
                return version
            self._write(shared, state, version + 1, settings)
            return version + 1

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self._require_open().latest[0])

    @property
    def stats(self) -> SyncStats:
        shared = self._require_open()
        version = int(shared.latest[0])
        return SyncStats(
            version=version,
            published=self._published,
            unchanged=self._unchanged,
            bytes_written=self._bytes,
            seconds_writing=self._seconds,
            payload_bytes=int(shared.length[version % SLOTS]),
        )

    @property
    def nbytes(self) -> int:
        """Size of the shared memory."""
        return self._block.nbytes

    def reader(self) -> WeightReader:
        """Makes a reader for a worker. A thread uses it directly; a process gets it as an argument when it starts."""
        self._require_open()
        return WeightReader(self._block, self._layout, self.compression, self._players)

    def close(self) -> None:
        """Frees the shared memory. Workers that still map it keep it until they end."""
        self._shared = None
        self._block.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> _Shared:
        if self._shared is None:
            raise WeightsError("this ModelSynchronizer is closed; make a new one to publish weights")
        return self._shared

    def _comparable(self, shared: _Shared, slot: int) -> Mapping[str, Tensor]:
        """Gets the newest weights as tensors."""
        flat = self._plain if self.compression == "lossless" else torch.from_numpy(shared.slots[slot])
        return self._stored.views(flat)

    def _write(self, shared: _Shared, state: Mapping[str, Tensor], version: int, settings: Play) -> None:
        if self.compression == "half":
            check_half_range(state)
        started = time.perf_counter()
        slot = version % SLOTS
        # The number may still be odd, if an earlier write failed half way.
        writing = int(shared.sequence[slot]) | 1
        shared.sequence[slot] = writing
        _fence()
        length = self._fill(shared.slots[slot], state)
        shared.version[slot], shared.length[slot], shared.settings[slot] = version, length, settings
        _fence()
        shared.sequence[slot] = writing + 1
        _fence()
        shared.latest[0] = version
        self._published += 1
        self._bytes += length
        self._seconds += time.perf_counter() - started

    def _fill(self, memory: ByteArray, state: Mapping[str, Tensor]) -> int:
        if self.compression != "lossless":
            write_tensors(state, self._stored.views(torch.from_numpy(memory)))
            return self._stored.nbytes
        write_tensors(state, self._stored.views(self._plain))
        packed = pack(self._plain.numpy())
        if len(packed) >= self._stored.nbytes:  # noise: stored uncompressed, which its full length shows
            np.copyto(memory, self._plain.numpy())
            return self._stored.nbytes
        memory[: len(packed)] = np.frombuffer(packed, np.uint8)
        return len(packed)


class WeightReader:
    """A worker's side: copies whole versions of weights from shared memory into the worker's own model."""

    def __init__(
        self, block: SharedBlock, layout: WeightLayout, compression: Compression, players: int = 1
    ) -> None:
        self._block, self.players = block, players
        self.layout = layout
        self._stored = layout.stored(compression)
        self.compression = compression
        self._views: _Shared | None = None
        self.settings: Play = PLAIN
        """The settings of the weights that were read last."""
        self._models: WeakKeyDictionary[nn.Module, _FlatModel] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightReader, (self._block, self.layout, self.compression, self.players)

    @property
    def _shared(self) -> _Shared:
        """Made at first use, so that a parent that only passes readers on does not hold the memory."""
        if self._views is None:
            self._views = _Shared(self._block, self._stored.nbytes, self.players)
        return self._views

    @property
    def version(self) -> int:
        """The newest published version."""
        return int(self._shared.latest[0])

    def read_into(self, model: nn.Module, version: int | None = None) -> int:
        """Copies the newest weights, or those of one version, into a model. Returns the version.

        The first call moves the model's tensors into one block of memory, so that each update is a single copy.
        Optimizers and views made before that call no longer see the tensors. If this raises an error because weights
        were overwritten, the model may hold parts of two versions. Read again before you use it.
        """
        flat = self._flat_model(model)
        taken, packed, self.settings = self._read(version, lambda slot: self._copy(slot, flat))
        if packed is not None:
            unpack(packed, flat.memory)
        flat.hand_over()
        return taken

    def stored(self, version: int | None = None) -> WeightsOfVersion:
        """Copies the newest weights, or those of one version, as they are stored."""
        taken, content, settings = self._read(version, self._copy_stored)
        return WeightsOfVersion(taken, settings, content)

    def _read(self, version: int | None, copy: Callable[[int], T]) -> tuple[int, T, Play]:
        """Copies the newest version, or one version. Returns the version, the copy and its settings."""
        for attempt in range(ATTEMPTS):
            wanted = self.version if version is None else version
            found = self._try(wanted, copy)
            if found is not None:
                return wanted, *found
            if version is not None:
                raise WeightsVersionError(self._gone(version))
            time.sleep(min(attempt, 20) * 1e-4)
        raise WeightsError(
            f"weights were overwritten {ATTEMPTS} times while they were read; "
            "publish less often, or ask for them right after they were published"
        )

    def _try(self, version: int, copy: Callable[[int], T]) -> tuple[T, Play] | None:
        """Copies a version. Returns None if it is not there, or was overwritten during the copy."""
        shared, slot = self._shared, version % SLOTS
        before = int(shared.sequence[slot])
        _fence()
        if before % 2 or int(shared.version[slot]) != version:
            return None
        copied = copy(slot)
        settings = shared.settings_at(slot)
        _fence()
        return (copied, settings) if int(shared.sequence[slot]) == before else None

    def _copy_stored(self, slot: int) -> ByteArray:
        return self._shared.slots[slot][: max(int(self._shared.length[slot]), 0)].copy()

    def _copy(self, slot: int, flat: _FlatModel) -> bytes | None:
        """Copies the bytes of a slot into the process. Compressed bytes are returned instead. They are unpacked only
        when the copy is known to be whole, because torn bytes cannot be unpacked."""
        memory = self._shared.slots[slot]
        length = int(self._shared.length[slot])
        if self.compression == "half":
            with torch_threads(1):
                write_tensors(self._stored.views(torch.from_numpy(memory)), flat.views)
        elif length == self._stored.nbytes:
            np.copyto(flat.memory, memory)
        else:
            return memory[: max(length, 0)].tobytes()
        return None

    def _flat_model(self, model: nn.Module) -> _FlatModel:
        flat = self._models.get(model)
        if flat is None or not flat.holds(model):
            flat = self._models[model] = _FlatModel(model, self.layout)
        return flat

    def _gone(self, version: int) -> str:
        newest = self.version
        if version > newest:
            return f"weights of version {version} are not published yet; the newest are {newest}"
        return (
            f"weights of version {version} were overwritten; the newest are {newest}, and the one before "
            "may still be there: ask for None to have the newest"
        )


class WeightCopy:
    """Weights in a process on another machine. It takes one version after the other, and its reader reads them in the
    same way as on the learner's machine."""

    def __init__(self, layout: WeightLayout, compression: Compression, players: int = 1) -> None:
        capacity = layout.stored(compression).nbytes
        block = SharedBlock.private(_block_layout(capacity, players).nbytes)
        self._shared = _Shared(block, capacity, players)
        self.reader = WeightReader(block, layout, compression, players)

    def take(self, weights: WeightsOfVersion) -> None:
        """Stores a version. The same process reads it afterwards, so nothing needs to be guarded."""
        shared, slot, length = self._shared, weights.version % SLOTS, len(weights.content)
        shared.slots[slot][:length] = weights.content
        shared.version[slot], shared.length[slot] = weights.version, length
        shared.settings[slot] = weights.settings
        shared.latest[0] = weights.version


class _FlatModel:
    """A model whose tensors are views on one block of memory."""

    def __init__(self, model: nn.Module, layout: WeightLayout) -> None:
        tensors = tensors_of(model)
        layout.check(tensors, "the model that reads")
        flat = torch.zeros(layout.nbytes, dtype=torch.uint8)
        self.memory: ByteArray = flat.numpy()
        self.views = layout.views(flat)
        write_tensors(tensors, self.views)
        # Keyed by identity: tied weights are one tensor with two names, and it is bound to the last name.
        self._bound: dict[int, tuple[Tensor, Tensor]] = {}
        self._elsewhere: list[tuple[Tensor, Tensor]] = []
        for name, tensor in tensors.items():
            if tensor.device.type != "cpu":
                self._elsewhere.append((tensor, self.views[name]))
                continue
            tensor.data = self.views[name]
            self._bound[id(tensor)] = (tensor, self.views[name])

    def holds(self, model: nn.Module) -> bool:
        """Checks if the model still has these tensors. Calls such as ``model.to(...)`` replace them."""
        known = {*self._bound, *(id(tensor) for tensor, _ in self._elsewhere)}
        if any(id(tensor) not in known for tensor in tensors_of(model).values()):
            return False
        return all(tensor.data_ptr() == view.data_ptr() for tensor, view in self._bound.values())

    @torch.no_grad()
    def hand_over(self) -> None:
        """Copies the weights to tensors on other devices, which cannot be views on this memory."""
        for tensor, view in self._elsewhere:
            tensor.detach().copy_(view)
