"""The memory that is left, under every kind of limit."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest
from cgroups_for_tests import CPU, MEMORY, V2, FakeSystem

from keisei.errors import SharedMemoryError
from keisei.machine import memory
from keisei.machine import shared_memory as shared
from keisei.machine.memory import free_memory, memory_limit, resident_bytes
from keisei.machine.shared_memory import SharedBlock

MEMINFO = "MemTotal:       16384 kB\nMemFree:  100 kB\nMemAvailable:   8000 kB\nHugePages_Total:   0\n"
AVAILABLE = 8000 * 1024
POD = "sys/fs/cgroup/pods/one"


@pytest.fixture
def system(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path).write("proc/meminfo", MEMINFO)


def limited(system: FakeSystem, folder: str, limit: str, used: str = "0", stat: str = "") -> None:
    system.write(f"{folder}/memory.max", f"{limit}\n")
    system.write(f"{folder}/memory.current", f"{used}\n")
    system.write(f"{folder}/memory.stat", stat)


def test_without_groups_the_machine_counts(system: FakeSystem) -> None:
    assert free_memory(system.root) == AVAILABLE
    assert memory_limit(system.root) is None


@pytest.mark.parametrize(
    ("limit", "used", "stat", "left"),
    [
        ("5000000", "1000000", "", 4_000_000),
        ("5000000", "1000000", "anon 5\ninactive_file 300000\nactive_file 200000\n", 4_300_000),
        ("5000000", "7000000", "", 0),
        ("5000000", "1000000", "inactive_file 9000000\n", 5_000_000),
        ("0", "0", "", 0),
        ("max", "1000000", "", AVAILABLE),
        ("99000000000", "1000000", "", AVAILABLE),
        ("garbage", "1000000", "", AVAILABLE),
        ("5000000", "garbage", "inactive_file\nnot a number\n", 5_000_000),
    ],
)
def test_what_a_group_of_version_2_leaves(
    system: FakeSystem, limit: str, used: str, stat: str, left: int
) -> None:
    system.in_group("0::/pods/one", V2)
    limited(system, POD, limit, used, stat)
    assert free_memory(system.root) == left


def test_a_group_above_may_have_less_left(system: FakeSystem) -> None:
    system.in_group("0::/pods/one", V2)
    limited(system, POD, "4000000", "1000000")
    limited(system, "sys/fs/cgroup/pods", "6000000", "5500000")
    limited(system, "sys/fs/cgroup/pods/other", "10")
    assert free_memory(system.root) == 500_000
    assert memory_limit(system.root) == 4_000_000


def test_what_a_group_of_version_1_leaves(system: FakeSystem) -> None:
    system.in_group("7:memory:/pods/one", MEMORY)
    folder = "sys/fs/cgroup/memory/pods/one"
    system.write(f"{folder}/memory.limit_in_bytes", "5000000")
    system.write(f"{folder}/memory.usage_in_bytes", "2000000")
    system.write(f"{folder}/memory.stat", "inactive_file 7\ntotal_inactive_file 500000\n")
    assert free_memory(system.root) == 3_500_000


@pytest.mark.parametrize("page", [4096, 65536])
def test_version_1_says_no_limit_with_a_huge_number(system: FakeSystem, page: int) -> None:
    system.in_group("7:memory:/", MEMORY)
    system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", str((1 << 63) // page * page - page))
    assert memory_limit(system.root) is None
    (system.root / "proc/meminfo").unlink()
    assert free_memory(system.root) is None


def test_the_limits_of_other_controllers_are_none_of_ours(system: FakeSystem) -> None:
    system.in_group("4:cpu,cpuacct:/", CPU)
    system.write("sys/fs/cgroup/cpu,cpuacct/memory.limit_in_bytes", "5")
    assert free_memory(system.root) == AVAILABLE


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None


def test_garbage_tells_nothing(system: FakeSystem) -> None:
    (system.root / "proc/meminfo").write_bytes(b"\xff\xff")
    assert free_memory(system.root) is None
    system.write("proc/meminfo", "MemAvailable:\nMemAvailable: lots kB\n")
    assert free_memory(system.root) is None


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="is about Linux")
def test_this_machine_has_some_left() -> None:
    free = free_memory()
    assert free is not None
    assert 0 < free < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_shared_memory_keeps_to_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "free_memory", lambda: 1 << 20)
    SharedBlock(1 << 20).close()
    with pytest.raises(SharedMemoryError, match=r"1\.0 MB are free"):
        SharedBlock((1 << 20) + 1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="is about Linux")
def test_resident_memory_is_what_the_kernel_says() -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    kibibytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    # The kernel counts in batches per core, so the two may differ by a little.
    assert abs(resident_bytes(os.getpid()) - kibibytes * 1024) < 8 << 20


def test_resident_memory_is_counted_in_the_machines_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = FakeSystem(tmp_path).write("proc/12/statm", "900 34 5 1 0 20 0\n")
    assert resident_bytes(12, system.root) == 34 * mmap.PAGESIZE
    monkeypatch.setattr(memory.mmap, "PAGESIZE", 16384)
    assert resident_bytes(12, system.root) == 34 * 16384


@pytest.mark.parametrize("text", ["", "900", "a b c"])
def test_a_process_that_is_not_there_has_no_memory(tmp_path: Path, text: str) -> None:
    system = FakeSystem(tmp_path).write("proc/12/statm", text)
    assert resident_bytes(12, system.root) == 0
    assert resident_bytes(13, system.root) == 0
    assert resident_bytes(None) == 0
