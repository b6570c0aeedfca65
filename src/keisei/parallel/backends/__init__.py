"""Placements of workers, behind one contract."""

from __future__ import annotations

from typing import Literal

from keisei.parallel.backends.check import check_backend
from keisei.parallel.backends.contract import Backend, WorkerHandle
from keisei.parallel.backends.inline import InlineBackend
from keisei.parallel.backends.process import ProcessBackend
from keisei.parallel.backends.thread import ThreadBackend

__all__ = ["Backend", "WorkerHandle", "check_backend", "make_backend"]


def make_backend(
    placement: Literal["inline", "thread", "process"],
    start_method: Literal["auto", "forkserver", "spawn"] = "auto",
) -> Backend:
    if placement == "inline":
        return InlineBackend()
    if placement == "thread":
        return ThreadBackend()
    return ProcessBackend(start_method)
