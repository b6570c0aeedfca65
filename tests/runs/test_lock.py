"""One trainer at a time: who holds a run, and when it is free again."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from keisei.errors import ForeignFileError, RunError, RunLockedError
from keisei.runs.directory import NewRun, RunDirectory, RunState
from keisei.runs.lock import FLOCK, Owner, RunLock, lock_owner


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "runs", "first", {"learner": {"clip": None}})


HOLDER = """
import sys, time
from pathlib import Path
from keisei.runs.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_lock_of_another_process_holds_until_it_is_killed(run: RunDirectory) -> None:
    process = holder(run.path / "lock")
    try:
        with pytest.raises(RunLockedError, match=rf"trained by process {process.pid} on .*another --name"):
            run.lock()
        assert run.status().state is RunState.RUNNING
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        # Not waited for yet: a zombie still has its number, but trains nothing.
        assert lock_owner(run.path / "lock") is None
        run.lock().release()
    finally:
        process.kill()
        process.communicate()


def test_a_process_cannot_hold_a_run_twice(run: RunDirectory) -> None:
    lock = run.lock()
    with pytest.raises(RunLockedError):
        run.lock()
    lock.release()
    lock.release()
    again = run.lock()
    lock.release()  # a lock of the past does not free the lock of today
    with pytest.raises(RunLockedError):
        run.lock()
    again.release()


def test_of_many_that_try_at_once_one_gets_a_stale_lock(run: RunDirectory) -> None:
    stale = replace(Owner.this_process(), started="1")
    (run.path / "lock").write_text(json.dumps(asdict(stale)))
    reader, writer = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            try:
                RunLock(run.path / "lock")
                os.write(writer, b"x")
                signal.pause()  # alive, so that its lock counts
            except RunLockedError:
                os.write(writer, b".")
            finally:
                os._exit(0)
        children.append(child)
    told = b"".join(os.read(reader, 1) for _ in range(8))
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert sorted(told) == sorted(b"x.......")


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({}, False),
        ({"started": "1"}, True),
        ({"boot": "another"}, True),
        ({"pid": 2**22 + 1}, True),
        ({"host": "elsewhere"}, False),
        ({"host": "elsewhere", "boot": "another"}, False),
        ({"namespace": "pid:[1]"}, False),
    ],
)
def test_who_is_certainly_gone(changes: dict[str, Any], gone: bool) -> None:
    assert replace(Owner.this_process(), **changes).is_gone() is gone


def test_a_lock_from_another_machine_tells_the_way_out(run: RunDirectory) -> None:
    elsewhere = replace(Owner.this_process(), host="elsewhere")
    (run.path / "lock").write_text(json.dumps(asdict(elsewhere)))
    with pytest.raises(RunLockedError, match=r"on elsewhere.*if it is gone, delete .*/lock"):
        run.lock()
    (run.path / "lock").unlink()
    run.lock().release()


def test_a_lock_that_was_cut_short_is_free(run: RunDirectory) -> None:
    (run.path / "lock").write_text('{"pid": 1')
    run.lock().release()
    assert (run.path / "lock").read_text() == ""


def test_the_child_of_a_trainer_does_not_free_the_run(run: RunDirectory) -> None:
    with run.lock() as lock:
        child = os.fork()
        if child == 0:
            lock.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(RunLockedError):
            run.lock()


# What the kernel holds

HOLDER_WITH_CHILD = HOLDER.replace(
    "time.sleep(600)",
    "child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(600)",
).replace("import sys", "import os, sys")


@pytest.mark.parametrize("program", [HOLDER, HOLDER_WITH_CHILD], ids=["alone", "with a child"])
def test_a_killed_trainer_is_followed_at_once(run: RunDirectory, program: str) -> None:
    """Its children may live for a while."""
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(run.path / "lock")], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        child = None if program is HOLDER else int(process.stdout.readline())
        process.kill()
        process.wait()
        try:
            run.lock().release()
            assert lock_owner(run.path / "lock") is None
        finally:
            process.stdout.close()
            if child is not None:
                os.kill(child, signal.SIGKILL)


def container(path: Path) -> subprocess.Popen[bytes]:
    """Starts a holder as process 1 or 2 of a namespace of its own, as a container does."""
    command = ["unshare", "-rpf", "--kill-child", "--mount-proc", sys.executable, "-c", HOLDER, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def can_have_containers() -> bool:
    command = ["unshare", "-rpf", "--kill-child", "--mount-proc", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_have_containers(), reason="here nobody may make a namespace")
def test_a_container_that_is_restarted_takes_the_lock_of_the_one_before(run: RunDirectory) -> None:
    for _ in range(3):
        first = container(run.path / "lock")
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        assert run.status().state is RunState.RUNNING
        second = container(run.path / "lock")
        _, refusal = second.communicate()
        assert b"is being trained by process 1 on" in refusal
        first.kill()
        first.communicate()


def test_a_process_that_is_started_does_not_inherit_the_lock(run: RunDirectory) -> None:
    with run.lock():
        other = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        run.lock().release()
    finally:
        other.kill()
        other.wait()


def held_as_if(run: RunDirectory, **changes: object) -> None:
    """Writes a lock that says somebody holds it."""
    owner = replace(Owner.this_process(), **changes)  # type: ignore[arg-type]
    (run.path / "lock").write_text(json.dumps(asdict(owner)))


@pytest.mark.parametrize(
    "changes",
    [{}, {"namespace": "pid:[1]"}, {"host": "the container before"}, {"boot": "another"}, {"started": "1"}],
)
def test_of_locks_that_the_kernel_holds_it_alone_decides(run: RunDirectory, changes: dict[str, str]) -> None:
    """A container that was restarted has another namespace, and perhaps another host name."""
    held_as_if(run, held=FLOCK, **changes)
    assert run.status().state is RunState.CREATED
    run.lock().release()


@pytest.mark.parametrize(
    "changes",
    [
        {"namespace": "pid:[1]"},  # it may be of an earlier version
        {"host": "elsewhere"},
        {"host": "elsewhere", "boot": "another", "held": FLOCK},
    ],
)
def test_where_nobody_can_tell_the_message_says_what_to_do(
    run: RunDirectory, changes: dict[str, str]
) -> None:
    held_as_if(run, **changes)
    text = (run.path / "lock").read_text()
    assert run.status().state is RunState.RUNNING
    with pytest.raises(
        RunLockedError, match=r"nobody can see whether that .* runs; if it is gone, delete .*/lock$"
    ):
        run.lock()
    assert (run.path / "lock").read_text() == text, "it is still theirs"
    (run.path / "lock").unlink()
    run.lock().release()


def test_a_trainer_of_an_earlier_version_is_respected_while_it_lives(run: RunDirectory) -> None:
    other = subprocess.Popen(["sleep", "600"])
    started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
    try:
        held_as_if(run, pid=other.pid, started=started)
        with pytest.raises(RunLockedError, match=f"process {other.pid} .*another --name$"):
            run.lock()
    finally:
        other.kill()
        other.wait()
    run.lock().release()


def test_those_who_look_do_not_keep_a_trainer_from_its_start(run: RunDirectory) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            lock_owner(run.path / "lock")

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with run.lock():
                owner = lock_owner(run.path / "lock")
                assert owner is not None
                assert owner.pid == os.getpid()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_lock_that_was_deleted_or_moved_meanwhile_is_not_taken(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two processes could hold the lock of a run, each another file."""
    path = run.path / "lock"
    locked = fcntl.flock
    taken: list[RunLock] = []

    def slowly(descriptor: int, how: int) -> None:
        if not taken:
            path.unlink()
            monkeypatch.setattr(fcntl, "flock", locked)
            taken.append(RunLock(path))
        locked(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", slowly)
    with pytest.raises(RunLockedError):
        RunLock(path)
    taken[0].release()


# Where the kernel has no say


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_on_a_file_system_without_locks_the_file_decides(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refused(descriptor: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refused)
    with run.lock():
        assert run.status().state is RunState.RUNNING
        with pytest.raises(RunLockedError, match=f"process {os.getpid()} .*another --name$"):
            run.lock()
    assert run.status().state is RunState.CREATED
    held_as_if(run, started="1")
    run.lock().release()
    held_as_if(run, namespace="pid:[1]")
    with pytest.raises(RunLockedError, match="if it is gone, delete"):
        run.lock()


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)


@pytest.mark.usefixtures("no_room")
def test_without_room_for_its_name_a_lock_is_held_all_the_same(run: RunDirectory) -> None:
    with run.lock():
        assert run.status().detail == "another process"
        with pytest.raises(RunLockedError, match="is being trained by another process"):
            run.lock()
    run.lock().release()


@pytest.mark.usefixtures("no_room")
def test_a_new_run_is_undone_without_room(run: RunDirectory) -> None:
    NewRun.create(run.path.parent, "second", {}).undo()
    assert os.listdir(run.path.parent) == ["first"]


# Locks of strangers


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def dangling(path: Path) -> None:
    path.symlink_to(path.parent.parent / "made by a stranger")


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(20 << 30)


@pytest.mark.parametrize("make", [fifo, folder, link, dangling, huge])
def test_what_is_no_lock_is_held_by_nobody_and_cannot_be_taken(run: RunDirectory, make: Any) -> None:
    path = run.path / "lock"
    path.unlink()
    make(path)
    assert lock_owner(path) is None
    status = run.status()
    assert (status.state, str(path) in status.detail) == (RunState.UNREADABLE, True)
    with pytest.raises(ForeignFileError, match=r"lock (is not a plain file|has 21,474,836,480 bytes)"):
        run.lock()
    assert not (run.path.parent / "made by a stranger").exists()


OWNER = asdict(Owner("PID", "1", "here", "boot", "pid", "now"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 60_000,
        b"9" * 60_000,
        json.dumps(OWNER).encode(),
        json.dumps({**OWNER, "pid": -1}).encode(),
        json.dumps({**OWNER, "pid": 10**30}).encode(),
        json.dumps({**OWNER, "pid": 7, "host": ["elsewhere"]}).encode(),
        json.dumps({**OWNER, "pid": 7, "since": "\x1b[2J"}).encode(),
        json.dumps({**OWNER, "pid": 7, "further": 1}).encode(),
    ],
)
def test_nonsense_in_a_lock_holds_nothing(run: RunDirectory, content: bytes) -> None:
    (run.path / "lock").write_bytes(content)
    assert lock_owner(run.path / "lock") is None
    run.lock().release()


def test_a_lock_in_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    assert lock_owner(tmp_path / "gone" / "lock") is None
    with pytest.raises(RunError, match="cannot write to"):
        RunLock(tmp_path / "gone" / "lock")
