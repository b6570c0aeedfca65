"""Examines the nodes of a running cluster: versions, processors, resources and clocks."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError
from keisei.parallel.backends.cluster.connection import Connection
from keisei.parallel.backends.cluster.greeting import version_conflict, versions
from keisei.parallel.backends.cluster.nodes import Node, alive_nodes

ANSWER_SECONDS = 60.0
"""How long a node may take to answer. It starts a process first."""
SKEW_SECONDS = 1.0
"""How much a clock may differ."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a process sees on its node."""

    versions: Mapping[str, str]
    processor: str
    instruction_set: str
    """The build of the native core that its processor gets; empty if the core does not load."""
    time: float


@dataclass(frozen=True, slots=True)
class ExaminedNode:
    """One node, compared with this process."""

    address: str
    resources: str
    versions: Mapping[str, str] = field(default_factory=dict)
    conflict: str = ""
    """The versions that differ from those here; empty if none does."""
    processor: str = ""
    instruction_set: str = ""
    instruction_set_here: str = ""
    clock: float | None = None
    """Seconds by which its clock is ahead of the one here."""
    error: str = ""
    """Why it could not be examined, and what to do; empty if it could."""


def look_around() -> Look:
    """Runs on a node."""
    return Look(versions(), _processor(), _instruction_set(), time.time())


def examine_nodes(address: str) -> Iterator[ExaminedNode]:
    """Connects to a cluster, and examines every node."""
    connection = Connection(address, cpus=1)
    try:
        for node in alive_nodes(connection.ray):
            yield _examined(connection.ray, node)
    finally:
        connection.close()


def _examined(ray: Any, node: Node) -> ExaminedNode:
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.node_id, soft=False)
    looking = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(look_around)
    try:
        ray.get(
            looking.remote(), timeout=ANSWER_SECONDS
        )  # starts the process, so that the clock is not read late
        before = time.time()
        look: Look = ray.get(looking.remote(), timeout=ANSWER_SECONDS)
        middle = (before + time.time()) / 2
    except ray.exceptions.RayError as error:
        return ExaminedNode(node.address, node.capacity, error=_why(error))
    return ExaminedNode(
        node.address,
        node.capacity,
        look.versions,
        version_conflict(versions(), look.versions),
        look.processor,
        look.instruction_set,
        _instruction_set(),
        look.time - middle,
    )


def _why(error: Exception) -> str:
    if "No module named" in str(error):
        return "install keisei there: it cannot be imported"
    return f"it does not answer: {type(error).__name__}"


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _instruction_set() -> str:
    try:
        from keisei.native import core
    except (ImportError, KeiseiError):
        return ""
    found: str = core.INSTRUCTION_SET
    return found
