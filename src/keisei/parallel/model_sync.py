"""Versioned weights: the learner writes them once, every worker reads the newest, nobody waits.

The block holds two slots; version v lies in slot v mod 2, so that the newest whole version stays untouched
while the next one is written. Each slot has a sequence number, odd while it is written. A reader notes the
number, copies, and looks again: where the number has changed, the writer lapped it, and it tries again with
the newest. The writer takes no lock and looks at no reader, so a reader that is killed holds nobody up.

Why this is safe. On x86, stores become visible in the order of the program and loads are done in order
(large copies use streaming stores, which the C library fences), and every step here is a call of its own that
no compiler reorders. On ARM, the processor may reorder both. There, a worker learns of a version by a message
through a pipe, sent after the write, and the kernel's locks order the write before the message and the
message before the read; for a worker that polls ``version`` instead, ``_fence`` orders the steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import WeightsError, WeightsVersionError
from keisei.experience.memory import Layout, SharedBlock
from keisei.games.contract import Array, ByteArray, IntArray
from keisei.machine.torch_threads import torch_threads
from keisei.parallel.weight_codec import (
    Compression,
    CompressionReport,
    WeightLayout,
    Weights,
    check_compression,
    check_half_range,
    compression_report,
    decode,
    decode_state,
    encode,
    pack,
    same_bits,
    tensors_of,
    unpack,
    write_tensors,
)

__all__ = [
    "Compression",
    "CompressionReport",
    "ModelSynchronizer",
    "SyncStats",
    "WeightReader",
    "compression_report",
    "decode",
    "decode_state",
    "encode",
]

SLOTS = 2
PlaySettings: TypeAlias = tuple[float, float]
"""How freely weights are played: temperature and epsilon."""
PLAIN: PlaySettings = (1.0, 0.0)
ATTEMPTS = 200
"""A reader that is lapped so often has a writer that does nothing but publish."""


class _Shared:
    """The block seen by either side."""

    def __init__(self, block: SharedBlock, capacity: int) -> None:
        views = _block_layout(capacity).views(block)
        self.latest: IntArray = views["latest"]
        self.sequence: IntArray = views["sequence"]
        self.version: IntArray = views["version"]
        self.length: IntArray = views["length"]
        self.settings: Array = views["settings"]
        self.slots: list[ByteArray] = [views[f"slot {slot}"] for slot in range(SLOTS)]


def _block_layout(capacity: int) -> Layout:
    return Layout.of(
        [
            ("latest", np.int64, (1,)),
            *((name, np.int64, (SLOTS,)) for name in ("sequence", "version", "length")),
            ("settings", np.float64, (SLOTS, 2)),
            *((f"slot {slot}", np.uint8, (capacity,)) for slot in range(SLOTS)),
        ]
    )


_FENCE = threading.Lock()


def _fence() -> None:
    """No load or store crosses this. Releasing a lock keeps earlier ones before it, taking one keeps later
    ones behind it, so a release followed by an acquire keeps them apart. It costs 0.1 microseconds."""
    with _FENCE:
        pass
    with _FENCE:
        pass


@dataclass(frozen=True, slots=True)
class SyncStats:
    version: int
    published: int
    """Versions written, the first one included."""
    unchanged: int
    """Times that ``publish`` found the weights as they were, and wrote nothing."""
    bytes_written: int
    seconds_writing: float
    payload_bytes: int
    """Of the newest version, as it lies in the block."""


class ModelSynchronizer:
    """The learner's side: writes weights into shared memory, with versions. One process publishes."""

    def __init__(
        self,
        source: Weights,
        compression: Compression = "none",
        *,
        first_version: int = 1,
        settings: PlaySettings = PLAIN,
    ) -> None:
        """The weights of ``source`` become ``first_version``. Models published later have its tensors."""
        if first_version < 0:
            raise WeightsError(f"versions are 0 or more, got {first_version}")
        state = tensors_of(source)
        self.compression = check_compression(compression)
        self._layout = WeightLayout.of(state)
        self._stored = self._layout.stored(compression)
        self._block = SharedBlock(_block_layout(self._stored.nbytes).nbytes)
        self._shared: _Shared | None = _Shared(self._block, self._stored.nbytes)
        self._plain = torch.zeros(self._stored.nbytes if compression == "lossless" else 0, dtype=torch.uint8)
        """What was compressed last: the slot cannot be compared with new weights, this can."""
        self._writing = threading.Lock()
        self._published = self._unchanged = self._bytes = 0
        self._seconds = 0.0
        self._write(self._shared, state, first_version, settings)

    def publish(self, source: Weights, settings: PlaySettings = PLAIN) -> int:
        """Make these weights the newest, and give their version: the one before, if nothing has changed.

        ``settings`` say how freely they are played, and reach readers together with them.
        """
        shared = self._require_open()
        state = tensors_of(source)
        self._layout.check(state, "the published model")
        # On one thread: a copy that is shared out waits for the slowest of its threads at every tensor, and
        # when workers keep all cores busy that made publishing 20M parameters take 170 ms instead of 9.
        with self._writing, torch_threads(1):
            version = int(shared.latest[0])
            slot = version % SLOTS
            if tuple(shared.settings[slot]) == settings and same_bits(state, self._comparable(shared, slot)):
                self._unchanged += 1
                return version
            self._write(shared, state, version + 1, settings)
            return version + 1

    @property
    def version(self) -> int:
        """The newest."""
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
        """Of shared memory."""
        return self._block.nbytes

    def reader(self) -> WeightReader:
        """A worker's side: for a thread as it is, for a process among the arguments of its start."""
        self._require_open()
        return WeightReader(self._block, self._layout, self.compression)

    def close(self) -> None:
        """Give the shared memory back. Workers that still map it keep their part of it until they end."""
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
        """The newest weights, as tensors."""
        flat = self._plain if self.compression == "lossless" else torch.from_numpy(shared.slots[slot])
        return self._stored.views(flat)

    def _write(
        self, shared: _Shared, state: Mapping[str, Tensor], version: int, settings: PlaySettings
    ) -> None:
        if self.compression == "half":
            check_half_range(state)
        started = time.perf_counter()
        slot = version % SLOTS
        # The slot may have been left odd by a write that failed half way.
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
        if len(packed) >= self._stored.nbytes:  # Noise: it lies there as it is, and its full length says so.
            np.copyto(memory, self._plain.numpy())
            return self._stored.nbytes
        memory[: len(packed)] = np.frombuffer(packed, np.uint8)
        return len(packed)


class WeightReader:
    """A worker's side: takes weights out of shared memory, whole, into a model of its own."""

    def __init__(self, block: SharedBlock, layout: WeightLayout, compression: Compression) -> None:
        self._block = block
        self._layout = layout
        self._stored = layout.stored(compression)
        self._compression = compression
        self._views: _Shared | None = None
        self.settings: PlaySettings = PLAIN
        """Of the weights that were read last."""
        self._models: WeakKeyDictionary[nn.Module, _FlatModel] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightReader, (self._block, self._layout, self._compression)

    @property
    def _shared(self) -> _Shared:
        """Made when it is first needed: a parent that only hands readers on shall not hold the memory."""
        if self._views is None:
            self._views = _Shared(self._block, self._stored.nbytes)
        return self._views

    @property
    def version(self) -> int:
        """The newest that is published."""
        return int(self._shared.latest[0])

    def read_into(self, model: nn.Module, version: int | None = None) -> int:
        """Give a model the newest weights, or those of one version, and tell the version.

        The first time, the model's tensors move into one stretch of memory, which makes each update a single
        copy; optimizers and views made before then no longer see them. Should this raise after the writer has
        lapped it, the model may hold parts of two versions: read again before you use it.
        """
        flat = self._flat_model(model)
        for attempt in range(ATTEMPTS):
            wanted = self.version if version is None else version
            if self._try(flat, wanted):
                return wanted
            if version is not None:
                raise WeightsVersionError(self._gone(version))
            time.sleep(min(attempt, 20) * 1e-4)
        raise WeightsError(
            f"weights were overwritten {ATTEMPTS} times while they were read; "
            "publish less often, or ask for them right after they were published"
        )

    def _try(self, flat: _FlatModel, version: int) -> bool:
        """Copy a version. False if it is not there, or was overwritten meanwhile."""
        shared, slot = self._shared, version % SLOTS
        before = int(shared.sequence[slot])
        _fence()
        if before % 2 or int(shared.version[slot]) != version:
            return False
        packed = self._copy(slot, flat)
        temperature, epsilon = shared.settings[slot].tolist()
        _fence()
        if int(shared.sequence[slot]) != before:
            return False
        self.settings = temperature, epsilon
        if packed is not None:
            unpack(packed, flat.memory)
        flat.hand_over()
        return True

    def _copy(self, slot: int, flat: _FlatModel) -> bytes | None:
        """Bring the slot's bytes into the process. Compressed ones are given back: torn, they could not even
        be unpacked, so that waits until they are known to be whole."""
        memory = self._shared.slots[slot]
        length = int(self._shared.length[slot])
        if self._compression == "half":
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
            flat = self._models[model] = _FlatModel(model, self._layout)
        return flat

    def _gone(self, version: int) -> str:
        newest = self.version
        if version > newest:
            return f"weights of version {version} are not published yet; the newest are {newest}"
        return (
            f"weights of version {version} were overwritten; the newest are {newest}, and the one before "
            "may still be there: ask for None to have the newest"
        )


class _FlatModel:
    """A model whose tensors are views on one stretch of memory."""

    def __init__(self, model: nn.Module, layout: WeightLayout) -> None:
        tensors = tensors_of(model)
        layout.check(tensors, "the model that reads")
        flat = torch.zeros(layout.nbytes, dtype=torch.uint8)
        self.memory: ByteArray = flat.numpy()
        self.views = layout.views(flat)
        write_tensors(tensors, self.views)
        # By identity, because tied weights are one tensor under two names; the last name has it.
        self._bound: dict[int, tuple[Tensor, Tensor]] = {}
        self._elsewhere: list[tuple[Tensor, Tensor]] = []
        for name, tensor in tensors.items():
            if tensor.device.type != "cpu":
                self._elsewhere.append((tensor, self.views[name]))
                continue
            tensor.data = self.views[name]
            self._bound[id(tensor)] = (tensor, self.views[name])

    def holds(self, model: nn.Module) -> bool:
        """Whether the model's tensors are still these; ``model.to(...)`` and the like move them."""
        known = {*self._bound, *(id(tensor) for tensor, _ in self._elsewhere)}
        if any(id(tensor) not in known for tensor in tensors_of(model).values()):
            return False
        return all(tensor.data_ptr() == view.data_ptr() for tensor, view in self._bound.values())

    @torch.no_grad()
    def hand_over(self) -> None:
        """To the tensors on other devices, which cannot be views on this memory."""
        for tensor, view in self._elsewhere:
            tensor.detach().copy_(view)
