"""A disk that is full to the very end: one clean line, the right state, and a run that continues when there is room."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk_for_tests import Story, story
from training_for_tests import checkpoints, curves, train

from keisei.runs.directory import RunDirectory

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(tmp_path_factory.mktemp("undisturbed")).digest


def check(told: Story, run: Path, digest: str) -> None:
    code, message = told.trained
    (error,) = [line for line in message.splitlines() if line.startswith("error: ")]
    assert code == 2
    assert "Traceback" not in message
    assert error.startswith(
        f"error: the end of run {run} is lost, since its last checkpoint cannot be written ("
    )
    assert error.endswith(
        f"update 1 is the last that is safe. Make room on the disk and continue: keisei train {run}"
    )
    assert message.rstrip().endswith(error), "it is the last line"
    assert told.saved == [0, 1]
    code, message = told.tried_again
    assert code == 2
    assert message.startswith((f"error: cannot write to {run}", f"error: {run}/run.db: "))
    assert re.search(r"[Ww]hat was (saved|written) before is whole", message)
    assert len(message.splitlines()) == 1
    code, message = told.resumed
    assert code == 0, message
    assert "resumed from update 1" in message
    assert told.digest == digest


def test_a_disk_on_which_nothing_can_be_written(tmp_path: Path, expected: str) -> None:
    """The system lets no file grow, not even the log, the database and the state."""

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    told = story(tmp_path, lambda: limit(0), lambda: limit(resource.RLIM_INFINITY))
    run = RunDirectory.open(tmp_path / "tiny")
    check(told, run.path, expected)
    assert told.listed["state"] == "interrupted", "its state says running, and nobody holds its lock"
    assert curves(run) == curves(train(tmp_path, name="undisturbed").run)
    assert checkpoints(run)[-1] == 4
    assert [path.name for path in run.path.rglob(".partial*")] == []


def can_mount() -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="here nobody may mount a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path, expected: str) -> None:
    """A disk of 3 MB in a mount namespace of its own. The state has its room from the start of the run."""
    mount = 'mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" "$3" "$1"'
    program = [sys.executable, str(HERE / "full_disk_for_tests.py")]
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), *program]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": "/tmp"})
    assert done.returncode == 0, done.stderr
    told = Story(**json.loads(done.stdout))
    check(told, tmp_path / "tiny", expected)
    assert told.listed["state"] == "failed"
    assert "No space left on device" in told.listed["detail"]
