"""``keisei usi`` and ``keisei-usi``: a Shogi engine for GUIs and other programs.

A GUI waits for the first answer. So nothing heavy is imported before ``isready`` asks for the player.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

from keisei.cli.interrupts import leave_at_once
from keisei.cli.streams import prepare_streams
from keisei.interfaces.usi.engine import Engine
from keisei.interfaces.usi.protocol import EngineOptions

if TYPE_CHECKING:
    from keisei.interfaces.usi.engine import Mind

__all__ = ["main", "usi"]

_USAGE = """\
Usage: {name} [--run RUN] [--root FOLDER] [--trust RUN]

Speak USI on standard input and output, for a Shogi GUI.

  --run RUN      a run, RUN@UPDATE, a checkpoint's directory, random, greedy, or search:DEPTH (search:4)
  --root FOLDER  the folder of all runs (runs)
  --trust RUN    let a run import the code that it names; this is remembered

The GUI can set both, and more, as options of the engine.
"""


def usi(run: str = "", root: str = "") -> None:
    """Speak USI on standard input and output, for a Shogi GUI. Its options set the run, if --run does not."""
    chosen = {name: value for name, value in (("run", run), ("root", root)) if value}
    os._exit(_serve(EngineOptions(**chosen)))  # type: ignore[arg-type]


def main(arguments: list[str] | None = None, name: str = "keisei-usi") -> None:
    """Runs the engine. The arguments are read by hand, since the usual ways take longer than all the rest."""
    leave_at_once()
    prepare_streams()
    words = sys.argv[1:] if arguments is None else arguments
    found: dict[str, str] = {}
    while words:
        key, equals, value = words[0].partition("=")
        if key in ("--help", "-h"):
            sys.stdout.write(_USAGE.format(name=name))
            return
        rest = words[1:] if equals else words[2:]
        if key not in ("--run", "--root", "--trust") or not (equals or words[1:]):
            sys.stderr.write(f"error: {words[0]} is not understood\n\n{_USAGE.format(name=name)}")
            raise SystemExit(2)
        found[key[2:]] = value if equals else words[1]
        words = rest
    if trusted := found.pop("trust", ""):
        from pathlib import Path

        from keisei.cli.trusting import trust_runs

        trust_runs([trusted], Path(found.get("root", "runs")))
    usi(**found)


def _serve(options: EngineOptions) -> int:
    """Answers until ``quit``. Whatever else is written to standard output, such as warnings, goes to standard
    error."""
    answers = os.dup(1)
    os.dup2(2, 1)

    def send(line: str) -> None:
        os.write(answers, line.encode("ascii", "replace") + b"\n")

    engine = Engine(send, _load, options)
    Thread(target=engine.listen, args=(_lines(sys.stdin.buffer),), daemon=True).start()
    try:
        return engine.run()
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def _lines(stream: BinaryIO) -> Iterator[str]:
    for line in stream:
        yield line.decode("utf-8", "replace")


def _load(options: EngineOptions) -> Mind:
    """Loads the player that the options name."""
    from pathlib import Path

    import torch

    from keisei.errors import ConfigError
    from keisei.games.registry import make_game
    from keisei.interfaces.usi.thinkers import mind_of
    from keisei.policies.players.saved_player import find_player
    from keisei.policies.registry import named_player

    torch.set_num_threads(options.threads)
    policy = named_player(options.run, make_game("shogi").spec)
    if policy is not None:
        return mind_of(policy)
    saved = find_player(options.run, Path(options.root))
    if saved.game.spec.name != "shogi":
        raise ConfigError(
            f"{options.run} plays {saved.game.spec.name}, and USI is for Shogi; name a run of Shogi"
        )
    return mind_of(saved.policy(), saved.game.options)
