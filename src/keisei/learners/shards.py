"""A minibatch on several cores: each thread takes a part of the rows from positions to gradients.

Torch's own threads share out every single operation, and wait for each other after each: some sixty times a
minibatch for a small network. Where a core has other work for a moment, all of them wait, and learning took ten times
as long on a machine with one busy process beside it. Here threads meet once a minibatch. Gradients are added up in
the order of the parts, so the bits depend on the number of parts and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor

from keisei.experience.rollout import Minibatch

__all__ = ["Shards", "added", "split"]

Result = TypeVar("Result")


class Shards:
    """So many threads, each of which runs torch on one core. One of them is the caller's own."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[Minibatch], Result], parts: Sequence[Minibatch]) -> list[Result]:
        """Do the work for all parts at once; results are in their order, and an error is raised here."""
        if len(parts) == 1:
            return [work(parts[0])]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self.threads - 1, "learner", initializer=torch.set_num_threads, initargs=(1,)
            )
        others = [self._pool.submit(work, part) for part in parts[1:]]
        try:
            first = work(parts[0])
        finally:
            results = [other.exception() or other for other in others]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [first, *(other.result() for other in others)]


def split(batch: Minibatch, parts: int) -> list[Minibatch]:
    """Parts of equal size, or nearly, as views; fewer where there are not enough rows."""
    parts = max(1, min(parts, len(batch)))
    bounds = [len(batch) * number // parts for number in range(parts + 1)]
    return [
        Minibatch(*(getattr(batch, name)[start:end] for name in Minibatch.__slots__))
        for start, end in pairwise(bounds)
    ]


def added(gradients: Sequence[Sequence[Tensor | None]]) -> list[Tensor | None]:
    """For each parameter the sum over all parts, in their order; None where no part has any."""
    sums = list(gradients[0])
    for part in gradients[1:]:
        for index, gradient in enumerate(part):
            total = sums[index]
            sums[index] = gradient if total is None else total if gradient is None else total.add_(gradient)
    return sums
