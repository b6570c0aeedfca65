"""How many cores this process may use, and which limit decides.

Imports are relative and only from the standard library, since the Makefile uses this before anything is installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .cgroups import ROOT, groups_v1, groups_v2, read_number, read_words, whole_number


class CoreLimit(NamedTuple):
    """A number of cores, and the limit that it comes from."""

    cores: int
    reason: str
    """The limit; empty if it is only the size of the machine."""


def usable_cores(root: Path = ROOT) -> int:
    """Counts the cores that this process may use. In a container these are often fewer than the machine has."""
    return core_limit(root).cores


def core_limit(root: Path = ROOT) -> CoreLimit:
    """Finds the lowest of all limits. Tests set ``root`` to a file system of their own."""
    limits = [CoreLimit(machine_cores(), "")]
    if hasattr(os, "sched_getaffinity"):
        # The kernel keeps the affinity within the cpuset of a container, so the cpuset need not be read.
        limits.append(CoreLimit(len(os.sched_getaffinity(0)), "its CPU affinity (taskset or a cpuset)"))
    # If limits are equal, the first is named.
    return min([*limits, *_quotas(root)], key=lambda limit: limit.cores)


def machine_cores() -> int:
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[CoreLimit]:
    for folder in groups_v2(root):
        quota, period = [*read_words(folder / "cpu.max"), "", ""][:2]
        yield from _quota(whole_number(quota), whole_number(period))
    for folder in groups_v1("cpu", root):
        yield from _quota(read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us"))


def _quota(quota: int | None, period: int | None) -> Iterator[CoreLimit]:
    """Converts a share of time to cores, rounded up. With a quota of 1.5, one worker leaves a third unused, and two
    workers use all of it.

    ``max`` (version 2) and -1 (version 1) mean that there is no limit.
    """
    if quota is not None and period is not None and quota > 0 and period > 0:
        yield CoreLimit(math.ceil(quota / period), f"a cgroup limit of {quota / period:.3g} CPUs")
