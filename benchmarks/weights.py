"""How fast new weights reach workers: ours, a queue of pickled state dicts, and memcpy as the limit.

Real processes, each with its own model. The clock runs until the last one has the new weights. First the workers
wait for them, as in synchronous training. Then the workers continue to work (they count small matrix products),
which shows how long an update stops them.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.measure import Contender, machine, race, tell
from keisei.errors import KeiseiError
from keisei.machine.start_method import chosen_start_method
from keisei.parallel.weights.model_sync import (
    CompressionReport,
    ModelSynchronizer,
    WeightReader,
    compression_report,
)

SIZES = {"2M": (8, 500), "20M": (20, 1000)}
"""Number and width of square layers: 2,004,000 and 20,020,000 parameters."""
WORKERS = (1, 4, 8)
WORKING = 4
"""The number of workers in the second part, in which they work."""
SETTLE = 0.1
"""Seconds of work before and after an update, so that the whole gap is visible."""
TRANSPORTS = {"keisei": "none", "half": "half", "queue": "queue"}
"""``half`` is ours too, in half precision; ``queue`` has pickled state dicts, a queue for each worker."""
LIMIT = "memcpy"


@dataclass(frozen=True)
class Broadcast:
    """Workers that wait."""

    parameters: str
    workers: int
    milliseconds: dict[str, float]
    """Seconds until all workers have the weights, by transport. ``memcpy`` only copies the bytes once in and once
    out for each worker, in threads."""


@dataclass(frozen=True)
class Pause:
    """Workers that work."""

    parameters: str
    workers: int
    transport: str
    milliseconds: float
    """Seconds until all workers have the weights."""
    longest_pause: float
    """The longest pause between two steps of any worker, in milliseconds."""


@dataclass(frozen=True)
class WeightsReport:
    machine: str
    waiting: list[Broadcast]
    working: list[Pause]
    compression: dict[str, CompressionReport]


def run(*, rounds: int, as_json: bool, console: Console) -> None:
    waiting: list[Broadcast] = []
    working: list[Pause] = []
    compression = {}
    for size in SIZES:
        with _crew(size) as crew:
            waiting += _race_waiting(size, crew, rounds, console)
            working += _race_working(size, crew, rounds)
            compression[size] = compression_report(crew.model)
    report = WeightsReport(machine(), waiting, working, compression)
    tell(report, _show, as_json=as_json, console=console)


def _race_waiting(size: str, crew: Crew, rounds: int, console: Console) -> list[Broadcast]:
    contenders: dict[str, Contender] = {}
    for count in WORKERS:
        for name, transport in TRANSPORTS.items():
            contenders[f"{count}/{name}"] = _per_second(crew.broadcast, transport, count)
        contenders[f"{count}/{LIMIT}"] = _per_second(_Copies(crew.nbytes, count).broadcast)
    for contender in contenders.values():  # The first round warms up models and memory.
        contender(0)
    rates = race(contenders, 0, rounds, console)
    return [
        Broadcast(size, count, {name: 1000 / rates[f"{count}/{name}"] for name in (*TRANSPORTS, LIMIT)})
        for count in WORKERS
    ]


def _per_second(work: Callable[..., float], *arguments: object) -> Contender:
    """Makes a rate of a broadcast, since ``race`` needs one."""
    return lambda _: 1 / work(*arguments)


def _race_working(size: str, crew: Crew, rounds: int) -> list[Pause]:
    transports = {"no update": "", **TRANSPORTS}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in transports}
    for _ in range(rounds):
        for name, transport in transports.items():
            found[name].append(crew.broadcast_to_busy(transport, WORKING))
    return [
        Pause(
            size,
            WORKING,
            name,
            milliseconds=1000 * statistics.median(seconds for seconds, _ in results),
            longest_pause=1000 * statistics.median(pause for _, pause in results),
        )
        for name, results in found.items()
    ]


class _Copies:
    """The cost of the memory itself: the bytes are written once, then copied for each worker, on all cores."""

    def __init__(self, nbytes: int, workers: int) -> None:
        self._source, self._shared = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
        self._copies = [np.ones(nbytes, np.uint8) for _ in range(workers)]

    def broadcast(self) -> float:
        with ThreadPoolExecutor(len(self._copies)) as pool:
            list(pool.map(lambda _: None, self._copies))  # Threads start before the clock runs.
            started = time.perf_counter()
            np.copyto(self._shared, self._source)
            list(pool.map(lambda copy: np.copyto(copy, self._shared), self._copies))
            return time.perf_counter() - started


def _model(size: str) -> nn.Module:
    layers, width = SIZES[size]
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))


class Crew:
    """The learner's side, with its workers."""

    def __init__(self, size: str) -> None:
        self.model = _model(size)
        self.syncs = {name: ModelSynchronizer(self.model, name) for name in ("none", "half")}
        self.nbytes = sum(tensor.nbytes for tensor in self.model.state_dict().values())
        context: Any = multiprocessing.get_context(chosen_start_method())
        context.set_forkserver_preload(["keisei.parallel.weights.model_sync"])
        self._queues = [context.Queue() for _ in range(max(WORKERS))]
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        readers = {name: sync.reader() for name, sync in self.syncs.items()}
        for queue in self._queues:
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(size, readers, queue, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        self._await(max(WORKERS))

    def broadcast(self, transport: str, workers: int) -> float:
        """Measures the seconds until waiting workers have new weights."""
        self._change_weights()
        started = time.perf_counter()
        self._send(transport, workers)
        for pipe in self._pipes[:workers]:
            pipe.send(("take", transport))
        answers = self._await(workers)
        seconds = time.perf_counter() - started
        self._check(transport, answers)
        return seconds

    def broadcast_to_busy(self, transport: str, workers: int) -> tuple[float, float]:
        """Measures the seconds until working workers have new weights, and the longest pause of any of them."""
        self._change_weights()
        for pipe in self._pipes[:workers]:
            pipe.send(("work", transport))
        self._await(workers)
        time.sleep(SETTLE)
        started = time.perf_counter()
        self._send(transport, workers)
        applied = self._await(workers)
        seconds = time.perf_counter() - started
        self._check(transport, applied)
        return seconds, max(self._await(workers))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()  # This ends the worker.
        for process in self._processes:
            process.join(10)
            process.kill()
        for queue in self._queues:
            queue.close()
            queue.cancel_join_thread()
        for sync in self.syncs.values():
            sync.close()

    def _send(self, transport: str, workers: int) -> None:
        if transport == "queue":
            message = {name: tensor.numpy() for name, tensor in self.model.state_dict().items()}
            for queue in self._queues[:workers]:
                queue.put(message)
        elif transport:
            self.syncs[transport].publish(self.model)

    @torch.no_grad()
    def _change_weights(self) -> None:
        for tensor in self.model.parameters():
            tensor.add_(0.001)

    def _await(self, workers: int) -> list[float]:
        try:
            return [pipe.recv() for pipe in self._pipes[:workers]]
        except EOFError:
            raise KeiseiError("a worker of this benchmark died; its error is printed above") from None

    def _check(self, transport: str, answers: list[float]) -> None:
        """Checks that the weights really arrived."""
        expected = _last_weight(self.model)
        tolerance = {"half": 1e-2, "": np.inf}.get(transport, 0.0)
        if any(abs(answer - expected) > tolerance for answer in answers):
            raise KeiseiError(f"{transport}: workers have {answers}, the learner has {expected}")


@contextmanager
def _crew(size: str) -> Iterator[Crew]:
    crew = Crew(size)
    try:
        yield crew
    finally:
        crew.close()


def _last_weight(model: nn.Module) -> float:
    return float(list(model.parameters())[-1].detach()[-1])


def _work(size: str, readers: dict[str, WeightReader], queue: Any, pipe: Connection) -> None:
    """A worker: it takes weights when told to, or works until new ones come, and ends with the learner."""
    torch.set_num_threads(1)
    # A model for each transport, since a reader moves its model's tensors into its own memory.
    models = {transport: _model(size) for transport in ("queue", *readers, "")}
    pipe.send(0.0)
    while True:
        try:
            task, transport = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        model, reader = models[transport], readers.get(transport)
        if task == "take":
            _take(model, reader, queue)
            pipe.send(_last_weight(model))
        else:
            _work_until_it_comes(model, reader, queue if transport == "queue" else None, pipe)


def _take(model: nn.Module, reader: WeightReader | None, queue: Any) -> None:
    if reader is not None:
        reader.read_into(model)
    elif queue is not None:
        model.load_state_dict({name: torch.from_numpy(array) for name, array in queue.get().items()})


def _work_until_it_comes(model: nn.Module, reader: WeightReader | None, queue: Any, pipe: Connection) -> None:
    """Counts steps. Reports when the weights have arrived, then the longest pause between two steps."""
    matrix = np.full((64, 64), 0.5, np.float32)
    known = reader.version if reader else 0
    pipe.send(0.0)
    last = time.perf_counter()
    longest, end = 0.0, np.inf
    while last < end:
        matrix @ matrix
        arrived = reader.version != known if reader else queue is None or not queue.empty()
        if arrived and end == np.inf:
            _take(model, reader, queue)
            pipe.send(_last_weight(model))
            end = time.perf_counter() + SETTLE
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    pipe.send(longest)


def _show(report: WeightsReport, console: Console) -> None:
    names = [*TRANSPORTS, LIMIT]
    table = Table(title="New weights in all workers, which wait for them: milliseconds", title_justify="left")
    for heading in ("parameters", "workers", *names, "queue / keisei", "keisei / memcpy"):
        table.add_column(heading, justify="right")
    for row in report.waiting:
        ours, queue, limit = (row.milliseconds[name] for name in ("keisei", "queue", LIMIT))
        figures = (f"{row.milliseconds[name]:,.1f}" for name in names)
        table.add_row(
            row.parameters, str(row.workers), *figures, f"{queue / ours:.1f} x", f"{ours / limit:.1f} x"
        )
    console.print(table)
    table = Table(title="The same while they work: milliseconds", title_justify="left")
    for heading in ("parameters", "workers", "transport", "all have them after", "longest pause"):
        table.add_column(heading, justify="left" if heading == "transport" else "right")
    for pause in report.working:
        until = f"{pause.milliseconds:,.1f}" if pause.transport in TRANSPORTS else "-"
        table.add_row(
            pause.parameters, str(pause.workers), pause.transport, until, f"{pause.longest_pause:,.1f}"
        )
    console.print(table)
    for size, sizes in report.compression.items():
        console.print(
            f"{size}: {sizes.plain_bytes / 1e6:.1f} MB; half {sizes.half_bytes / 1e6:.1f} MB "
            f"(error up to {sizes.half_max_absolute_error:.1g}); lossless {sizes.lossless_bytes / 1e6:.1f} MB"
        )
    console.print(report.machine)
