"""``keisei profile``: trains for a few updates, writes nothing, and prints where the time went."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from keisei.cli.numbers import MAX_COUNT
from keisei.cli.views.terminal import Terminal
from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from keisei.training.settings import TrainConfig
    from keisei.training.studies.profiling import Profile

UPDATES = 4
"""Updates without ``--steps``. The first ones are slower, and a few more reduce their influence."""


class ProfileMode(StrEnum):
    SERIAL = "serial"
    PARALLEL = "parallel"


def profile(
    target: Annotated[
        str | None, typer.Argument(help="A preset, a settings file, or a run, whose settings are taken.")
    ] = None,
    mode: Annotated[
        ProfileMode,
        typer.Option(help="All in this process, or workers in processes: the same work and weights."),
    ] = ProfileMode.PARALLEL,
    steps: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help=f"Transitions to learn from; by default {UPDATES} updates."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting, as in keisei train.")
    ] = None,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
    trace: Annotated[
        Path | None, typer.Option(help="Write a timeline for ui.perfetto.dev or chrome://tracing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show where the time of training goes: collecting, preparing, learning, publishing weights."""
    from keisei.training.studies import profiling

    if trace is not None and not trace.resolve().parent.is_dir():
        raise KeiseiError(f"--trace {trace}: there is no folder {trace.resolve().parent}; make it first")
    config = profiling.placed(_settings(target, steps, set_ or [], root), mode.value)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(f"training, {mode.value}", total=1.0)
        found = profiling.profile(config, lambda update: progress.update(task, completed=update.progress))
    if as_json:
        typer.echo(json.dumps(_as_json(found, mode), indent=2))
    else:
        _print(found, mode)
    if trace is not None:
        _write_trace(found, trace)


def _settings(target: str | None, steps: int | None, overrides: list[str], root: Path) -> TrainConfig:
    from keisei.training.api import length_overrides
    from keisei.training.presets import find_source, preset_names

    if target is None:
        target = "shogi-quickstart" if "shogi-quickstart" in preset_names() else "connect-four-ppo"
    source = find_source(target, root)
    steps = steps or UPDATES * source.config(overrides).rollout
    return source.config([*length_overrides(steps, None), *overrides])


def _print(found: Profile, mode: ProfileMode) -> None:
    console = Terminal(highlight=False)
    config = found.config
    console.print(
        f"{config.env.game}, network {config.model.network} with {found.parameters:,} parameters; {mode.value}, "
        f"workers: {config.parallel.workers} ({config.parallel.backend}, {config.parallel.mode}), "
        f"learner threads: {config.run.learner_threads}",
        soft_wrap=True,
    )
    console.print(
        f"{found.updates} updates, {found.transitions:,} transitions, {found.gradient_steps:,} gradient steps in "
        f"{found.wall:.2f} s: {found.transitions_per_second:,.0f} transitions/s\n"
        f"(before that, {found.starting:.2f} s to start; nothing of it is counted below)\n"
    )
    console.print(_table(found))
    console.print(f"\nThe learner kept {found.learner_cores:.2f} cores busy while it learned.")
    console.print(f"Weights: {found.digest}", soft_wrap=True)


def _table(found: Profile) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("Seconds", "An update", "Share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for depth, name, seconds in _lines(found):
        figures = (
            f"{seconds:.3f}",
            f"{1000 * seconds / found.updates:,.1f} ms",
            f"{seconds / found.wall:.1%}",
        )
        table.add_row("  " * depth + name, *figures, style="" if depth else "bold")
    return table


def _lines(found: Profile) -> Iterator[tuple[int, str, float]]:
    """Yields indentation, name and seconds of each line."""
    workers, learner = found.workers, found.learner
    work = [
        (1, "games", workers.games),
        (1, "policy", workers.policy),
        (1, "transport", workers.transport),
        (1, "waiting", workers.waiting),
    ]
    yield 0, "collecting", found.collecting
    if not found.config.asynchronous:
        yield from work
    yield 0, "preparing (advantages, merging)", found.preparing
    yield 0, "learning", found.learning
    yield 1, "unpacking positions", learner.unpacking
    yield 1, "forward", learner.forward
    yield 1, "losses", learner.losses
    yield 1, "backward", learner.backward
    yield 1, "optimiser step", learner.stepping
    yield 1, "reporting", learner.reporting
    yield 0, "publishing weights", found.publishing
    yield 0, "counting games, the loop itself", found.rest
    yield 0, "in all", found.wall
    if found.config.asynchronous:
        yield 0, "each worker meanwhile", found.wall
        yield from work


def _as_json(found: Profile, mode: ProfileMode) -> dict[str, object]:
    config = found.config
    return {
        "mode": mode.value,
        "game": config.env.game,
        "network": config.model.network,
        "parameters": found.parameters,
        "workers": config.parallel.workers,
        "placement": config.parallel.backend,
        "sync": config.parallel.mode,
        "learner_threads": config.run.learner_threads,
        "updates": found.updates,
        "transitions": found.transitions,
        "gradient_steps": found.gradient_steps,
        "transitions_per_second": found.transitions_per_second,
        "digest": found.digest,
        "learner_cores": found.learner_cores,
        "seconds": {
            "starting": found.starting,
            "in_all": found.wall,
            "collecting": found.collecting,
            "in_workers": asdict(found.workers),
            "preparing": found.preparing,
            "learning": found.learning,
            "in_learner": asdict(found.learner),
            "publishing": found.publishing,
            "rest": found.rest,
        },
    }


def _write_trace(found: Profile, path: Path) -> None:
    try:
        found.timeline.export(path)
    except OSError as error:
        raise KeiseiError(
            f"the trace cannot be written to {path}: {error.strerror}; name another file"
        ) from error
    Terminal(stderr=True, highlight=False).print(
        f"Trace: {path} (open it in ui.perfetto.dev)", soft_wrap=True
    )
