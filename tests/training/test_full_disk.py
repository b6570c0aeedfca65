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
from small_disks_for_tests import Start
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


# Disks that are too small for the start of a run

DISKS = (*(f"size={kilobytes}k" for kilobytes in range(4, 181, 4)), *(f"nr_inodes={n}" for n in range(2, 33)))
WITH_AN_OLD_RUN = (*(f"size={n}k" for n in range(12, 181, 12)), *(f"nr_inodes={n}" for n in range(9, 40, 3)))
"""With the largest, a run has saved its first checkpoint."""


@pytest.mark.skipif(not can_mount(), reason="here nobody may mount a small disk")
@pytest.mark.parametrize(
    "existing", ["resume", *(pytest.param(way, marks=pytest.mark.slow) for way in ("restart", "overwrite"))]
)
def test_a_start_on_a_full_disk_leaves_nothing_or_says_what_is_missing(tmp_path: Path, existing: str) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    disks = DISKS if existing == "resume" else WITH_AN_OLD_RUN
    program = [sys.executable, str(HERE / "small_disks_for_tests.py"), str(root), existing, *disks]
    done = subprocess.run(["unshare", "-rm", *program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    starts = [Start(**told) for told in json.loads(done.stdout)]
    for found in starts:
        check_start(found, existing)
    undone = sum(found.after == found.before for found in starts)
    unsaved = sum(found.after != found.before and not found.saved for found in starts)
    saved = sum(bool(found.saved) for found in starts)
    assert undone > len(disks) / 4
    assert unsaved >= (3 if existing == "resume" else 1)
    assert saved >= 3


def check_start(found: Start, existing: str) -> None:
    error = found.message.splitlines()[-1]
    assert found.code == 2, found
    assert error.startswith("error: "), found
    assert "No such file" not in error, found
    assert not any(path.startswith(("runs/.removed", "runs/.partial")) for path in found.after), found
    if found.after == found.before:
        assert found.seed == (None if existing == "resume" else 77)
        return
    assert found.seed == 0
    (listed,) = [run for run in found.listed if run["name"] == "tiny"]
    assert listed["state"] == "failed", found
    safe = f"update {found.saved[-1]} is the last that is safe" if found.saved else "no update is safe"
    assert safe in error, found
    assert safe in listed["detail"], found
    others = [run["name"] for run in found.listed if run["name"] != "tiny"]
    assert others == (["tiny.1"] if existing == "restart" else [])
