"""Limits the threads of torch. Policies run on one thread each, in every backend: workers share the cores, and sums
of floats are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Limits torch to this many threads inside the ``with``, and restores the old number afterwards."""
    threads = torch.get_num_threads()
    if threads == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def stay_on_one_thread() -> None:
    """Keeps this thread on one torch thread until it ends. At its first use of torch, a thread takes the number
    that any thread has set last, so torch is used once first."""
    torch.get_num_threads()
    torch.set_num_threads(1)


def single_threaded() -> AbstractContextManager[None]:
    """Runs torch on one thread, as a worker does."""
    return torch_threads(1)
