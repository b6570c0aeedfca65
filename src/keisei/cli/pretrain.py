"""``keisei pretrain``: makes a run whose network has learned from recorded games."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from keisei.cli.numbers import MAX_FEW
from keisei.cli.streams import outlive_readers
from keisei.cli.train import Root, Set
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import percent

if TYPE_CHECKING:
    from keisei.training.pretraining import Epoch

PRESET = "shogi-ppo"


def pretrain(
    games: Annotated[list[Path], typer.Argument(help="Records (KIF, CSA, SFEN), or folders of them.")],
    run: Annotated[str, typer.Option("--run", help="The name of the new run.")],
    preset: Annotated[str, typer.Option(help="The preset or settings file of the run.")] = PRESET,
    set_: Set = None,
    root: Root = Path("runs"),
    epochs: Annotated[int, typer.Option(min=1, max=MAX_FEW, help="How often it learns from all games.")] = 5,
    held_out: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="The share of games that only measure it.")
    ] = 0.1,
    learning_rate: Annotated[float, typer.Option(min=1e-9, max=10, help="The size of its steps.")] = 1e-3,
) -> None:
    """Make a run whose network imitates recorded games. `keisei train` then goes on with it."""
    from keisei.learners.imitation import ImitationConfig
    from keisei.runs.run_names import check_run_name
    from keisei.training.presets import find_source
    from keisei.training.pretraining import pretrain as learn
    from keisei.training.pretraining import read_library

    outlive_readers(sys.stdout, sys.stderr)
    check_run_name(run)
    console = Terminal(highlight=False)
    config = find_source(preset, root).config(set_ or []).resolved()
    library = read_library(games, config.env.make(batch=1, seed=0).spec)
    console.print(f"{len(library.games):,} games")
    for reason in library.skipped:
        console.print(f"left out: {reason}", style="yellow", markup=False, soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task("minibatches", total=None)

        def on_epoch(epoch: Epoch) -> None:
            console.print(_line(epoch), markup=False)

        found = learn(
            library,
            config,
            run,
            root,
            epochs=epochs,
            held_out=held_out,
            settings=ImitationConfig(learning_rate=learning_rate),
            on_step=lambda done, total: progress.update(task, completed=done, total=total),
            on_epoch=on_epoch,
        )
    console.print(
        f"learned from {found.learned:,} decisions and measured on {found.held_out:,} others: the weights of epoch "
        f"{found.best.number} are kept, whose log loss is the lowest ({found.best.skill.log_loss:.3f}); they find "
        f"{percent(found.best.skill.accuracy)} of the moves",
        soft_wrap=True,
    )
    console.print(f"Train it on: keisei train {found.run.path}", markup=False, soft_wrap=True)


def _line(epoch: Epoch) -> str:
    skill = epoch.skill
    return (
        f"epoch {epoch.number}: loss {epoch.loss:.3f}; held out: accuracy {percent(skill.accuracy)}, "
        f"log loss {skill.log_loss:.3f}, value error {skill.value_error:.3f}"
    )
