"""There is always a whole checkpoint, and the newest one is found: full disks, kill -9, and what is kept."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints_for_tests import checkpoint, content, leftovers, updates

from keisei.errors import CheckpointError, CheckpointWriteError, ForeignFileError
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import load_checkpoint

PRELUDE = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from checkpoints_for_tests import *\n"
)

# Which are kept


def test_the_last_ones_milestones_and_the_best_are_kept(tmp_path: Path) -> None:
    store = CheckpointArchive(tmp_path, keep=2, milestone_every=5)
    for update in range(1, 14):
        path = store.save(checkpoint(update))
        if update == 3:
            store.mark_best(path)
    assert updates(store) == [3, 5, 10, 12, 13]
    best = store.best()
    assert best is not None
    assert best.checkpoint.update == 3
    assert load_checkpoint(tmp_path / "latest").update == 13
    assert load_checkpoint(tmp_path / "best").update == 3
    store.mark_best(store.paths()[-1])
    store.save(checkpoint(14))
    assert updates(store) == [5, 10, 13, 14]
    assert leftovers(tmp_path) == []


def test_an_update_that_is_saved_twice_has_its_newer_state(tmp_path: Path) -> None:
    store = CheckpointArchive(tmp_path)
    store.save(checkpoint(4))
    store.save(checkpoint(4, config_digest="second"))
    store.save(checkpoint(4, config_digest="third"))
    found = store.latest()
    assert found is not None
    assert found.checkpoint.config_digest == "third"
    assert updates(store) == [4]


def test_rewinding_sets_the_future_aside(tmp_path: Path) -> None:
    store = CheckpointArchive(tmp_path, keep=3)
    for update in (1, 2, 3):
        path = store.save(checkpoint(update))
    store.mark_best(path)
    (path / "model.safetensors").write_bytes(b"rot")
    assert [p.name for p in store.rewind(1)] == ["set-aside-update-000000002", "set-aside-update-000000003"]
    assert updates(store) == [1]
    assert store.best() is None
    store.save(checkpoint(2, config_digest="again"))
    assert [p.name for p in store.rewind(1)] == ["set-aside-update-000000002.1"]
    assert load_checkpoint(tmp_path / "set-aside-update-000000002").config_digest == "c0ffee"


def test_a_checkpoint_of_the_past_is_not_removed_as_soon_as_it_is_saved(tmp_path: Path) -> None:
    store = CheckpointArchive(tmp_path, keep=1)
    store.save(checkpoint(9))
    assert store.save(checkpoint(2)).exists()


def test_leftovers_go_when_the_trainer_starts_but_not_for_a_reader(tmp_path: Path) -> None:
    CheckpointArchive(tmp_path).save(checkpoint(1))
    for name in (".partial-update-000000002", ".removed-update-000000000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".partial-best").symlink_to("nowhere")
    reader = CheckpointArchive(tmp_path, read_only=True)
    assert len(leftovers(tmp_path)) == 3
    assert updates(reader) == [1]
    with pytest.raises(CheckpointError, match="opened to read"):
        reader.save(checkpoint(2))
    CheckpointArchive(tmp_path)
    assert leftovers(tmp_path) == []


def test_bad_settings_and_strangers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="keep = 0"):
        CheckpointArchive(tmp_path, keep=0)
    with pytest.raises(CheckpointError, match="not a checkpoint in"):
        CheckpointArchive(tmp_path).mark_best(tmp_path / "update-000000009")


# Disk full


@pytest.mark.parametrize("failing", range(1, 7))  # four files, their directory, and the directory above
def test_a_full_disk_leaves_the_old_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    store = CheckpointArchive(tmp_path)
    store.save(checkpoint(1))
    fsync, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointWriteError, match=r"update-000000002 .*No space left on device.*make room"):
        store.save(checkpoint(2))
    assert leftovers(tmp_path) == []
    assert updates(store) == [1]
    store.save(checkpoint(2))  # there is room again
    found = store.latest()
    assert found is not None
    assert content(found.checkpoint) == content(checkpoint(2))


def test_a_checkpoint_counts_although_tidying_up_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointArchive(tmp_path)

    def full(link: Path, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("keisei.runs.archive.replace_link", full)
    path = store.save(checkpoint(1))
    assert "is saved, but tidying up after it failed" in caplog.text
    assert content(load_checkpoint(path)) == content(checkpoint(1))
    with pytest.raises(CheckpointWriteError, match="as best: No space left"):
        store.mark_best(path)


def test_a_file_limit_of_the_system_is_told(tmp_path: Path) -> None:
    """The kernel itself refuses to write the second file on, in a process of its own."""
    script = f"""{PRELUDE}
import resource
from keisei.errors import CheckpointWriteError
store = CheckpointArchive(Path({str(tmp_path)!r}))
store.save(checkpoint(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
big = {{"model": {{"a": torch.zeros(10)}}, "optimizer": {{"b": torch.zeros(5000)}}}}
try:
    store.save(checkpoint(2, tensors=big))
except CheckpointWriteError as error:
    print(error)
store.save(checkpoint(3))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "cannot write checkpoint" in done.stdout
    assert "File too large" in done.stdout
    assert updates(CheckpointArchive(tmp_path, read_only=True)) == [1, 3]
    assert leftovers(tmp_path) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# kill -9


def run_apart(call: str) -> int:
    """Children are forked from a process of its own, which has torch but no thread and no test runner."""
    done = subprocess.run([sys.executable, "-c", f"{PRELUDE}print({call})"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_kill_9_at_every_step_of_saving(tmp_path: Path) -> None:
    assert run_apart(f"killed_at_each_step(Path({str(tmp_path / 'checkpoints')!r}))") > 40


def test_kill_9_at_random_instants(tmp_path: Path) -> None:
    assert run_apart(f"killed_at_random_instants(Path({str(tmp_path / 'checkpoints')!r}), kills=30)") >= 29


def test_pointers_are_never_missing_while_they_move(tmp_path: Path) -> None:
    """Another process moves ``best`` to and fro; whoever looks always finds a whole checkpoint."""
    store = CheckpointArchive(tmp_path)
    paths = [store.save(checkpoint(update)) for update in (1, 2)]
    store.mark_best(paths[0])
    script = (
        f"{PRELUDE}store = CheckpointArchive(Path({str(tmp_path)!r}))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for path in store.paths(): store.mark_best(path)\n"
    )
    mover = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert mover.stdout is not None
        assert mover.stdout.readline() == b"ready\n"
        seen = set()
        for _ in range(300):
            best = CheckpointArchive(tmp_path, read_only=True).best()
            assert best is not None
            seen.add(best.checkpoint.update)
    finally:
        mover.kill()
        mover.communicate()
    assert seen == {1, 2}


def test_links_to_checkpoints_elsewhere_are_not_followed(tmp_path: Path) -> None:
    elsewhere = CheckpointArchive(tmp_path / "elsewhere")
    path = elsewhere.save(checkpoint(update=7))
    own = CheckpointArchive(tmp_path / "own")
    own.save(checkpoint(update=1))
    (tmp_path / "own" / path.name).symlink_to(path)
    assert [found.name for found in own.paths()] == ["update-000000001"]
    (tmp_path / "linked").symlink_to(elsewhere.directory)
    with pytest.raises(ForeignFileError, match="is a link"):
        CheckpointArchive(tmp_path / "linked", read_only=True).latest()
