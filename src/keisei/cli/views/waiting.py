"""Says on a terminal what a command waits for: torch takes seconds to import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

import typer


class _TorchNotice(MetaPathFinder):
    """A finder of modules that finds none. It prints a line when torch is about to be imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch":
            be_silent()
            if sys.stderr.isatty():
                typer.echo("loading torch …", err=True)


@contextmanager
def torch_announced() -> Iterator[None]:
    """Prints a line when code inside the block imports torch, but not into a pipe."""
    sys.meta_path.insert(0, _TorchNotice())
    try:
        yield
    finally:
        be_silent()


def be_silent() -> None:
    """Prints no line after all, as ``--quiet`` asks."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _TorchNotice)]
