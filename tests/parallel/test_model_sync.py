"""Weights in shared memory: never torn, never older than before, and never waited for."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from keisei.errors import SharedMemoryError, WeightsError, WeightsVersionError
from keisei.parallel.weights import model_sync
from keisei.parallel.weights.model_sync import Compression, ModelSynchronizer, WeightReader
from keisei.parallel.weights.weight_codec import pack, unpack
from keisei.policies.behaviour import PlaySettings

COMPRESSIONS: tuple[Compression, ...] = ("none", "half", "lossless")
LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")


class Net(nn.Module):
    """Several types, an odd number of bytes, a tensor without dimensions, and an empty one."""

    def __init__(self, width: int = 7) -> None:
        super().__init__()
        self.body = nn.Linear(5, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("flags", torch.zeros(3, dtype=torch.bool))
        self.register_buffer("wide", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("brain", torch.zeros(3, dtype=torch.bfloat16))
        self.register_buffer("empty", torch.zeros(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(self.body(x))
        return y


@torch.no_grad()
def fill(model: nn.Module, number: float) -> None:
    for tensor in model.state_dict(keep_vars=True).values():
        tensor.fill_(number)


def noise(model: nn.Module, seed: int = 1) -> None:
    """Weights such as training leaves, and the odd ones: NaN, -0, and numbers that floats hardly hold."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=generator))
        next(model.parameters()).view(-1)[:4] = torch.tensor([float("nan"), -0.0, 1e-42, 3.4e38])


def bits(model: nn.Module) -> dict[str, bytes]:
    return {
        name: tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        for name, tensor in model.state_dict().items()
    }


@dataclass
class Sightings:
    """What a reader saw."""

    reads: int = 0
    torn: int = 0
    backwards: int = 0
    mislabelled: int = 0
    newest: int = 0

    def look(self, model: nn.Module, version: int) -> None:
        lowest = min(float(t.detach().min()) for t in model.parameters())
        highest = max(float(t.detach().max()) for t in model.parameters())
        self.reads += 1
        self.torn += lowest != highest
        self.mislabelled += lowest != version
        self.backwards += version < self.newest
        self.newest = version


@pytest.mark.parametrize("compression", ["none", "lossless"])
def test_a_reader_gets_the_very_bits(compression: Compression) -> None:
    learner, worker = Net(), Net()
    noise(learner)
    with ModelSynchronizer(learner, compression) as sync:
        reader = sync.reader()
        assert reader.read_into(worker) == 1
        assert bits(worker) == bits(learner)
        noise(learner, seed=2)
        assert sync.publish(learner) == 2
        assert bits(worker) != bits(learner)
        assert reader.version == 2
        assert reader.read_into(worker) == 2
        assert bits(worker) == bits(learner)


def test_half_precision_is_what_float16_gives_and_leaves_other_types_alone() -> None:
    learner, worker = Net(), Net()
    torch.nn.init.normal_(learner.body.weight)
    learner.norm.num_batches_tracked.fill_(2**40 + 1)
    learner.flags[1] = True
    learner.wide[0] = 1 / 3
    learner.brain[0] = 1e30
    with ModelSynchronizer(learner, "half") as sync:
        sync.reader().read_into(worker)
    for name, exact in learner.state_dict().items():
        narrow = exact.dtype in (torch.float32, torch.float64)
        expected = exact.to(torch.float16).to(exact.dtype) if narrow else exact
        assert torch.equal(worker.state_dict()[name], expected), name


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_model_computes_with_what_it_read(compression: Compression) -> None:
    learner, worker = Net().eval(), Net().eval()
    x = torch.ones(2, 5)
    with ModelSynchronizer(learner, compression) as sync:
        reader = sync.reader()
        for number in (1, 2):
            fill(learner, number)
            sync.publish(learner)
            reader.read_into(worker)
            assert torch.equal(worker(x), learner(x))


def test_a_float_model_is_updated_by_one_copy_into_memory_of_its_own() -> None:
    learner, worker = Net(), Net()
    with ModelSynchronizer(learner) as sync:
        reader = sync.reader()
        reader.read_into(worker)
        storages = {
            tensor.untyped_storage().data_ptr() for tensor in worker.state_dict().values() if tensor.numel()
        }
        assert len(storages) == 1
        assert all(tensor.data_ptr() % 64 == 0 for tensor in worker.state_dict().values())
        fill(worker, 5)
        other = Net()
        reader.read_into(other)
        assert bits(other) == bits(learner)
        assert bits(worker) != bits(learner)
        reader.read_into(worker)
        assert bits(worker) == bits(learner)


def test_a_model_that_moved_its_tensors_is_still_read_into() -> None:
    learner, worker = Net(), Net()
    with ModelSynchronizer(learner) as sync:
        reader = sync.reader()
        reader.read_into(worker)
        worker.body.weight.data = torch.zeros(7, 5)
        worker.body.bias = nn.Parameter(torch.zeros(7))
        reader.read_into(worker)
        assert bits(worker) == bits(learner)


def test_tied_weights_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

    learner, worker = Tied(), Tied()
    with ModelSynchronizer(learner) as sync:
        reader = sync.reader()
        reader.read_into(worker)
        pointer = worker.a.weight.data_ptr()
        reader.read_into(worker)
    assert worker.a.weight is worker.b.weight
    assert worker.a.weight.data_ptr() == pointer
    assert torch.equal(worker.a.weight, learner.a.weight)


def test_a_state_dict_may_be_published_and_its_tensors_may_have_any_strides() -> None:
    worker = nn.Linear(3, 2, bias=False)
    turned = torch.arange(6.0).view(3, 2).t()
    with ModelSynchronizer({"weight": turned}) as sync:
        sync.reader().read_into(worker)
        assert torch.equal(worker.weight, turned)
        assert sync.publish({"weight": turned.clone()}) == 1
        assert sync.publish({"weight": turned + 1}) == 2


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_unchanged_weights_are_not_written_again(compression: Compression) -> None:
    model = Net()
    with ModelSynchronizer(model, compression) as sync:
        written = sync.stats.bytes_written
        assert [sync.publish(model) for _ in range(3)] == [1, 1, 1]
        assert (sync.stats.published, sync.stats.unchanged) == (1, 3)
        assert sync.stats.bytes_written == written
        model.norm.num_batches_tracked += 1  # the last tensor but a few, and no float
        assert sync.publish(model) == 2
        assert (sync.stats.published, sync.stats.unchanged, sync.stats.version) == (2, 3, 2)


def test_the_same_bits_count_as_the_same_weights() -> None:
    model = nn.Linear(2, 2)
    fill(model, 0.0)
    with ModelSynchronizer(model) as sync:
        fill(model, -0.0)
        assert sync.publish(model) == 2
        fill(model, float("nan"))
        assert sync.publish(model) == 3
        assert sync.publish(model) == 3


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_play_settings_travel_with_the_weights(compression: Compression) -> None:
    learner, worker = Net(), Net()
    with ModelSynchronizer(learner, compression, settings=(PlaySettings(0.5, 0.25),)) as sync:
        reader = sync.reader()
        assert reader.settings == (PlaySettings(),), "nothing has been read yet"
        reader.read_into(worker)
        assert reader.settings == (PlaySettings(0.5, 0.25),)
        assert sync.publish(learner, settings=(PlaySettings(0.5, 0.25),)) == 1
        assert sync.publish(learner, settings=(PlaySettings(0.5, 0.25, 7.0),)) == 2, (
            "the same weights, played otherwise"
        )
        assert reader.settings == (PlaySettings(0.5, 0.25),), "still those that were read last"
        assert reader.read_into(worker) == 2
        assert reader.settings == (PlaySettings(0.5, 0.25, 7.0),)
        assert reader.read_into(worker, version=1) == 1
        assert reader.settings == (PlaySettings(0.5, 0.25),)


def test_versions_start_where_asked_and_one_may_be_asked_for() -> None:
    learner, worker = nn.Linear(2, 2), nn.Linear(2, 2)
    fill(learner, 41)
    with ModelSynchronizer(learner, first_version=41) as sync:
        reader = sync.reader()
        with pytest.raises(WeightsVersionError, match="version 42 are not published yet; the newest are 41"):
            reader.read_into(worker, 42)
        for number in (42, 43):
            fill(learner, number)
            assert sync.publish(learner) == number
        # The one before the newest is still whole.
        for number in (43, 42):
            assert reader.read_into(worker, number) == number
            assert (worker.weight == number).all()
        with pytest.raises(WeightsVersionError, match="version 41 were overwritten; the newest are 43"):
            reader.read_into(worker, 41)
        assert (worker.weight == 42).all()


class Other(nn.Module):
    def __init__(self, *, width: int = 7, extra: bool = False, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.body = nn.Linear(5, width, dtype=dtype)
        if extra:
            self.head = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Other(width=8), r"tensor 'body.weight' is float32\[8, 5\] in .* and float32\[7, 5\] in the weights"),
        (Other(dtype=torch.float64), r"tensor 'body.weight' is float64\[7, 5\] in .* and float32\[7, 5\]"),
        (Other(extra=True), "has a tensor 'head.weight', which the weights lack"),
        (nn.Sequential(), "has no tensor 'body.weight'"),
    ],
)
def test_other_models_are_refused_by_the_name_of_the_tensor(other: nn.Module, message: str) -> None:
    model = Other()
    before = bits(other)
    with ModelSynchronizer(model) as sync:
        with pytest.raises(WeightsError, match=message):
            sync.publish(other)
        with pytest.raises(WeightsError, match=message):
            sync.reader().read_into(other)
        assert sync.version == 1
    assert bits(other) == before


def test_bad_settings_are_refused() -> None:
    with pytest.raises(WeightsError, match="one of none, half, lossless, got 'gzip'"):
        ModelSynchronizer(nn.Linear(1, 1), "gzip")  # type: ignore[arg-type]
    with pytest.raises(WeightsError, match="0 or more, got -1"):
        ModelSynchronizer(nn.Linear(1, 1), first_version=-1)
    with pytest.raises(WeightsError, match="no weights"):
        ModelSynchronizer(nn.ReLU())
    with pytest.raises(WeightsError, match="'step' is a int"):
        ModelSynchronizer({"step": 3})  # type: ignore[dict-item]
    with pytest.raises(WeightsError, match="'weight' is float8_e4m3fn"):
        ModelSynchronizer({"weight": torch.zeros(1, dtype=torch.float8_e4m3fn)})


def test_weights_that_half_precision_cannot_hold_are_refused_and_the_last_ones_stay() -> None:
    learner, worker = nn.Linear(2, 2), nn.Linear(2, 2)
    fill(learner, 3)
    with ModelSynchronizer(learner, "half") as sync:
        fill(learner, 70000)
        with pytest.raises(WeightsError, match="'weight' holds 70000, and half precision ends at 65504"):
            sync.publish(learner)
        assert sync.reader().read_into(worker) == 1
        assert (worker.weight == 3).all()
        fill(learner, float("inf"))
        assert sync.publish(learner) == 2


def test_weights_that_do_not_compress_are_stored_as_they_are() -> None:
    noise = torch.from_numpy(np.random.default_rng(3).integers(0, 256, 4096, np.uint8))
    worker = nn.Module()
    worker.register_buffer("noise", torch.zeros(4096, dtype=torch.uint8))
    with ModelSynchronizer({"noise": noise}, "lossless") as sync:
        assert sync.stats.payload_bytes == 4096
        sync.reader().read_into(worker)
        assert torch.equal(worker.get_buffer("noise"), noise)


def fail(*_: object) -> None:
    raise OSError("no device")


def test_a_write_that_fails_leaves_the_last_version_and_the_next_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, worker = Net(), Net()
    with ModelSynchronizer(learner) as sync:
        fill(learner, 2)
        with monkeypatch.context() as patch:
            patch.setattr(model_sync, "write_tensors", fail)
            with pytest.raises(OSError, match="no device"):
                sync.publish(learner)
        reader = sync.reader()
        assert reader.read_into(worker) == 1
        with pytest.raises(WeightsVersionError):
            reader.read_into(worker, 2)
        assert sync.publish(learner) == 2
        assert reader.read_into(worker) == 2
        assert bits(worker) == bits(learner)


class SlowReader(WeightReader):
    """Stops in the middle of its first copy, for the writer to go on meanwhile."""

    def __init__(self, sync: ModelSynchronizer, meanwhile: Callable[[], object]) -> None:
        super().__init__(sync._block, sync._layout, sync.compression)
        self._meanwhile = [meanwhile]

    def _copy(self, slot: int, flat: model_sync._FlatModel) -> bytes | None:
        packed = super()._copy(slot, flat)
        if self._meanwhile:
            self._meanwhile.pop()()
        return packed


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize(("publications", "read"), [(1, 1), (2, 3), (5, 6)])
def test_a_reader_that_is_lapped_takes_the_newest_instead(
    compression: Compression, publications: int, read: int
) -> None:
    learner, worker = Net(), Net()
    fill(learner, 1)
    with ModelSynchronizer(learner, compression) as sync:
        reader = SlowReader(sync, lambda: publish_some(sync, learner, 1, publications))
        sightings = Sightings()
        sightings.look(worker, reader.read_into(worker))
        assert sightings == Sightings(reads=1, newest=read)


def test_a_reader_that_is_lapped_while_it_reads_one_version_says_so() -> None:
    learner, worker = Net(), Net()
    fill(learner, 1)
    with ModelSynchronizer(learner) as sync:
        reader = SlowReader(sync, lambda: publish_some(sync, learner, 1, 2))
        with pytest.raises(WeightsVersionError, match="version 1 were overwritten; the newest are 3"):
            reader.read_into(worker, 1)


def test_a_reader_that_is_lapped_for_ever_says_so() -> None:
    learner, worker = nn.Linear(2, 2), nn.Linear(2, 2)
    with ModelSynchronizer(learner) as sync:
        reader = sync.reader()
        reader._shared.sequence[:] |= 1  # as a writer leaves it that is always at work
        with pytest.raises(WeightsError, match="overwritten 200 times"):
            reader.read_into(worker)


def test_a_closed_synchronizer_says_so_and_may_be_closed_again() -> None:
    sync = ModelSynchronizer(nn.Linear(1, 1))
    reader = sync.reader()
    sync.close()
    sync.close()
    for use in (lambda: sync.publish(nn.Linear(1, 1)), sync.reader, lambda: sync.version, lambda: sync.stats):
        with pytest.raises(WeightsError, match="closed"):
            use()
    with pytest.raises(SharedMemoryError, match="closed"):
        _ = reader.version


@LINUX
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_closing_gives_the_memory_back(compression: Compression) -> None:
    def held() -> tuple[int, int]:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("memfd:keisei"), len(os.listdir("/proc/self/fd"))

    before = held()
    model = Net()
    sync = ModelSynchronizer(model, compression)
    handed_on = sync.reader()
    fill(model, 1)
    sync.publish(model)
    assert held() != before
    sync.close()
    assert held() == before
    del handed_on


def test_readers_in_threads_may_share_a_reader() -> None:
    learner = Net()
    fill(learner, 1)
    everything = [Sightings() for _ in range(3)]
    with ModelSynchronizer(learner) as sync:
        reader = sync.reader()

        def work(sightings: Sightings) -> None:
            model = Net()
            while sightings.newest < 100:
                sightings.look(model, reader.read_into(model))

        threads = [threading.Thread(target=work, args=(sightings,)) for sightings in everything]
        for thread in threads:
            thread.start()
        publish_some(sync, learner, 1, 99)
        for thread in threads:
            thread.join()
    assert [(s.newest, s.torn, s.backwards, s.mislabelled) for s in everything] == [(100, 0, 0, 0)] * 3


# From here on: real processes.


@pytest.fixture
def children_find_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child imports the function that it is to run by its module's name, from the paths of its parent."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def big_net() -> nn.Module:
    """400 KB in ten tensors, so that a read takes as long as a write and gets in its way."""
    return nn.Sequential(*(nn.Linear(100, 200) for _ in range(5)))


def read_all(reader: WeightReader, last: int, pipe: Connection) -> None:
    """In a child: read as fast as it goes until the last version comes by."""
    torch.set_num_threads(1)
    model, sightings = big_net(), Sightings()
    reader.read_into(model)
    pipe.send("ready")
    while sightings.newest < last:
        sightings.look(model, reader.read_into(model))
    pipe.send(sightings)


def context_of(method: str) -> BaseContext:
    return multiprocessing.get_context(
        method if method in multiprocessing.get_all_start_methods() else "spawn"
    )


def start(context: BaseContext, target: object, *arguments: object) -> tuple[BaseProcess, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(*arguments, theirs), daemon=True)  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    return process, ours


@pytest.mark.usefixtures("children_find_this_file")
@pytest.mark.parametrize(
    ("method", "compression"), [("forkserver", "none"), ("spawn", "half"), ("spawn", "lossless")]
)
def test_readers_in_processes_never_see_half_a_version(method: str, compression: Compression) -> None:
    context = context_of(method)
    last = 400
    learner = big_net()
    fill(learner, 1)
    with ModelSynchronizer(learner, compression) as sync:
        readers = [start(context, read_all, sync.reader(), last) for _ in range(2)]
        for _, pipe in readers:
            assert pipe.recv() == "ready"
        for number in range(2, last + 1):
            fill(learner, number)
            assert sync.publish(learner) == number
        for process, pipe in readers:
            sightings = pipe.recv()
            assert sightings.newest == last
            assert sightings.reads > 1
            assert (sightings.torn, sightings.backwards, sightings.mislabelled) == (0, 0, 0)
            process.join(60)
            assert process.exitcode == 0
            pipe.close()


def read_for_ever(reader: WeightReader, pipe: Connection) -> None:
    model = big_net()
    reader.read_into(model)
    pipe.send("reading")
    while True:
        reader.read_into(model)


@pytest.mark.usefixtures("children_find_this_file")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_reader_that_is_killed_holds_up_neither_writer_nor_readers() -> None:
    context = context_of("forkserver")
    learner = big_net()
    fill(learner, 1)
    with ModelSynchronizer(learner) as sync:
        survivor, survivors_pipe = start(context, read_all, sync.reader(), 200)
        assert survivors_pipe.recv() == "ready"
        version = 1
        for _ in range(2):
            victim, pipe = start(context, read_for_ever, sync.reader())
            assert pipe.recv() == "reading"
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGSTOP)  # in the middle of a read, more often than not
            version = publish_some(sync, learner, version, 20)
            os.kill(victim.pid, signal.SIGKILL)
            version = publish_some(sync, learner, version, 20)
            victim.join(60)
            assert victim.exitcode == -signal.SIGKILL
            pipe.close()
        publish_some(sync, learner, version, 200 - version)
        sightings = survivors_pipe.recv()
        assert (sightings.newest, sightings.torn, sightings.backwards) == (200, 0, 0)
        survivor.join(60)
        survivors_pipe.close()


def publish_some(sync: ModelSynchronizer, learner: nn.Module, version: int, count: int) -> int:
    for number in range(version + 1, version + count + 1):
        fill(learner, number)
        assert sync.publish(learner) == number
    return version + count


def test_a_reader_is_pickled_only_for_a_child_that_starts() -> None:
    with ModelSynchronizer(nn.Linear(1, 1)) as sync, pytest.raises(SharedMemoryError, match="being started"):
        pickle.dumps(sync.reader())


def test_packed_bytes_that_are_damaged_are_refused() -> None:
    plain = np.arange(64, dtype=np.uint8)
    packed, read = pack(plain), np.zeros(64, np.uint8)
    unpack(packed, read)
    assert (read == plain).all()
    for damaged in (b"", packed[:-6], b"x" + packed, pack(np.zeros(128, np.uint8)), pack(plain[:60])):
        with pytest.raises(WeightsError, match="damaged"):
            unpack(damaged, read)


def test_the_report_tells_sizes_and_errors() -> None:
    model = nn.Linear(256, 256, bias=False)
    torch.manual_seed(0)
    nn.init.normal_(model.weight, std=0.02)
    report = model_sync.compression_report(model)
    assert report.plain_bytes == 256 * 256 * 4
    assert report.half_bytes == report.plain_bytes // 2
    assert report.half_bytes < report.lossless_bytes < report.plain_bytes
    exact = model.weight.detach().double()
    error = (exact.half().double() - exact).abs()
    assert report.half_max_absolute_error == float(error.max())
    assert report.half_max_relative_error == float((error / exact.abs()).max())
    fill(model, 1e9)
    assert model_sync.compression_report(model).half_max_absolute_error == float("inf")
    fill(model, 0)
    assert model_sync.compression_report(model).half_max_relative_error == 0
