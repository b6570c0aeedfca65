"""``keisei play``: plays a batch of random games and prints statistics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from keisei.games import Game, GameSpec, Step, make_game
from keisei.games.registry import DEFAULT_GAME


@dataclass(slots=True)
class GamesPlayed:
    """What has been played so far."""

    spec: GameSpec
    plies: int = 0
    lengths: list[int] = field(default_factory=list)
    endings: NDArray[np.int64] = field(init=False)
    wins: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.endings = np.zeros(len(self.spec.endings), np.int64)
        self.wins = np.zeros(self.spec.seats, np.int64)

    @property
    def games(self) -> int:
        return len(self.lengths)

    def add(self, step: Step) -> int:
        """Counts one step of the whole batch. Returns the number of games that it finished."""
        done = step.done
        self.plies += len(done)
        self.lengths += step.plies[done].tolist()
        self.endings += np.bincount(step.ending[done], minlength=len(self.endings))
        self.wins += (step.scores[done] > 0).sum(axis=0)
        return int(done.sum())


def play(
    game: Annotated[
        str, typer.Option(help="A name that `keisei games` lists, or module:Class.")
    ] = DEFAULT_GAME,
    games: Annotated[int, typer.Option(min=1, help="Stop once this many games are finished.")] = 2000,
    batch: Annotated[int, typer.Option(min=1, help="Games played side by side.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="The same seed plays the same games.")] = 0,
) -> None:
    """Play random games and print the speed and how they ended."""
    console = Console(highlight=False)
    players = make_game(game, batch=batch, seed=seed)
    started = time.perf_counter()
    played = _play(players, games, console)
    _print_figures(console, played, time.perf_counter() - started)


def _play(players: Game, games: int, console: Console) -> GamesPlayed:
    played = GamesPlayed(players.spec)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"random {players.spec.name} games", total=games)
        while played.games < games:
            progress.advance(task, played.add(players.step(players.random_actions())))
    return played


def _print_figures(console: Console, played: GamesPlayed, seconds: float) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("games", f"{played.games:,}")
    table.add_row("plies", f"{played.plies:,}")
    table.add_row("plies/s", f"{played.plies / max(seconds, 1e-9):,.0f}")
    table.add_row("mean length", f"{np.mean(played.lengths):.1f}")
    for name, count in zip(played.spec.endings, played.endings, strict=True):
        if count:
            table.add_row(f"ended by {name}", f"{count / played.games:.1%}")
    for seat, count in enumerate(played.wins):
        table.add_row(f"won by seat {seat}", f"{count / played.games:.1%}")
    console.print(table)
