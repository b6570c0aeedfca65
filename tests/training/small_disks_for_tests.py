"""Starts of a run on disks that are too small for it, and what is left there.

As a program, it takes an empty folder, what to do with an old run (``resume`` if there is none), and options of tmpfs
such as ``size=20k``. It mounts each such disk in its own namespace, and prints the stories as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from training_for_tests import TINY, checkpoints
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.runs.directory import RunDirectory

OLD = {"env": {"game": "tictactoe"}, "run": {"seed": 77}}


@dataclass(frozen=True)
class Start:
    """What came of one start."""

    disk: str
    code: int
    message: str
    before: list[str]
    """All files that were there."""
    after: list[str]
    saved: list[int]
    """Checkpoints of the run."""
    listed: list[dict[str, Any]]
    """The runs, as ``keisei runs --json`` shows them."""
    seed: int | None
    """Of the run that has the name now; 77 for the old one."""


def start(root: Path, settings: Path, existing: str, disk: str) -> Start:
    runs, run = root / "runs", RunDirectory(root / "runs" / "tiny")
    if existing != "resume":
        RunDirectory.create(runs, "tiny", OLD)
    before = _files(root)
    choice = [] if existing == "resume" else [f"--{existing}"]
    done = CliRunner().invoke(app, ["train", str(settings), "--root", str(runs), *choice])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    listed = json.loads(CliRunner().invoke(app, ["runs", "--root", str(runs), "--json"]).stdout)
    seed = run.config()["run"]["seed"] if run.path.exists() else None
    saved = checkpoints(run) if run.path.exists() else []
    return Start(disk, done.exit_code, done.stderr, before, _files(root), saved, listed, seed)


@contextmanager
def mounted(root: Path, options: str) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(root)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(root)], check=True)


def main(root: Path, existing: str, disks: list[str]) -> Iterator[Start]:
    settings = root.parent / "tiny.yaml"
    settings.write_text(yaml.safe_dump(dict(TINY)))
    for disk in disks:
        with mounted(root, disk):
            yield start(root, settings, existing, disk)


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


if __name__ == "__main__":
    told = [asdict(found) for found in main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])]
    sys.stdout.write(json.dumps(told))
