"""``keisei doctor``: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from keisei.cli.installation import checkout, pip_install
from keisei.cli.views.terminal import Terminal
from keisei.errors import KeiseiError
from keisei.machine.cores import core_limit, machine_cores
from keisei.machine.memory import free_memory, memory_limit


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``remedy`` says how to get what is missing; empty if nothing is missing."""

    name: str
    value: str
    remedy: str = ""


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not load torch, so do not look for GPUs.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Examine a running Ray cluster instead: auto or host:port."),
    ] = None,
) -> None:
    """Show what this machine has, what is missing, and how to get it."""
    _report(list(examine(quick) if ray is None else examine_cluster(ray)))


def _report(findings: Sequence[Finding]) -> None:
    table = Table("", "Part", "Found", box=None, pad_edge=False)
    for finding in findings:
        mark = Text("–", "yellow") if finding.remedy else Text("✓", "green")
        table.add_row(mark, finding.name, Text(finding.value))
    console = Terminal(highlight=False)
    console.print(table)
    console.print(
        "\nTo get what is missing:" if any(finding.remedy for finding in findings) else "\nAll is there."
    )
    for finding in findings:
        if finding.remedy:
            # On one line, even if it is long, so that a command can be copied.
            console.print(Text(f"  {finding.name}: {finding.remedy}"), soft_wrap=True)


def examine(quick: bool = False) -> Iterator[Finding]:
    """Checks one part after the other. ``quick`` leaves out what takes seconds."""
    yield Finding("python", f"{platform.python_version()} ({sys.platform}, {platform.machine()})")
    yield _cores()
    yield _memory()
    yield _native_core()
    yield from _torch_on_disk() if quick else _torch()
    yield _extra("ray", "ray", "several machines")
    yield _extra("onnx", "onnx", "networks for other programs")
    yield _extra("open_spiel", "pyspiel", "OpenSpiel's games")
    yield _extra("wandb", "wandb", "curves on Weights & Biases")


def examine_cluster(address: str) -> Iterator[Finding]:
    """Asks every node of a Ray cluster."""
    from keisei.parallel.backends.cluster.examination import SKEW_SECONDS, examine_nodes

    for node in examine_nodes(address):
        found = [
            node.resources,
            ", ".join(f"{name} {version}" for name, version in node.versions.items()),
            f"{node.processor}, core {node.instruction_set}" if node.instruction_set else node.processor,
            "" if node.clock is None else f"clock {node.clock:+.2f} s",
        ]
        remedies = [node.error]
        if node.conflict:
            remedies.append(f"install the same versions as here: {node.conflict}")
        if node.instruction_set and node.instruction_set != node.instruction_set_here:
            remedies.append(
                "its processor differs from this one, so its results may differ in the last bits; leave the node out "
                "if a run has to give the same bits again"
            )
        if node.clock is not None and abs(node.clock) > SKEW_SECONDS:
            remedies.append("set its clock (chrony or ntpd); logs of nodes are hard to compare otherwise")
        yield Finding(
            f"node {node.address}", "; ".join(filter(None, found)), "; ".join(filter(None, remedies))
        )


def _cores() -> Finding:
    limit, total = core_limit(), machine_cores()
    if limit.cores == total:
        return Finding("cores", f"all {total} usable by this process")
    value = f"{limit.cores} of {total} usable by this process: {limit.reason}"
    return Finding("cores", value, "start it without this limit, or give its container or service more CPUs")


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return Finding("memory", "this system does not say")
    free, limit = free_memory(), memory_limit()
    left = f"{_gibibytes(free)} left of " if free is not None else ""
    if limit is not None and limit < total:
        return Finding(
            "memory", f"{left}{_gibibytes(limit)}: a cgroup limit (the machine has {_gibibytes(total)})"
        )
    return Finding("memory", f"{left}{_gibibytes(total)}")


def _gibibytes(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB"


def _native_core() -> Finding:
    wanted = os.environ.get("KEISEI_NATIVE")
    try:
        core = import_module("keisei.native").core
    except (ImportError, KeiseiError) as error:
        return Finding("native core", f"does not load: {error}", _native_remedy(wanted))
    how = "as KEISEI_NATIVE asks" if wanted else "picked for this processor"
    return Finding("native core", f"build {core.INSTRUCTION_SET}, {how}")


def _native_remedy(wanted: str | None) -> str:
    if wanted:
        return "unset KEISEI_NATIVE   (then the build is picked for this processor)"
    if checkout() is not None:
        return "make setup   (it needs a C++20 compiler)"
    return pip_install("--force-reinstall --no-deps keisei")


def _torch_on_disk() -> Iterator[Finding]:
    """Yields the installed version of torch, without importing it."""
    try:
        yield Finding("torch", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        yield Finding("torch", "not installed", _torch_remedy())


def _torch_remedy() -> str:
    return "make setup" if checkout() is not None else pip_install("--force-reinstall torch")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", f"does not load: {error}", _torch_remedy())
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
    """Looks for an optional package without importing it, since some imports take seconds."""
    if find_spec(module) is None:
        pinned = "-c constraints.txt " if checkout() is not None else ""
        return Finding(name, f"not installed; only {purpose} need it", pip_install(f"{pinned}{name}"))
    return Finding(name, metadata.version(name))
