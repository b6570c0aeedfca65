"""The start of the ``keisei`` command.

A GUI that starts ``keisei usi`` expects its first answer at once, and typer alone takes too long to import. So this
command is looked for before all others, and so is ``keisei games``, which imports enough without it. Before anything
else, Ctrl-C is taken care of.
"""

from __future__ import annotations

import gc
import os
import sys

from keisei.cli.interrupts import leave_at_once

__all__ = ["main"]

_SHORT = ("config", "doctor", "games", "runs")
"""Commands that end too soon to need garbage collection, which would take a tenth of their time."""


def main() -> None:
    leave_at_once()
    from keisei.cli.streams import prepare_streams

    prepare_streams()
    if sys.argv[1:2] == ["usi"]:
        from keisei.cli.usi import main as usi

        usi(sys.argv[2:], "keisei usi")
        return
    if sys.argv[1:2] and sys.argv[1] in _SHORT:
        gc.disable()
    if sys.argv[1:] == ["games"]:
        _list_games()
        return
    from keisei.cli.main import app

    app()


def _list_games() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nothing here uses
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for some among all packages
    from keisei.cli.games import games

    try:
        games()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    gc.freeze()  # skips the last search too
