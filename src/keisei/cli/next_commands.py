"""What to type when a run has ended: to play against it, to watch it, and to go on."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from keisei.games.contract import GameSpec
from keisei.runs.directory import RunDirectory
from keisei.training.settings import RunSettings

__all__ = ["next_commands"]

_USUAL_ROOT = Path("runs")


def next_commands(run: RunDirectory, spec: GameSpec, length: RunSettings, *, ended: bool) -> Iterator[str]:
    """Yields a line for each command. ``ended`` is True for a run that has reached its length, False for an interrupted
    one."""
    program, path = _program(), shlex.quote(str(run.path))
    if spec.seats > 1 and not spec.simultaneous:
        yield f"Play against it: {program} play {path}"
    else:
        yield f"See how it does: {program} evaluate {path}"
    root = "" if run.root == _USUAL_ROOT else f" --root {shlex.quote(str(run.root))}"
    yield f"Watch it:        {program} serve{root}"
    if ended:
        yield f"Go on:           {program} train {path} {_longer(length)}"
    else:
        yield f"Continue it: {program} train {path}"


def _longer(length: RunSettings) -> str:
    """Writes the option for twice the length. Lengths count from the beginning of a run."""
    if length.steps is not None:
        return f"--steps {2 * length.steps}"
    if length.minutes is not None:
        return f"--minutes {2 * length.minutes:g}"
    return f"--set run.episodes={2 * (length.episodes or 1)}"


def _program() -> str:
    """Finds the command as it was typed, such as ``.venv/bin/keisei``, if the shell would not find it by its name."""
    called = Path(sys.argv[0])
    if called.name != "keisei" or not called.is_file():
        return "keisei"
    found = shutil.which(called.name)
    if found is not None and os.path.samefile(found, called):
        return "keisei"
    return shlex.quote(os.path.relpath(called) if called.is_relative_to(Path.cwd()) else str(called))
