"""The ``keisei`` command: its subcommands, and how errors are shown.

A subcommand is imported when it is called, so ``keisei --help`` and small commands start at once.
"""

from __future__ import annotations

import atexit
import errno
import gc
import logging
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from keisei.cli.interrupts import EXIT_CODE, interruptible, was_interrupted
from keisei.cli.trusting import taking_trust
from keisei.cli.views.waiting import torch_announced
from keisei.errors import KeiseiError

__all__ = ["app"]

COMMANDS = {
    "bench": "Measure Keisei beside other libraries, on this machine.",
    "config": "Print all settings of a run, defaults included, as YAML that `keisei train` reads.",
    "doctor": "Show what this machine has, what is missing, and how to get it.",
    "evaluate": "Play a run's player against opponents, in each seat equally often.",
    "export": "Write the network of a run as ONNX.",
    "games": "List all games with their seats, actions and observations.",
    "ladder": "Play each checkpoint of a run against the ones before it, and rate them, oldest first.",
    "league": "Show the league of a run: members, scores against each, ratings, and the win-rate matrix.",
    "match": "Play a match of two players, and tell the difference of their ratings.",
    "perft": "Count the leaves of the tree of legal Shogi moves, to check the rules and the speed of the core.",
    "picture": "Draw a game of Shogi from its record, or an episode of a world that a run's agents play.",
    "play": "Play against a run or any other player.",
    "plot": "Draw curves of runs: strength, entropy, games and speed over the transitions.",
    "pretrain": "Make a run whose network imitates recorded games.",
    "profile": "Show where the time of training goes: collecting, preparing, learning, publishing weights.",
    "runs": "List all runs with their state, progress and last scores.",
    "schelling": "Show what cooperating and defecting earns in a world, by the number of others who cooperate.",
    "serve": "Show all runs in a browser, live, and play against them.",
    "simulate": "Estimate how fast a cluster is, and where more nodes no longer help.",
    "soak": "Kill, stop, reset and pause workers, and check every slab.",
    "sweep": "Train a preset with several settings and seeds, and tell which settings are best.",
    "tournament": "Play all players against each other, and rate them.",
    "train": "Train by self-play.",
    "usi": "Speak USI on standard input and output, for a Shogi GUI.",
    "verify": "Check that all backends and all numbers of workers collect the same experience.",
}
"""The subcommands, with their lines in the help. Each is the first sentence of the command's own help."""
_PLACES = {"bench": "bench:app", "ladder": "tournament:ladder"}
"""Where a subcommand is within ``keisei.cli``, if it is not a function in a module of the same name."""


class _Group(TyperGroup):
    """Imports the subcommand that is called. Turns Keisei's own errors into one message and exit code 2.

    Any other error is a bug and keeps its traceback.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        command = None if name is None else _imported(name)
        ctx.with_resource(interruptible())  # from now on it may have something to tidy up
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        if logging.lastResort is not None:  # prints the warnings of commands that show them in no other way
            logging.lastResort.setFormatter(_Visible())
        try:
            with torch_announced():
                return super().invoke(ctx)
        except Exception as error:
            if was_interrupted() and os.environ.get("KEISEI_DEBUG") != "1":
                raise typer.Exit(EXIT_CODE) from None  # a library has turned the interrupt into another error
            if not isinstance(error, KeiseiError | OSError):
                raise
            if not isinstance(error, KeiseiError) and error.errno != errno.ENAMETOOLONG:
                raise
            if os.environ.get("KEISEI_DEBUG") == "1":
                raise
            from rich.text import Text

            from keisei.cli.views.terminal import Terminal

            text = "\n".join([f"error: {_told(error)}", *getattr(error, "__notes__", ())])
            Terminal(stderr=True).print(Text(text, style="bold red"), soft_wrap=True)
            raise typer.Exit(2) from None


def _told(error: KeiseiError | OSError) -> str:
    """Writes the text of an error. If a file name is too long, a person has typed it, so the error is told in plain
    words."""
    if isinstance(error, KeiseiError):
        return str(error)
    return (
        f"there is no file and no run with a path of {len(str(error.filename))} letters, {str(error.filename)[:60]!r} "
        f"…; the name of a run has 100 letters at most"
    )


class _Visible(logging.Formatter):
    """Shows control sequences in warnings as text: they may quote what others have written."""

    def format(self, record: logging.LogRecord) -> str:
        from keisei.cli.views.terminal import visible

        return visible(super().format(record))


def _imported(name: str) -> Any:
    module, _, attribute = _PLACES.get(name, f"{name}:{name}").partition(":")
    found = getattr(import_module(f"keisei.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(taking_trust(found))
        found = alone
    return typer.main.get_command(found)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train game-playing agents by self-play. KEISEI_DEBUG=1 shows the traceback of an error.",
)


def _stand_in() -> None:
    """Takes the place of a subcommand in the help."""


for _name, _line in COMMANDS.items():
    app.command(_name, help=_line)(_stand_in)


@atexit.register
def _leave_at_once() -> None:
    """Skips Python's last search for garbage, which takes a sixth of the time of a small command."""
    if "torch" not in sys.modules:
        gc.freeze()


def _show_version(asked: bool) -> None:
    if asked:
        import keisei

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
