"""``keisei simulate``: estimates how fast a cluster collects and learns, and where more nodes no longer help."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from keisei.cli.numbers import MAX_COUNT
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted
from keisei.parallel.backends.cluster.simulation import (
    GPU_LEARN_SECONDS,
    Assumptions,
    Forecast,
    bend,
    forecast,
    growth,
)

USUAL = Assumptions()


class Mode(StrEnum):
    SYNC = "sync"
    ASYNC = "async"


def simulate(
    nodes: Annotated[int, typer.Option(min=1, max=1024, help="Machines beside the learner.")] = 16,
    cores: Annotated[int, typer.Option(min=1, max=1024, help="Workers on each of them.")] = 64,
    tables: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Tables of the run; 0: two for each worker.")
    ] = 0,
    gpu_learner: Annotated[
        bool, typer.Option("--gpu-learner", help="The learner has a graphics card.")
    ] = False,
    mode: Annotated[Mode, typer.Option(help="The mode of the run.")] = Mode.SYNC,
    transitions: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help="Transitions of a slab.")
    ] = USUAL.slab_transitions,
    slab_ms: Annotated[float, typer.Option(min=0.001, max=1e9, help="How long a worker plays a slab.")] = (
        1000 * USUAL.slab_seconds
    ),
    slab_kb: Annotated[
        float, typer.Option(min=0.001, max=1e9, help="How large a slab is.")
    ] = USUAL.slab_bytes / 1000,
    driver_ms: Annotated[
        float, typer.Option(min=0.001, max=1e9, help="What a slab takes of the learner's process.")
    ] = (1000 * USUAL.driver_seconds),
    learn_us: Annotated[
        float | None,
        typer.Option(min=0, max=1e9, help="What the learner takes for each transition."),
    ] = None,
    weights_mb: Annotated[float, typer.Option(min=0, max=1e9, help="How large the weights are.")] = (
        USUAL.weights_bytes / 1e6
    ),
    link_gbit: Annotated[float, typer.Option(min=0.001, max=1e9, help="The learner's network link.")] = (
        USUAL.link * 8 / 1e9
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate how fast a cluster is, and where more nodes no longer help.

    The estimate comes from a small simulation. Measure the figures of your own run with `keisei bench ray`.
    """
    learning = GPU_LEARN_SECONDS if gpu_learner else USUAL.learn_seconds
    given = Assumptions(
        nodes=nodes,
        cores=cores,
        tables=tables,
        slab_transitions=transitions,
        slab_seconds=slab_ms / 1000,
        slab_bytes=int(1000 * slab_kb),
        driver_seconds=driver_ms / 1000,
        learn_seconds=learning if learn_us is None else learn_us / 1e6,
        weights_bytes=int(1e6 * weights_mb),
        link=link_gbit * 1e9 / 8,
        mode=mode.value,
    )
    forecasts = list(growth(given, nodes))
    if as_json:
        typer.echo(json.dumps(_as_json(given, forecasts), indent=2))
    else:
        _print(given, forecasts, Terminal(highlight=False))


def _print(given: Assumptions, forecasts: Sequence[Forecast], console: Console) -> None:
    console.print(
        f"Assumed: a slab has {given.slab_transitions:,} transitions and {given.slab_bytes / 1e6:.2f} MB, and takes "
        f"{given.slab_seconds:g} s of a worker (± {given.spread:.0%}) and {1000 * given.driver_seconds:g} ms of the "
        f"driver; the learner takes {1e6 * given.learn_seconds:g} µs a transition; its link carries "
        f"{given.link * 8 / 1e9:g} Gbit/s; {given.mode}.\n"
    )
    console.print(_table(forecasts))
    console.print(f"\n{_verdict(forecasts)}\n\nWhat would move it, with {given.nodes} nodes:")
    for change, result in _levers(given):
        gain = result.transitions_per_second / forecasts[-1].transitions_per_second
        console.print(
            f"  {change}: {result.transitions_per_second:,.0f} transitions/s ({gain:.2f} times as many)"
        )


def _table(forecasts: Sequence[Forecast]) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for heading in (
        "Nodes",
        "Workers",
        "Transitions/s",
        "Slabs/s",
        "GB/s",
        "Playing",
        "Driver",
        "Link",
        "Learner",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Limit")
    for each in forecasts:
        shares = (f"{each.busy[part]:.0%}" for part in ("workers", "driver", "network", "learner"))
        table.add_row(
            str(each.nodes), str(each.workers), f"{each.transitions_per_second:,.0f}",
            f"{each.slabs_per_second:,.0f}", f"{each.bytes_per_second / 1e9:.2f}", *shares, each.limit,
        )  # fmt: skip
    return table


def _verdict(forecasts: Sequence[Forecast]) -> str:
    bent = bend(forecasts)
    if bent is None:
        return "More nodes help all the way."
    return (
        f"It bends at {counted(bent.nodes, 'node')} ({bent.workers} workers, {bent.slabs_per_second:,.0f} slabs/s, "
        f"{bent.bytes_per_second / 1e9:.2f} GB/s): the {forecasts[-1].limit} is the limit beyond."
    )


def _levers(given: Assumptions) -> Iterator[tuple[str, Forecast]]:
    """Yields what could be changed, and the forecast after each change."""
    changes: dict[str, Assumptions] = {
        "a learner twice as fast": replace(given, learn_seconds=given.learn_seconds / 2),
        "a driver twice as fast": replace(given, driver_seconds=given.driver_seconds / 2),
        "a link twice as fast": replace(given, link=2 * given.link),
        "slabs twice as long": replace(
            given,
            slab_seconds=2 * given.slab_seconds,
            slab_bytes=2 * given.slab_bytes,
            slab_transitions=2 * given.slab_transitions,
        ),
        "twice the tables": replace(given, tables=2 * given.table_count),
    }
    for change, assumptions in changes.items():
        yield change, forecast(assumptions)


def _as_json(given: Assumptions, forecasts: Sequence[Forecast]) -> dict[str, object]:
    bent = bend(forecasts)
    return {
        "assumptions": asdict(given),
        "forecasts": [asdict(each) | {"limit": each.limit} for each in forecasts],
        "bends_at_nodes": None if bent is None else bent.nodes,
        "levers": {change: result.transitions_per_second for change, result in _levers(given)},
    }
