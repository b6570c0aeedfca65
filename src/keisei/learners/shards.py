"""A minibatch on several cores: each thread computes the gradients of some parts of the rows.

Torch's own threads split every operation and wait for each other after each: some sixty times a minibatch for a
small network. If one core is busy for a moment, all of them wait. With one busy process beside it, learning took
ten times as long. Here threads meet once a minibatch. Each runs torch on one core, and gradients are added in the
order of the parts. So the bits depend on the number of parts, not on the threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import fields
from itertools import pairwise
from typing import TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from keisei.experience.replayed import ReplaySample
from keisei.experience.rollout import Minibatch
from keisei.machine.torch_threads import single_threaded, stay_on_one_thread

__all__ = ["Shards", "added", "descend", "split"]

Result = TypeVar("Result")
Batch = TypeVar("Batch", Minibatch, ReplaySample)
"""Rows as a dataclass of columns."""


class Shards:
    """A pool of threads, each of which runs torch on one core. One of them is the caller's own."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[Batch], Result], parts: Sequence[Batch]) -> list[Result]:
        """Does the work for all parts. Results are in their order, and errors are raised here. Each thread takes
        the next part when it is done, so a busy core delays only its own part."""
        waiting = deque(enumerate(parts))
        results: dict[int, Result] = {}

        def take_parts() -> None:
            while waiting:
                try:
                    number, part = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                results[number] = work(part)

        others = [self._threads().submit(take_parts) for _ in range(min(self.threads, len(parts)) - 1)]
        try:
            with single_threaded():
                take_parts()
        finally:
            waiting.clear()
            wait(others)
        for other in others:
            other.result()
        return [results[number] for number in range(len(parts))]

    def _threads(self) -> ThreadPoolExecutor:
        """Gets the threads besides the caller's. They are started when they are first needed."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, "learner", initializer=stay_on_one_thread)
        return self._pool


def split(batch: Batch, parts: int) -> list[Batch]:
    """Splits a batch into parts of nearly equal size, as views; fewer if there are not enough rows."""
    parts = max(1, min(parts, len(batch)))
    bounds = [len(batch) * number // parts for number in range(parts + 1)]
    return [
        type(batch)(*(getattr(batch, column.name)[start:end] for column in fields(batch)))
        for start, end in pairwise(bounds)
    ]


def added(gradients: Sequence[Sequence[Tensor | None]]) -> list[Tensor | None]:
    """Adds the gradients of all parts in their order, for each parameter; None if no part has any. Nothing is added
    in place, since two parameters may share one gradient."""
    sums = list(gradients[0])
    for part in gradients[1:]:
        for index, gradient in enumerate(part):
            total = sums[index]
            sums[index] = gradient if total is None else total if gradient is None else total + gradient
    return sums


def descend(
    optimizer: Optimizer,
    parameters: Sequence[nn.Parameter],
    gradients: Sequence[Tensor | None],
    max_norm: float,
) -> None:
    """Makes one step of the optimiser with these gradients, scaled down to a norm."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        # Convolutions may give gradients in another memory format, which a fused Adam would misread.
        parameter.grad = None if gradient is None else gradient.contiguous()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()
