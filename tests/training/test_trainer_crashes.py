"""kill -9 at any instant, and a disk that refuses: the run goes on, and comes to the same weights."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from training_for_tests import After, Recorder, checkpoints, curves, train

from keisei.training import checkpointer
from keisei.training.callbacks import Callback
from keisei.training.checkpoint_store import CheckpointStore
from keisei.training.events import Saved
from keisei.training.run_directory import RunDirectory, RunState
from keisei.training.run_log import read_log

HERE = Path(__file__).parent

# kill -9


def killed(root: Path, kills: int, *settings: str) -> tuple[int, set[int], set[str]]:
    """How many trainers were killed, after which updates, and the digests of their runs at the end. They are forked
    from a process of its own, which has torch but no thread and no test runner."""
    root.mkdir()
    script = (
        f"import json, sys; sys.path.insert(0, {str(HERE)!r})\n"
        "from crashes_for_tests import *\n"
        f"killer = Killer(Path({str(root)!r}), *{settings!r})\n"
        f"killer.kill({kills})\n"
        "print(json.dumps([killer.kills, list(killer.seen), list(killer.digests)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, seen, digests = json.loads(done.stdout)
    return count, set(seen), set(digests)


SETTINGS = ("run.steps=5120", "evaluation={every: 1280, opponents: [random], games: 2}")


def test_kill_9_at_50_instants(tmp_path: Path) -> None:
    kills, seen, digests = killed(tmp_path / "killed", 50, *SETTINGS)
    undisturbed = train(tmp_path, *SETTINGS)
    assert kills == 50
    assert len(seen) > 10
    assert digests == {undisturbed.digest}
    for path in (tmp_path / "killed").iterdir():
        run = RunDirectory.open(path)
        assert run.status().state is RunState.FINISHED
        assert checkpoints(run) == checkpoints(undisturbed.run)
        assert [name for name in os.listdir(run.checkpoints) if name.startswith(".")] == []
        assert curves(run) == curves(undisturbed.run)  # each update once, and no update twice
        assert all("time" in line for line in read_log(run.log))


@pytest.mark.slow
def test_kill_9_of_trainers_with_worker_processes(tmp_path: Path) -> None:
    """Each new trainer takes seconds to start its workers, so there are fewer kills."""
    settings = (*SETTINGS, "parallel.backend=process")
    kills, seen, digests = killed(tmp_path / "killed", 12, *settings)
    assert kills == 12
    assert len(seen) > 5
    assert digests == {train(tmp_path, *SETTINGS).digest}
