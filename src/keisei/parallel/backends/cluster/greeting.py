"""The greeting of an actor: where it runs, and with which versions. This module imports nothing large."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Greeting:
    """Where a process runs, and with what."""

    node: str
    """The address of its node."""
    machine: str
    """The machine or container that its process number belongs to."""
    process_id: int
    versions: Mapping[str, str]

    @classmethod
    def of_this_process(cls, node: str) -> Greeting:
        return cls(node, machine_identity(), os.getpid(), versions())


def machine_identity() -> str:
    """Makes a text that differs between machines and between containers."""
    parts = [platform.node()]
    with suppress(OSError):  # not on Linux
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def versions() -> dict[str, str]:
    """Lists the versions that must be the same on every node."""
    found = {"python": platform.python_version()}
    for package in ("ray", "torch", "keisei"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def version_conflict(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Describes the versions that differ; empty if none does. Python may differ in its last number, and torch in its
    build, such as +cpu."""
    return ", ".join(
        f"{name} {theirs.get(name, 'not installed')} (here {version})"
        for name, version in ours.items()
        if _significant(name, version) != _significant(name, theirs.get(name, "not installed"))
    )


def _significant(name: str, version: str) -> str:
    return version.rpartition(".")[0] if name == "python" else version.partition("+")[0]
