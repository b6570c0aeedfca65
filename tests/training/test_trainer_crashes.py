"""After kill -9 at any moment, or a full disk, the run continues and ends with the same weights."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from logs_for_tests import read_log
from training_for_tests import Recorder, checkpoints, curves, train

from keisei.errors import CheckpointWriteError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory, RunState
from keisei.training import autosave
from keisei.training.callbacks import Callback
from keisei.training.events import Update

HERE = Path(__file__).parent

# kill -9


def killed(root: Path, kills: int, *settings: str) -> tuple[int, set[int], set[str]]:
    """How many trainers were killed, after which updates, and the digests of their runs at the end. They are forked
    from a process of its own, which has torch but no thread and no test runner."""
    root.mkdir()
    script = (
        f"import json, sys; sys.path[:0] = {[str(HERE), str(HERE.parent / 'runs')]!r}\n"
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


# A disk that refuses


class FullFor(Callback):
    """From the end of one update to the end of another, the system lets no file grow beyond a limit that only the
    files of a checkpoint exceed."""

    LIMIT = 600_000

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last

    def on_update(self, update: Update) -> None:
        if update.counters.update == self._first:
            self.fill()
        elif update.counters.update == self._last:
            self.empty()

    def fill(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.LIMIT, resource.RLIM_INFINITY))

    def empty(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


LARGE = ("model.hidden_dim=400", "model.num_layers=2")
"""Weights of 0.7 MB."""


def test_training_outlives_a_full_disk(tmp_path: Path) -> None:
    recorder, disk = Recorder(), FullFor(2, 4)
    try:
        result = train(tmp_path, *LARGE, "run.steps=1280", callbacks=[disk, recorder])
    finally:
        disk.empty()
    assert result.outcome == "finished"
    assert [(saved.update, saved.path is not None) for saved in recorder.saved] == [
        (0, True), (1, True), (2, False), (3, False), (4, True), (5, True),
    ]  # fmt: skip
    for saved in recorder.saved[2:4]:
        assert "File too large. Earlier checkpoints are whole; make room on the disk" in saved.problem
        assert ("warning", saved.problem) in recorder.notes
    assert checkpoints(result.run)[-2:] == [4, 5]
    assert [name for name in os.listdir(result.run.checkpoints) if name.startswith(".")] == []
    assert train(tmp_path, *LARGE, "run.steps=1280", name="undisturbed").digest == result.digest


def test_a_run_that_ends_on_a_full_disk_goes_on_from_the_last_whole_checkpoint(tmp_path: Path) -> None:
    disk = FullFor(3, -1)
    try:
        with pytest.raises(
            CheckpointWriteError, match=r"File too large\); update 2 is the last that is safe"
        ):
            train(tmp_path, *LARGE, callbacks=[disk])
    finally:
        disk.empty()
    run = RunDirectory.open(tmp_path / "run")
    assert checkpoints(run) == [0, 1, 2]
    assert run.status().state is RunState.FAILED
    recorder = Recorder()
    again = train(tmp_path, *LARGE, callbacks=[recorder])
    assert recorder.started[0].counters.update == 2
    assert again.digest == train(tmp_path, *LARGE, name="undisturbed").digest


def test_a_checkpoint_that_failed_is_tried_again_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autosave, "RETRY_SECONDS", 0.0)
    recorder, disk = Recorder(), FullFor(3, 4)
    settings = (*LARGE, "run.checkpoint_every=3", "run.checkpoint_minutes=1000", "run.steps=1536")
    try:
        train(tmp_path, *settings, callbacks=[disk, recorder])
    finally:
        disk.empty()
    assert [(saved.update, bool(saved.problem)) for saved in recorder.saved] == [
        (0, False), (3, True), (4, False), (6, False),
    ]  # fmt: skip


def test_a_best_that_can_not_be_marked_does_not_stop_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(link: Path, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("keisei.runs.archive.replace_link", full)
    recorder = Recorder()
    result = train(tmp_path, "evaluation={every: 512, games: 2, opponents: [random]}", callbacks=[recorder])
    assert result.outcome == "finished"
    assert [evaluation.is_best for evaluation in recorder.evaluations] == [False, False]
    assert any("as best: No space left" in message for _, message in recorder.notes)
    assert CheckpointArchive(result.run.checkpoints, read_only=True).best() is None
