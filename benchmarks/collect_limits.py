"""The limits of this machine: bare loops that do a part of the work and nothing else.

The **inference limit** is the network alone, on positions that never change, in as many processes as there
are workers. The **shared-memory limit** is the games alone: processes step them, copy their rows into shared
slots, and pass a slot's number through a pipe to a parent that touches every row.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch

from benchmarks.measure import rate_of
from keisei.errors import KeiseiError
from keisei.games import Game, make_game
from keisei.machine.shared_memory import SharedBlock
from keisei.machine.start_method import chosen_start_method
from keisei.parallel.backends.process import PRELOAD
from keisei.policies.networks import ModelConfig, build_network
from keisei.policies.sampling import sample

OPENING = 40
"""Random plies before positions are taken, so that they differ from the start position."""
SLOTS = 2
"""Slots of each process: one in use, one at the parent; as many as our workers have slabs here."""
_SLOT = struct.Struct("<i")


def context() -> Any:
    """Starts processes like workers: forked from a server that has imported all large modules."""
    found = multiprocessing.get_context(chosen_start_method())
    found.set_forkserver_preload(PRELOAD)
    return found


class Children:
    """Processes with a pipe each. A process ends when its pipe is closed."""

    def __init__(
        self, target: Callable[..., None], arguments: list[tuple[object, ...]], daemon: bool = True
    ) -> None:
        self._context = context()
        self.pipes: list[Connection] = []
        self._processes: list[Any] = []
        for given in arguments:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=target, args=(*given, theirs), daemon=daemon)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self._processes.append(process)

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self._processes:
            process.join(10)
            process.kill()
            process.join(10)


@dataclass(frozen=True)
class Forward:
    """Runs a network on a batch of positions, with or without sampling legal actions."""

    game: str
    games: int
    model: ModelConfig
    sampling: bool

    def build(self) -> Callable[[], int]:
        game = make_game(self.game, batch=self.games, seed=1)
        for _ in range(OPENING):
            game.step(game.random_actions())
        observations, legal = torch.from_numpy(game.observe()), game.legal()
        network = build_network(self.model, game.spec, seed=1).eval()
        uniforms = np.linspace(0, 1, self.games, endpoint=False)

        def work() -> int:
            with torch.inference_mode():
                logits, _ = network(observations)
            if self.sampling:
                sample(logits, legal, uniforms)
            return self.games

        return work


class InferenceLimit:
    """Positions per second of one loop in each of several processes, with one thread each, like workers."""

    def __init__(self, loop: Forward, workers: int) -> None:
        self._children = Children(_loop, [(loop,)] * workers)
        self.close = self._children.close

    def __call__(self, seconds: float) -> float:
        for pipe in self._children.pipes:
            pipe.send(seconds)
        try:
            return float(sum(pipe.recv() for pipe in self._children.pipes))
        except EOFError:
            raise KeiseiError("a process of this benchmark died; its error is printed above") from None


def _loop(loop: Forward, pipe: Connection) -> None:
    torch.set_num_threads(1)
    work = loop.build()
    while True:
        try:
            seconds = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        pipe.send(rate_of(work, seconds))


class SharedMemoryLimit:
    """Rows per second through shared slots: the same games with random moves, without any bookkeeping."""

    def __init__(self, game: str, games: int, steps: int, workers: int) -> None:
        packed = make_game(game, batch=1, seed=1).spec.packed_bytes
        self._rows = steps * games
        self._blocks = [SharedBlock(SLOTS * self._rows * packed) for _ in range(workers)]
        self._slots = [block.array(np.uint8, (SLOTS, self._rows, packed)) for block in self._blocks]
        self._children = Children(_write_rows, [(game, games, steps, block) for block in self._blocks])

    def __call__(self, seconds: float) -> float:
        pipes = self._children.pipes
        tally = Arrivals(len(pipes))
        for pipe in pipes:
            for slot in range(SLOTS):
                pipe.send_bytes(_SLOT.pack(slot))
        travelling = SLOTS * len(pipes)
        while travelling:
            for ready in wait(pipes):
                worker = pipes.index(ready)  # type: ignore[arg-type]
                slot = self._receive(pipes[worker])
                self._slots[worker][slot, :, 0].sum()
                if tally.elapsed < seconds or not tally.complete:
                    tally.count(worker, self._rows)
                    pipes[worker].send_bytes(_SLOT.pack(slot))
                else:
                    travelling -= 1
        return tally.rate

    def _receive(self, pipe: Connection) -> int:
        try:
            return int(_SLOT.unpack(pipe.recv_bytes())[0])
        except EOFError:
            raise KeiseiError("a process of this benchmark died; its error is printed above") from None

    def close(self) -> None:
        self._children.close()


def _write_rows(name: str, games: int, steps: int, block: SharedBlock, pipe: Connection) -> None:
    game: Game = make_game(name, batch=games, seed=1)
    slots = block.array(np.uint8, (SLOTS, steps, games, game.spec.packed_bytes))
    while True:
        try:
            slot = _SLOT.unpack(pipe.recv_bytes())[0]
        except (EOFError, ConnectionResetError):
            return
        for step in range(steps):
            game.pack(out=slots[slot, step])
            game.step(game.random_actions())
        pipe.send_bytes(_SLOT.pack(slot))


class Arrivals:
    """Counts what arrives from each worker, and when the last piece arrived.

    Workers send large pieces. If the clock stopped between two pieces, it would cut off one worker and not another.
    So each worker's rate is measured up to its own last piece.
    """

    def __init__(self, workers: int) -> None:
        self._transitions = [0] * workers
        self._last = [0.0] * workers
        self._started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    def count(self, worker: int, transitions: int) -> None:
        self._transitions[worker] += transitions
        self._last[worker] = self.elapsed

    @property
    def complete(self) -> bool:
        """Whether every worker has sent something."""
        return all(self._transitions)

    @property
    def worker_seconds(self) -> float:
        """Gives the rate of all workers together, up to the last piece of each."""
        return sum(self._last)

    @property
    def rate(self) -> float:
        return sum(count / last for count, last in zip(self._transitions, self._last, strict=True) if count)
