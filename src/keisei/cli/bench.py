"""``keisei bench``: every figure that the README quotes, measured on this machine."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from keisei.cli.installation import checkout
from keisei.errors import KeiseiError

app = typer.Typer(no_args_is_help=True, help="Measure, side by side with others, on this machine.")

Rounds = Annotated[int, typer.Option(min=1, help="How often each contender has its turn; medians are shown.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


class CollectedGame(StrEnum):
    """What ``collect`` can be measured on."""

    DUMMY = "dummy"
    SHOGI = "shogi"


@app.callback()
def _bench() -> None:
    """Keeps ``bench`` a group, however many measurements it has."""


@app.command()
def games(
    rounds: Rounds = 5,
    seconds: Annotated[float, typer.Option(min=0.01, help="How long a turn lasts.")] = 1.0,
    peers: Annotated[bool, typer.Option("--peers", help="Measure pgx too (the extra `peers`).")] = False,
    as_json: Json = False,
) -> None:
    """Steps per second of Shogi, ours and others'."""
    _benchmark("games").run(
        rounds=rounds, seconds=seconds, peers=peers, as_json=as_json, console=Console(highlight=False)
    )


@app.command()
def weights(rounds: Rounds = 3, as_json: Json = False) -> None:
    """How fast new weights reach 1, 4 and 8 workers: ours, a queue of pickled ones, and memcpy."""
    _benchmark("weights").run(rounds=rounds, as_json=as_json, console=Console(highlight=False))


@app.command()
def networks(
    game: Annotated[str, typer.Option(help="The game whose positions are looked at.")] = "shogi",
    rounds: Rounds = 3,
    as_json: Json = False,
) -> None:
    """What each kind of network takes to play and to learn, for one position."""
    _benchmark("networks").run(game=game, rounds=rounds, as_json=as_json, console=Console(highlight=False))


@app.command()
def training(rounds: Rounds = 3, as_json: Json = False) -> None:
    """Training in one process and with workers, at equal learning work: the same transitions, steps and weights."""
    measured = _benchmark("training")
    measured.run(measured.Settings(rounds=rounds), as_json=as_json, console=Console(highlight=False))


@app.command()
def search(rounds: Rounds = 3, as_json: Json = False) -> None:
    """How long the players greedy and search:DEPTH take for a move of Shogi."""
    _benchmark("search").run(rounds=rounds, as_json=as_json, console=Console(highlight=False))


@app.command()
def collect(
    rounds: Rounds = 3,
    seconds: Annotated[float, typer.Option(min=0.01, help="How long a turn lasts, at least.")] = 0.5,
    games_per_worker: Annotated[
        int, typer.Option(min=1, help="Games that a worker plays side by side.")
    ] = 256,
    game: Annotated[CollectedGame | None, typer.Option(help="Measure one game only.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Measure SB3, TorchRL and Gymnasium too.")] = False,
    as_json: Json = False,
) -> None:
    """Transitions per second that reach the learner: ours, the machine's limits, a queue of dicts, and peers'."""
    collecting = _benchmark("collect")
    settings = collecting.Settings(
        rounds=rounds,
        seconds=seconds,
        games_per_worker=games_per_worker,
        games=tuple(CollectedGame) if game is None else (game,),
        peers=peers,
    )
    collecting.run(settings, as_json=as_json, console=Console(highlight=False))


@app.command()
def learning(
    preset: Annotated[list[str] | None, typer.Option(help="Only this preset; may be given again.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each preset, with seeds 0, 1 …")] = 1,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="In place of a preset's own length.")
    ] = None,
    games: Annotated[int, typer.Option(min=2, help="Games of each match; an even number.")] = 200,
    keep: Annotated[Path | None, typer.Option(help="Keep the runs in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Train the presets from nothing and count what they score. All of them take three quarters of an hour."""
    _benchmark("learning").run(
        preset or [], seeds, minutes, games, as_json=as_json, console=Console(highlight=False), keep=keep
    )


@app.command("learning-networks")
def learning_networks(
    preset: Annotated[str, typer.Option(help="Whose game and learner.")] = "shogi-quickstart",
    minutes: Annotated[float, typer.Option(min=0.01, help="For each network.")] = 3.0,
    games: Annotated[int, typer.Option(min=2, help="Games of each match; an even number.")] = 100,
    as_json: Json = False,
) -> None:
    """What several networks learn in the same time."""
    _benchmark("learning").compare_networks(
        preset, minutes, games, as_json=as_json, console=Console(highlight=False)
    )


@app.command("learning-modes")
def learning_modes(
    preset: Annotated[str, typer.Option(help="What is trained.")] = "connect-four-ppo",
    steps: Annotated[int, typer.Option(min=1, help="Transitions that each loop learns from.")] = 300_000,
    games: Annotated[int, typer.Option(min=2, help="Games of each match; an even number.")] = 200,
    as_json: Json = False,
) -> None:
    """What the synchronous and the asynchronous loop learn from as many transitions."""
    _benchmark("learning").compare_modes(
        preset, steps, games, as_json=as_json, console=Console(highlight=False)
    )


def _benchmark(name: str) -> Any:
    """A module of ``benchmarks/``, which lies in the project's folder and is not installed with the package:
    it imports the libraries that we compare with, and some of those are under other licences."""
    root = checkout()
    if root is None:
        raise KeiseiError(
            "benchmarks run from a checkout of the project, where the folder benchmarks/ is; "
            "this is an installed copy"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module(f"benchmarks.{name}")
