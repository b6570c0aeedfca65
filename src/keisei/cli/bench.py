"""``keisei bench``: measures every figure of the README on this machine."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from keisei.cli.installation import checkout
from keisei.cli.numbers import MAX_COUNT, MAX_FEW, MAX_GAMES, MAX_MINUTES, MAX_SECONDS
from keisei.cli.views.terminal import Terminal
from keisei.errors import KeiseiError

app = typer.Typer(no_args_is_help=True, help="Measure Keisei beside other libraries, on this machine.")

Rounds = Annotated[int, typer.Option(min=1, max=MAX_FEW, help="Rounds of each contender; medians are shown.")]
Seconds = Annotated[float, typer.Option(min=0.01, max=MAX_SECONDS, help="How long a turn lasts, at least.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


class CollectedGame(StrEnum):
    """The games that ``collect`` can measure."""

    DUMMY = "dummy"
    SHOGI = "shogi"


@app.callback()
def _bench() -> None:
    """Keeps ``bench`` a group, even with a single measurement."""


@app.command()
def games(
    rounds: Rounds = 5,
    seconds: Seconds = 1.0,
    peers: Annotated[bool, typer.Option("--peers", help="Measure pgx too (the extra `peers`).")] = False,
    as_json: Json = False,
) -> None:
    """Measure the steps per second of Shogi, ours and others', and of Ludo."""
    _benchmark("games").run(
        rounds=rounds, seconds=seconds, peers=peers, as_json=as_json, console=Terminal(highlight=False)
    )


@app.command()
def worlds(
    rounds: Rounds = 5,
    seconds: Seconds = 0.5,
    as_json: Json = False,
) -> None:
    """Measure the turns per second of grid worlds, beside a plain loop with an object for each cell."""
    _benchmark("worlds").run(
        rounds=rounds, seconds=seconds, as_json=as_json, console=Terminal(highlight=False)
    )


@app.command()
def weights(rounds: Rounds = 3, as_json: Json = False) -> None:
    """Measure how fast new weights reach 1, 4 and 8 workers: ours, a queue of pickled weights, and memcpy."""
    _benchmark("weights").run(rounds=rounds, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def networks(
    game: Annotated[str, typer.Option(help="The game whose positions are used.")] = "shogi",
    rounds: Rounds = 3,
    as_json: Json = False,
) -> None:
    """Measure how long each kind of network takes to play and to learn, for one position."""
    _benchmark("networks").run(game=game, rounds=rounds, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def training(rounds: Rounds = 3, as_json: Json = False) -> None:
    """Compare training in one process and with workers, with the same transitions, steps and weights."""
    measured = _benchmark("training")
    measured.run(measured.Settings(rounds=rounds), as_json=as_json, console=Terminal(highlight=False))


@app.command()
def dqn(rounds: Rounds = 3, as_json: Json = False) -> None:
    """Compare DQN in one process and with workers, at equal gradient steps for each transition."""
    measured = _benchmark("dqn")
    measured.run(measured.Settings(rounds=rounds), as_json=as_json, console=Terminal(highlight=False))


@app.command()
def replay(
    rounds: Rounds = 5,
    seconds: Seconds = 0.5,
    as_json: Json = False,
) -> None:
    """Measure how fast a replay takes and gives decisions, and their bytes, beside SB3, TorchRL and cpprb."""
    replaying = _benchmark("replay")
    settings = replaying.Settings(rounds=rounds, seconds=seconds)
    replaying.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def independent(
    agents: Annotated[
        list[int] | None, typer.Option(min=1, max=128, help="A number of agents; may be given again.")
    ] = None,
    rounds: Rounds = 3,
    seconds: Seconds = 1.0,
    as_json: Json = False,
) -> None:
    """Compare independent agents that act and learn one after another with all at once, at equal learning work."""
    measured = _benchmark("independent")
    settings = measured.Settings(rounds=rounds, seconds=seconds)
    if agents:
        settings = replace(settings, agents=tuple(agents))
    measured.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def search(rounds: Rounds = 3, as_json: Json = False) -> None:
    """Measure how long the players greedy and search:DEPTH take for a move of Shogi."""
    _benchmark("search").run(rounds=rounds, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def serve(
    rounds: Rounds = 3,
    clients: Annotated[int, typer.Option(min=1, max=MAX_FEW, help="Clients on the stream.")] = 50,
    as_json: Json = False,
) -> None:
    """Measure the pages of the dashboard with 500 runs and 50,000 updates, and training while clients watch."""
    measured = _benchmark("serve")
    settings = measured.Settings(rounds=rounds, clients=clients)
    measured.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def start(rounds: Rounds = 7, as_json: Json = False) -> None:
    """Measure how long commands take from start to end, those without torch and some with it."""
    _benchmark("start").run(rounds=rounds, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def collect(
    rounds: Rounds = 3,
    seconds: Seconds = 0.5,
    games_per_worker: Annotated[
        int, typer.Option(min=1, max=MAX_GAMES, help="Games that a worker plays side by side.")
    ] = 256,
    game: Annotated[CollectedGame | None, typer.Option(help="Measure one game only.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Measure SB3, TorchRL and Gymnasium too.")] = False,
    as_json: Json = False,
) -> None:
    """Measure the transitions per second that reach the learner: ours, the machine's limits, a queue of dicts, and
    peers."""
    collecting = _benchmark("collect")
    settings = collecting.Settings(
        rounds=rounds,
        seconds=seconds,
        games_per_worker=games_per_worker,
        games=tuple(CollectedGame) if game is None else (game,),
        peers=peers,
    )
    collecting.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def league(
    rounds: Annotated[int, typer.Option(min=1, max=MAX_FEW, help="Pairs of turns; medians are shown.")] = 30,
    seconds: Seconds = 1.0,
    preset: Annotated[
        str, typer.Option(help="The preset with game, network and tables.")
    ] = "shogi-quickstart",
    members: Annotated[int, typer.Option(min=1, max=MAX_FEW, help="Snapshots in the pool.")] = 12,
    as_json: Json = False,
) -> None:
    """Measure what collecting costs in a league: half of the games against a pool, compared with self-play."""
    measured = _benchmark("league")
    settings = measured.Settings(rounds=rounds, seconds=seconds, preset=preset, members=members)
    measured.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def ray(
    rounds: Annotated[int, typer.Option(min=1, max=MAX_FEW, help="Pairs of turns; medians are shown.")] = 5,
    seconds: Seconds = 4.0,
    preset: Annotated[
        str, typer.Option(help="The preset with game, network and tables.")
    ] = "shogi-quickstart",
    as_json: Json = False,
) -> None:
    """Measure what a Ray cluster costs beside processes, and check the forecasts of `keisei simulate`."""
    measured = _benchmark("cluster")
    settings = measured.Settings(rounds=rounds, seconds=seconds, preset=preset)
    measured.run(settings, as_json=as_json, console=Terminal(highlight=False))


@app.command()
def learning(
    preset: Annotated[list[str] | None, typer.Option(help="Only this preset; may be given again.")] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_FEW, help="Runs of each preset, with seeds 0, 1 …")
    ] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, max=MAX_MINUTES, help="Length in place of the preset's own."),
    ] = None,
    games: Annotated[
        int, typer.Option(min=2, max=MAX_GAMES, help="Games of each match; an even number.")
    ] = 200,
    keep: Annotated[Path | None, typer.Option(help="Keep the runs in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Train the presets from nothing and measure their scores. All together take more than an hour."""
    _benchmark("learning").run(
        preset or [], seeds, minutes, games, as_json=as_json, console=Terminal(highlight=False), keep=keep
    )


@app.command("learning-networks")
def learning_networks(
    preset: Annotated[str, typer.Option(help="The preset with game and learner.")] = "shogi-quickstart",
    minutes: Annotated[
        float, typer.Option(min=0.01, max=MAX_MINUTES, help="Minutes for each network.")
    ] = 3.0,
    games: Annotated[
        int, typer.Option(min=2, max=MAX_GAMES, help="Games of each match; an even number.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Compare what several networks learn in the same time."""
    _benchmark("learning").compare_networks(
        preset, minutes, games, as_json=as_json, console=Terminal(highlight=False)
    )


@app.command("learning-modes")
def learning_modes(
    preset: Annotated[str, typer.Option(help="The preset to train.")] = "connect-four-ppo",
    steps: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help="Transitions that each loop learns from.")
    ] = 300_000,
    games: Annotated[
        int, typer.Option(min=2, max=MAX_GAMES, help="Games of each match; an even number.")
    ] = 200,
    as_json: Json = False,
) -> None:
    """Compare what the synchronous and the asynchronous loop learn from the same number of transitions."""
    _benchmark("learning").compare_modes(
        preset, steps, games, as_json=as_json, console=Terminal(highlight=False)
    )


def _benchmark(name: str) -> Any:
    """Imports a module of ``benchmarks/``. That folder is not installed with the package: it imports the libraries
    that we compare with, and some of these have other licences."""
    root = checkout()
    if root is None:
        raise KeiseiError(
            "benchmarks run from a checkout of the project, where the folder benchmarks/ is; "
            "this is an installed copy"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module(f"benchmarks.{name}")
