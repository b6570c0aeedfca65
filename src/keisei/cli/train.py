"""``keisei train``: trains a preset, a settings file or a run, and shows the progress."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from keisei.cli.views.waiting import be_silent
from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.training.api import Plan
    from keisei.training.trainer import TrainResult

Target = Annotated[str, typer.Argument(help="A preset, a settings file, or a run to continue.")]
Root = Annotated[Path, typer.Option(help="The folder of all runs.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting, such as learner.learning_rate=3e-4.")
]


def train(
    target: Target,
    set_: Set = None,
    name: Annotated[str | None, typer.Option(help="The run's name; by default the preset's.")] = None,
    root: Root = Path("runs"),
    steps: Annotated[int | None, typer.Option(min=1, help="Transitions to learn from, in all.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.001, help="Minutes to train, in all.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start over; the old run is kept under another name.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the old run and start over.")
    ] = False,
    deterministic_digest: Annotated[
        bool,
        typer.Option(
            "--deterministic-digest", help="Print the digest of the final weights, alone on stdout."
        ),
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings.")] = False,
) -> None:
    """Train by self-play. Ctrl-C saves and ends within seconds, and the same command continues from there."""
    from keisei.training.api import length_overrides, plan_run

    if quiet:
        be_silent()
    if restart and overwrite:
        raise ConfigError("--restart keeps the old run and --overwrite deletes it; give only one of them")
    plan = plan_run(
        target,
        overrides=[*(set_ or []), *length_overrides(steps, minutes)],
        name=name,
        root=root,
        existing="restart" if restart else "overwrite" if overwrite else "resume",
    )
    console = Console(stderr=deterministic_digest, highlight=False)
    result = _train(plan, console, plain or None, quiet)
    if deterministic_digest:
        typer.echo(result.digest)
    if result.outcome == "interrupted":
        console.print(f"Continue it: keisei train {plan.run.path}", soft_wrap=True, markup=False)
        raise typer.Exit(130)


def _train(plan: Plan, console: Console, plain: bool | None, quiet: bool) -> TrainResult:
    from keisei.cli.views.live_view import make_view
    from keisei.training.interruption import Interruption

    with make_view(console, plain=plain, quiet=quiet) as view:
        interruption = Interruption(
            on_request=lambda reason: view.note(
                f"{reason}: saving and leaving; once more leaves at once", "warning"
            )
        )
        with interruption.installed():
            return plan.trainer([view], interruption).train()
