"""Policies run on one thread each, in every backend: cores are shared out by workers, and sums of floats
come out the same wherever they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Keep torch to so many threads for a while; the learner gets its own number back afterwards."""
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
    """For the rest of this thread's life. At its first use of torch, a thread takes the number that any thread has set
    last; so that comes first here."""
    torch.get_num_threads()
    torch.set_num_threads(1)


def single_threaded() -> AbstractContextManager[None]:
    """As a worker runs."""
    return torch_threads(1)
