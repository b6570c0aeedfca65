"""A process counts the cores that it may use, under every kind of limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cgroups_for_tests import CPU, MEMORY, V2, FakeSystem

from keisei.machine import cores
from keisei.machine.cores import CoreLimit, core_limit, usable_cores

PROJECT = Path(__file__).parents[2]
POD = "sys/fs/cgroup/pods/one"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    """A machine with 16 cores, all of which this process may use."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    return FakeSystem(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400000 100000", 4),
        ("150000 100000", 2),  # one worker would leave a third unused
        ("50000 100000", 1),
        ("200000 50000", 4),
        ("max 100000", 16),
        ("9900000 100000", 16),
        ("", 16),
        ("many of them", 16),
        ("400000", 16),
        ("400000 0", 16),
        ("-5 100000", 16),
    ],
)
def test_a_quota_of_version_2(system: FakeSystem, text: str, expected: int) -> None:
    system.in_group("0::/pods/one", V2).write(f"{POD}/cpu.max", f"{text}\n")
    assert usable_cores(system.root) == expected


@pytest.mark.parametrize("where", ["pods/one/inner", "pods/one", "pods", "."])
def test_the_limit_of_any_group_above_holds(system: FakeSystem, where: str) -> None:
    system.in_group("0::/pods/one/inner", V2)
    for folder in ("pods/one/inner", "pods/one", "pods", "."):
        text = "300000 100000" if folder == where else "800000 100000"
        system.write(f"sys/fs/cgroup/{folder}/cpu.max", text)
    system.write("sys/fs/cgroup/pods/other/cpu.max", "100000 100000")
    assert usable_cores(system.root) == 3


def test_in_a_private_namespace_the_group_is_the_top_of_the_mount(system: FakeSystem) -> None:
    system.in_group("0::/", V2).write("sys/fs/cgroup/cpu.max", "250000 100000")
    assert usable_cores(system.root) == 3


@pytest.mark.parametrize("top", ["/docker/abc", "/../../docker/abc", "/docker/other"])
def test_a_mount_may_begin_at_the_containers_group(system: FakeSystem, top: str) -> None:
    system.in_group("0::/docker/abc", V2, top).write("sys/fs/cgroup/cpu.max", "200000 100000")
    assert usable_cores(system.root) == 2


@pytest.mark.parametrize("group", ["/docker/not/seen/here", "/../elsewhere"])
def test_a_group_that_is_not_seen_leaves_the_top_of_the_mount(system: FakeSystem, group: str) -> None:
    system.in_group(f"4:cpu,cpuacct:{group}", CPU)
    system.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000")
    system.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
    system.write("sys/fs/cgroup/elsewhere/cpu.cfs_quota_us", "100000")
    system.write("sys/fs/cgroup/elsewhere/cpu.cfs_period_us", "100000")
    assert usable_cores(system.root) == 2


@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [
        ("350000", "100000", 4),
        ("-1", "100000", 16),
        ("garbage", "100000", 16),
        ("100000", "0", 16),
        ("100000", None, 16),
        (None, "100000", 16),
    ],
)
def test_a_quota_of_version_1(
    system: FakeSystem, quota: str | None, period: str | None, expected: int
) -> None:
    system.in_group("4:cpu,cpuacct:/pods/one", CPU)
    for name, text in (("quota", quota), ("period", period)):
        if text is not None:
            system.write(f"sys/fs/cgroup/cpu,cpuacct/pods/one/cpu.cfs_{name}_us", text)
    assert usable_cores(system.root) == expected


def test_groups_above_hold_in_version_1_too(system: FakeSystem) -> None:
    system.in_group("4:cpu,cpuacct:/pods/one", CPU)
    for folder, quota in (("pods/one", -1), ("pods", 500000), (".", -1)):
        system.write(f"sys/fs/cgroup/cpu,cpuacct/{folder}/cpu.cfs_quota_us", str(quota))
        system.write(f"sys/fs/cgroup/cpu,cpuacct/{folder}/cpu.cfs_period_us", "100000")
    assert usable_cores(system.root) == 5


def test_both_versions_may_be_there(system: FakeSystem) -> None:
    """As systemd's hybrid layout has it: version 2 is mounted beside the controllers of version 1."""
    unified = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
    system.write("proc/self/cgroup", "5:memory:/else\n4:cpu,cpuacct:/a\n0::/b\n")
    system.mounted(CPU.format(top="/"), MEMORY.format(top="/"), unified)
    system.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "600000")
    system.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000")
    assert usable_cores(system.root) == 6
    system.write("sys/fs/cgroup/unified/b/cpu.max", "500000 100000")
    assert usable_cores(system.root) == 5


def test_a_mount_of_somebody_elses_group_is_passed_over(system: FakeSystem) -> None:
    system.write("proc/self/cgroup", "0::/pods/one\n")
    system.mounted(
        "29 23 0:26 /pods/two /elsewhere rw - cgroup2 cgroup2 rw",
        V2.format(top="/"),
    )
    system.write("elsewhere/cpu.max", "100000 100000")
    system.write(f"{POD}/cpu.max", "700000 100000")
    assert usable_cores(system.root) == 7


def test_a_system_that_tells_nothing_has_no_limit(system: FakeSystem) -> None:
    assert core_limit(system.root) == CoreLimit(16, "")


@pytest.mark.parametrize(
    "garbage", [b"", b"\xff\xfe\x00", b"::::\n0\n-\n", b"1 2 3 - \n - cgroup2\n0::relative"]
)
def test_garbage_is_no_limit(system: FakeSystem, garbage: bytes) -> None:
    for path in ("proc/self/cgroup", "proc/self/mountinfo"):
        system.write(path, "")
        (system.root / path).write_bytes(garbage)
    assert usable_cores(system.root) == 16


def test_garbage_in_the_file_of_a_limit_is_no_limit(system: FakeSystem) -> None:
    system.in_group("0::/pods/one", V2).write(f"{POD}/cpu.max", "")
    (system.root / POD / "cpu.max").write_bytes(b"\xff\xff")
    assert usable_cores(system.root) == 16


def test_a_folder_in_place_of_a_file_cannot_be_read(system: FakeSystem) -> None:
    """Root may read any file, so that a test cannot take the right away; a folder can be read by nobody."""
    system.in_group("0::/pods/one", V2)
    (system.root / POD / "cpu.max").mkdir(parents=True)
    system.write("sys/fs/cgroup/pods/cpu.max", "400000 100000")
    assert usable_cores(system.root) == 4


def test_a_cpuset_shows_in_the_affinity(system: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 9, 11}, raising=False)
    system.in_group("0::/", V2).write("sys/fs/cgroup/cpu.max", "800000 100000")
    assert usable_cores(system.root) == 3
    assert "affinity" in core_limit(system.root).reason
    system.write("sys/fs/cgroup/cpu.max", "150000 100000")
    assert core_limit(system.root) == CoreLimit(2, "a cgroup limit of 1.5 CPUs")


def test_without_affinity_the_machine_counts(system: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(system.root) == 16
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(system.root) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_this_process_counts_the_cores_it_is_kept_to() -> None:
    program = (
        "import os; from keisei.machine.cores import core_limit, machine_cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); found = core_limit()\n"
        "assert found.cores == 1 <= machine_cores(), found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert 1 <= usable_cores() <= cores.machine_cores()


def test_the_makefile_asks_before_anything_is_installed() -> None:
    """With no package of others in reach, by the Python that it is told to use."""
    show = "show:\n\t@echo $(JOBS)\n"
    unset = {"JOBS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    run = subprocess.run(
        ["make", "-s", "-f", "Makefile", "-f", "-", "show", f"PYTHON={sys.executable} -S"],
        cwd=PROJECT,
        env=environment,
        input=show,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) == min(8, usable_cores())
