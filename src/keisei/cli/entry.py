"""The start of the ``keisei`` command.

A GUI that starts ``keisei usi`` expects its first answer at once, and typer alone takes too long to import. So this
command is looked for before all others, and so is ``keisei games``, which imports enough without it.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]

_SHORT = ("config", "doctor", "games", "runs")
"""Commands that end before garbage matters. To look for it among all that they import takes a tenth of their time."""


def main() -> None:
    if sys.argv[1:2] == ["usi"]:
        from keisei.cli.usi import main as usi

        usi(sys.argv[2:], "keisei usi")
        return
    if sys.argv[1:2] and sys.argv[1] in _SHORT:
        gc.disable()
    if sys.argv[1:] == ["games"]:
        from keisei.cli.games import games

        games()
        gc.freeze()  # skips the last search too
        return
    from keisei.cli.main import app

    app()
