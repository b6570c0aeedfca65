"""The ``keisei`` command: its subcommands, and how errors are shown."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import keisei
from keisei.cli import (
    bench,
    config,
    doctor,
    evaluate,
    games,
    league,
    perft,
    play,
    plot,
    profile,
    runs,
    soak,
    tournament,
    train,
    verify,
)
from keisei.errors import KeiseiError

__all__ = ["app"]


class _Group(TyperGroup):
    """Turns Keisei's own errors into one message and exit code 2.

    Any other error is a bug and keeps its traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeiseiError as error:
            if os.environ.get("KEISEI_DEBUG") == "1":
                raise
            text = "\n".join([f"error: {error}", *getattr(error, "__notes__", ())])
            Console(stderr=True).print(Text(text, style="bold red"), soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train game-playing agents by self-play. KEISEI_DEBUG=1 shows the traceback of an error.",
)
app.add_typer(bench.app, name="bench")
app.command("config")(config.config)
app.command("doctor")(doctor.doctor)
app.command("evaluate")(evaluate.evaluate)
app.command("games")(games.games)
app.command("ladder")(tournament.ladder)
app.command("league")(league.league)
app.command("perft")(perft.perft)
app.command("play")(play.play)
app.command("plot")(plot.plot)
app.command("profile")(profile.profile)
app.command("runs")(runs.runs)
app.command("soak")(soak.soak)
app.command("tournament")(tournament.tournament)
app.command("train")(train.train)
app.command("verify")(verify.verify)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"keisei {keisei.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options before any subcommand."""
