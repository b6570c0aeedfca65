"""A file system with control groups for tests."""

from __future__ import annotations

from pathlib import Path

V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
"""A line of mountinfo, as systemd and container runtimes have it."""
CPU = "33 31 0:30 {top} /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
MEMORY = "35 31 0:32 {top} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
OTHERS = [
    "23 1 252:0 / / rw,relatime - ext4 /dev/vda rw",
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset",
]


class FakeSystem:
    """What a process finds in /proc and /sys, below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def in_group(self, line: str, mount: str, top: str = "/") -> FakeSystem:
        """This process's line in /proc/self/cgroup, and one mount."""
        self.write("proc/self/cgroup", f"9:name=systemd:/init\n3:cpuset:/elsewhere\n{line}\n")
        return self.mounted(mount.format(top=top))

    def mounted(self, *lines: str) -> FakeSystem:
        return self.write("proc/self/mountinfo", "\n".join([*OTHERS, *lines, ""]))

    def write(self, path: str, text: str) -> FakeSystem:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return self
