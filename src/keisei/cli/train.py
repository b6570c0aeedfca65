"""``keisei train``: trains a preset, a settings file, a game or a run, and shows the progress."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from keisei.cli.interrupts import EXIT_CODE
from keisei.cli.numbers import MAX_COUNT, MAX_FEW, MAX_MINUTES
from keisei.cli.streams import outlive_readers
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.waiting import be_silent
from keisei.errors import ConfigError, RunError
from keisei.training.experiments.seeds import parse_seeds
from keisei.training.interruption import Interruption

if TYPE_CHECKING:
    from keisei.games.contract import GameSpec
    from keisei.training.api import Existing, Plan
    from keisei.training.trainer import TrainResult

Target = Annotated[str, typer.Argument(help="A preset, a settings file, a game, or a run to continue.")]
Root = Annotated[Path, typer.Option(help="The folder of all runs.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting, such as learner.learning_rate=3e-4.")
]


def train(
    target: Target,
    set_: Set = None,
    name: Annotated[str | None, typer.Option(help="The run's name; by default the preset's.")] = None,
    root: Root = Path("runs"),
    steps: Annotated[
        int | None, typer.Option(min=1, max=MAX_COUNT, help="Transitions to learn from, in all.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.001, max=MAX_MINUTES, help="Minutes to train, in all.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start over; the old run is kept under another name.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the old run and start over.")
    ] = False,
    from_: Annotated[
        str | None, typer.Option("--from", help="Begin with the weights of a checkpoint, such as RUN@best.")
    ] = None,
    rewind: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX_COUNT, help="Go back to this update; the run as it was is kept as RUN.1."
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Train a run for each of these seeds, such as 0,1,2: NAME/seed0 …")
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_FEW, help="Runs of --seeds side by side; by default one for each core."),
    ] = None,
    deterministic_digest: Annotated[
        bool,
        typer.Option(
            "--deterministic-digest", help="Print the digest of the final weights, alone on stdout."
        ),
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings.")] = False,
) -> None:
    """Train by self-play. Ctrl-C saves and ends within seconds, and the same command continues from there. RUN@42 with
    --name goes on from that checkpoint as a run of its own."""
    from keisei.cli.next_commands import next_commands
    from keisei.training.api import length_overrides, plan_run

    outlive_readers(sys.stderr, *([] if deterministic_digest else [sys.stdout]))
    if quiet:
        be_silent()
    if restart and overwrite:
        raise ConfigError("--restart keeps the old run and --overwrite deletes it; give only one of them")
    overrides = [*(set_ or []), *length_overrides(steps, minutes)]
    existing: Existing = "restart" if restart else "overwrite" if overwrite else "resume"
    if seeds is not None:
        from keisei.cli.seeds import train_seeds

        if rewind is not None or deterministic_digest:
            raise ConfigError("--rewind and --deterministic-digest are about one run; leave out --seeds")
        numbers = parse_seeds(seeds)
        code = train_seeds(
            target, numbers, overrides, name, root, existing, from_, at_once, plain=plain, quiet=quiet
        )
        raise typer.Exit(code)
    console, interruption = (
        Terminal(stderr=deterministic_digest, highlight=False),
        Interruption(on_request=_tell_early),
    )
    with interruption.installed():
        plan = plan_run(
            target, overrides=overrides, name=name, root=root, existing=existing, weights_from=from_
        )
        if rewind is not None:
            console.print(_rewound(plan, rewind), soft_wrap=True, markup=False)
        result, spec = _train(plan, console, plain or None, quiet, interruption)
    if deterministic_digest:
        typer.echo(result.digest)
    is_interrupted = result.outcome == "interrupted"
    for line in next_commands(plan.run, spec, plan.config.run, ended=not is_interrupted):
        if not quiet or (is_interrupted and line.startswith("Continue")):
            console.print(line, soft_wrap=True, markup=False)
    if is_interrupted:
        raise typer.Exit(EXIT_CODE)


def _rewound(plan: Plan, update: int) -> str:
    from keisei.training.rewinding import rewind

    if plan.new is not None:
        plan.new.undo()
        raise RunError(
            f"--rewind {update} sets back a run, and {plan.run.path} is none yet; name one that exists"
        )
    return str(rewind(plan.run, str(update), plan.config))


def _train(
    plan: Plan, console: Console, plain: bool | None, quiet: bool, interruption: Interruption
) -> tuple[TrainResult, GameSpec]:
    from keisei.cli.views.live_view import make_view

    _leave_if_asked(plan, interruption)
    with make_view(console, plain=plain, quiet=quiet) as view:
        interruption.tell(
            lambda reason: view.note(f"{reason}: saving and leaving; once more leaves at once", "warning")
        )
        trainer = plan.trainer([view], interruption)
        _leave_if_asked(plan, interruption)
        return trainer.train(), trainer.parts.spec


def _tell_early(reason: str) -> None:
    """Answers Ctrl-C before anything is shown. Within a signal handler, streams of Python may be in use."""
    with suppress(OSError):
        os.write(2, f"{reason}: leaving; once more leaves at once\n".encode())


def _leave_if_asked(plan: Plan, interruption: Interruption) -> None:
    """Ends the command if Ctrl-C came before anything was trained. A new run is removed again: it holds nothing."""
    if interruption.requested:
        if plan.new is not None:
            plan.new.undo()
        raise typer.Exit(EXIT_CODE)
