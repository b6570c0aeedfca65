"""``keisei doctor``: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.errors import KeiseiError


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``remedy`` says how to get what is missing; empty where all is well."""

    name: str
    value: str
    remedy: str = ""


def doctor() -> None:
    """Show what this machine offers, what is missing, and how to get it."""
    findings = list(examine())
    table = Table("", "Part", "Found", box=None, pad_edge=False)
    for finding in findings:
        mark = Text("–", "yellow") if finding.remedy else Text("✓", "green")
        table.add_row(mark, finding.name, Text(finding.value))
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\nTo get what is missing:" if any(finding.remedy for finding in findings) else "\nAll is there."
    )
    for finding in findings:
        if finding.remedy:
            # On one line however long, so that a command can be copied.
            console.print(Text(f"  {finding.name}: {finding.remedy}"), soft_wrap=True)


def examine() -> Iterator[Finding]:
    """Look at one part after the other."""
    yield Finding("python", f"{platform.python_version()} ({sys.platform}, {platform.machine()})")
    yield _cores()
    yield _memory()
    yield _native_core()
    yield from _torch()
    yield _extra("ray", "ray", "several machines")
    yield _extra("open_spiel", "pyspiel", "OpenSpiel's games")


def _cores() -> Finding:
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    value = f"{usable} of {total} usable by this process"
    if usable < total:
        return Finding("cores", value, "start it without taskset or a CPU limit to use all")
    return Finding("cores", value)


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return Finding("memory", "this system does not tell")
    limit = _container_limit()
    value = f"{total / 2**30:.1f} GiB"
    if limit is not None and limit < total:
        value += f", of which this container may use {limit / 2**30:.1f} GiB"
    return Finding("memory", value)


def _container_limit() -> int | None:
    """The memory limit of a Linux container (cgroup version 2), where there is one."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _native_core() -> Finding:
    try:
        core = import_module("keisei.native").core
    except (ImportError, KeiseiError) as error:
        return Finding("native core", f"does not load: {error}", "make setup   (it needs a C++20 compiler)")
    return Finding("native core", f"instruction set {core.INSTRUCTION_SET}")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", f"does not load: {error}", "make setup")
        return
    yield Finding("torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        yield Finding("gpu", ", ".join(torch.cuda.get_device_name(index) for index in range(count)))
    elif torch.backends.mps.is_available():
        yield Finding("gpu", "Apple silicon (mps)")
    else:
        yield Finding("gpu", f"none; learning runs on the CPU{_why_no_gpu(torch.version.cuda)}")


def _why_no_gpu(cuda: str | None) -> str:
    if cuda:
        return f" (torch is built for CUDA {cuda}, but no device answers)"
    return " (torch is built without CUDA)"


def _extra(name: str, module: str, purpose: str) -> Finding:
    """Look for an optional package without importing it: Ray alone takes seconds."""
    if find_spec(module) is None:
        install = f"{sys.executable} -m pip install -c constraints.txt {name}"
        return Finding(name, f"not installed; only {purpose} need it", install)
    return Finding(name, metadata.version(name))
