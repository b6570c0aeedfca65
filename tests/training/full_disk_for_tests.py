"""A run on a disk that is full from the second update on, and what the commands say about it.

As a program, it takes a folder on a small disk, fills that disk, and prints the story as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from training_for_tests import TINY, checkpoints
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.cli.views.plain_view import PlainView
from keisei.runs.directory import RunDirectory
from keisei.training.events import Update

FULL_AFTER = 2


@dataclass(frozen=True)
class Story:
    """Exit code and messages of commands."""

    trained: tuple[int, str]
    """Training on a disk that becomes full."""
    saved: list[int]
    """The updates that were saved by then."""
    listed: Mapping[str, Any]
    """The run, as ``keisei runs --json`` shows it."""
    tried_again: tuple[int, str]
    """Training while the disk is still full."""
    resumed: tuple[int, str]
    """Training when there is room again."""
    digest: str
    """Of the final weights."""


def story(root: Path, fill: Callable[[], None], empty: Callable[[], None]) -> Story:
    settings = root / "tiny.yaml"
    settings.write_text(yaml.safe_dump(dict(TINY)))
    command = ["train", str(settings), "--root", str(root), "--deterministic-digest"]
    on_update = PlainView.on_update

    def fill_after(view: PlainView, update: Update) -> None:
        on_update(view, update)
        if update.counters.update == FULL_AFTER:
            fill()

    try:
        with patch.object(PlainView, "on_update", fill_after):
            trained = _told(_invoke(*command))
        (listed,) = json.loads(_invoke("runs", "--root", str(root), "--json").stdout)
        saved = checkpoints(RunDirectory(root / "tiny"))
        tried_again = _told(_invoke(*command))
    finally:
        empty()
    resumed = _invoke(*command)
    return Story(trained, saved, listed, tried_again, _told(resumed), resumed.stdout.strip())


def _invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def _told(result: Result) -> tuple[int, str]:
    return result.exit_code, result.stderr


def _fill(path: Path) -> None:
    with open(path, "ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


if __name__ == "__main__":
    filler = Path(sys.argv[1]) / "filler"
    sys.stdout.write(json.dumps(asdict(story(filler.parent, lambda: _fill(filler), filler.unlink))))
