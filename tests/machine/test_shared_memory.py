"""Shared memory: real processes see the same bytes, and nothing is left of it."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import SharedMemoryError
from keisei.machine import shared_memory
from keisei.machine.shared_memory import ALIGNMENT, Layout, SharedBlock

LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")
START_METHODS = [m for m in ("spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]


@pytest.fixture
def children_find_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child imports the function that it is to run by its module's name, from the paths of its parent."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def double_and_answer(block: SharedBlock, pipe: Connection) -> None:
    """In a child: read what the parent wrote, write the answer, tell that it is there."""
    numbers = block.array(np.int64, 4)
    answers = block.array(np.int64, 4, offset=64)
    pipe.recv()
    answers[:] = numbers * 2
    pipe.send("done")


@pytest.mark.usefixtures("children_find_this_file")
@pytest.mark.parametrize("method", START_METHODS)
def test_parent_and_child_see_each_others_writes(method: str) -> None:
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with SharedBlock(128) as block:
        process = context.Process(target=double_and_answer, args=(block, theirs), daemon=True)
        process.start()
        theirs.close()
        # Written after the start, so that a copy made at the start would not show it.
        block.array(np.int64, 4)[:] = [1, 2, 3, 40]
        ours.send("go")
        assert ours.recv() == "done"
        assert block.array(np.int64, 4, offset=64).tolist() == [2, 4, 6, 80]
        process.join(60)
        assert process.exitcode == 0
    ours.close()


def test_a_block_is_zeros_at_first_and_views_overlap() -> None:
    with SharedBlock(1000) as block:
        everything = block.array(np.uint8, 1000)
        assert not everything.any()
        block.array(np.uint32, (2, 3), offset=8)[1, 2] = 0x01020304
        assert everything[8 + 5 * 4 : 8 + 6 * 4].tolist() == [4, 3, 2, 1]
        assert block.buffer[28] == 4
        assert block.nbytes == 1000


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(SharedMemoryError, match=f"at least 1 byte, got {size}"):
        SharedBlock(size)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_memory_than_there_is_is_a_clear_error(sparse: bool) -> None:
    with pytest.raises(SharedMemoryError, match=r"no shared memory of .* MB can be had"):
        SharedBlock(1 << 70, sparse=sparse)


@LINUX
def test_what_the_machine_lacks_is_refused_before_it_is_taken() -> None:
    with pytest.raises(SharedMemoryError, match="MB are free"):
        SharedBlock(1 << 46)


@pytest.mark.parametrize(("shape", "offset"), [((1001,), 0), ((10,), 991), ((1,), -1), ((-1,), 0)])
def test_arrays_past_the_end_are_refused(shape: tuple[int, ...], offset: int) -> None:
    with SharedBlock(1000) as block, pytest.raises(SharedMemoryError, match="the block has 1000"):
        block.array(np.uint8, shape, offset)


def test_arrays_of_objects_are_refused() -> None:
    with SharedBlock(64) as block, pytest.raises(SharedMemoryError, match="plain numbers"):
        block.array(object, 1)


def test_it_is_pickled_only_for_a_child_that_starts() -> None:
    with SharedBlock(64) as block, pytest.raises(SharedMemoryError, match=r"multiprocessing\.Process"):
        pickle.dumps(block)


def test_a_private_block_needs_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd")) if LINUX.args[0] is False else 0
    blocks = [SharedBlock.private(100) for _ in range(50)]
    for number, block in enumerate(blocks):
        block.array(np.uint8, 100)[:] = number
    assert [int(block.array(np.uint8, 100).sum()) for block in blocks] == [100 * n for n in range(50)]
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    monkeypatch.setattr(shared_memory.context, "get_spawning_popen", lambda: object())
    with pytest.raises(SharedMemoryError, match="is private and cannot be given to a process"):
        blocks[0].__reduce__()
    blocks[0].close()
    with pytest.raises(SharedMemoryError, match="is closed and cannot be given to a process"):
        blocks[0].__reduce__()
    with pytest.raises(SharedMemoryError, match="can be had"):
        SharedBlock.private(1 << 62)


@LINUX
def test_a_part_of_a_sparse_block_is_reserved() -> None:
    with SharedBlock(1 << 22, sparse=True) as block:
        assert os.fstat(block._fd).st_blocks == 0
        block.reserve(1 << 20, 1 << 20)
        assert os.fstat(block._fd).st_blocks * 512 == 1 << 20


def test_memory_that_cannot_be_reserved_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is not asked for too much here: some would give all that they have first."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with SharedBlock(1 << 20, sparse=True) as block:
        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
        with pytest.raises(
            SharedMemoryError, match=r"of 1\.0 MB can be had: the system says: .*No space left"
        ):
            block.reserve(0, 1 << 20)


def test_close_may_be_called_twice_and_use_after_it_is_an_error() -> None:
    block = SharedBlock(64)
    block.close()
    block.close()
    assert block.closed
    with pytest.raises(SharedMemoryError, match="closed"):
        block.array(np.uint8, 1)
    with pytest.raises(SharedMemoryError, match="closed"):
        _ = block.buffer


def mapped() -> int:
    gc.collect()
    return Path("/proc/self/maps").read_text().count("memfd:keisei")


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@LINUX
def test_closing_frees_mapping_and_files() -> None:
    files, maps = open_files(), mapped()
    block = SharedBlock(1 << 20)
    assert mapped() == maps + 1
    assert open_files() > files
    block.close()
    assert (open_files(), mapped()) == (files, maps)


@LINUX
def test_a_forgotten_block_frees_itself() -> None:
    files, maps = open_files(), mapped()
    block = SharedBlock(1 << 20)
    assert mapped() == maps + 1
    del block
    assert (open_files(), mapped()) == (files, maps)


@LINUX
def test_a_view_outlives_close_and_frees_the_memory_when_it_goes() -> None:
    files, maps = open_files(), mapped()
    block = SharedBlock(1 << 20)
    view = block.array(np.uint8, 1 << 20)
    view[-1] = 7
    block.close()
    assert view[-1] == 7
    assert mapped() == maps + 1
    del view, block
    assert (open_files(), mapped()) == (files, maps)


def test_without_memfd_a_file_without_a_name_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(shared_memory.os, "memfd_create", raising=False)
    monkeypatch.setattr(shared_memory.tempfile, "tempdir", str(tmp_path))
    with SharedBlock(4096) as block:
        block.array(np.uint8, 4096)[:] = 3
        assert block.buffer[4095] == 3
        assert list(tmp_path.iterdir()) == []


PARENT = """
    import multiprocessing, os, sys, time
    import numpy as np
    from keisei.machine.shared_memory import SharedBlock

    def hold(block, pipe):
        block.array(np.uint8, 1)[0] = 1
        try:
            pipe.recv()  # never comes; ends with the parent
        except EOFError:
            sys.exit()

    if __name__ == "__main__":
        context = multiprocessing.get_context("spawn")
        block = SharedBlock(1 << 20)
        ours, theirs = context.Pipe()
        child = context.Process(target=hold, args=(block, theirs), daemon=True)
        child.start()
        theirs.close()
        while not block.buffer[0]:
            time.sleep(0.01)
        print(child.pid, flush=True)
        time.sleep(600)
"""


def shared_files() -> set[str]:
    return {path for path in os.listdir("/dev/shm") if not path.startswith(("sem.", "pym-"))}


@LINUX
def test_killing_the_parent_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    before = shared_files()
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        child = int(parent.stdout.readline())
        assert "memfd:keisei" in Path(f"/proc/{child}/maps").read_text()
        parent.send_signal(signal.SIGKILL)
        parent.wait(60)
        # The tracker of named memory would complain here, if there were any.
        assert parent.stderr.read() == ""
    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}/maps").exists() and is_alive(child):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.02)
    assert shared_files() <= before
    assert holders_of_keisei_memory(tmp_path) == []


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def holders_of_keisei_memory(folder: Path) -> list[int]:
    """Processes started from a folder's script that still map our memory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and str(folder) in (entry / "cmdline").read_text()
                and "memfd:keisei" in (entry / "maps").read_text()
            ):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def test_a_layout_gives_every_array_its_own_cache_lines() -> None:
    layout = Layout.of(
        [("a", np.uint8, (3,)), ("b", np.float32, (2, 20)), ("none", np.int64, (0,)), ("c", "i8", ())]
    )
    assert [array.offset for array in layout.arrays] == [0, 64, 64 + 192, 64 + 192]
    assert layout.nbytes == 64 + 192 + 64
    assert layout.nbytes % ALIGNMENT == 0
    with SharedBlock(2 * layout.nbytes) as block:
        first, second = layout.views(block), layout.views(block, layout.nbytes)
        for number, views in enumerate((first, second), start=1):
            for view in views.values():
                view[...] = number
        assert {name: view.shape for name, view in first.items()} == {
            "a": (3,),
            "b": (2, 20),
            "none": (0,),
            "c": (),
        }
        assert all((view == 1).all() for view in first.values())
        assert all((view == 2).all() for view in second.values())


def test_a_layout_refuses_doubled_names_and_odd_places() -> None:
    with pytest.raises(SharedMemoryError, match="named 'a'"):
        Layout.of([("a", np.uint8, (3,)), ("a", np.uint8, (3,))])
    layout = Layout.of([("a", np.uint8, (3,))])
    with SharedBlock(256) as block:
        with pytest.raises(SharedMemoryError, match="multiple of 64 bytes, got 8"):
            layout.views(block, 8)
        with pytest.raises(SharedMemoryError, match="the block has 256"):
            layout.views(block, 256)
