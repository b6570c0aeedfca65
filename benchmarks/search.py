"""The speed of the built-in players in Shogi, on one core, on positions of their own games.

`python -m benchmarks.search` prints the time for a move and the positions searched per second. The positions come
from games of search:1 against itself, so they are typical of real games.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.measure import machine, race, rate_of
from keisei.games import make_game
from keisei.native import core
from keisei.policies import SearchPlayer, Situation

GAMES, PLIES, EVERY = 16, 120, 12
DEPTHS = (1, 2, 3, 4)
SECONDS = 0.5


@dataclass(frozen=True)
class SearchReport:
    machine: str
    positions: int
    milliseconds_per_move: dict[str, float]
    nodes_per_second: dict[str, float]
    nodes_per_move: dict[str, float]


def run(*, rounds: int, as_json: bool, console: Console) -> None:
    positions = lively_positions()
    nodes = {f"search:{depth}": float(_nodes(positions, depth).mean()) for depth in DEPTHS}
    contenders = {"greedy": partial(_rate, positions, 0)}
    contenders |= {f"search:{depth}": partial(_rate, positions, depth) for depth in DEPTHS}
    moves = race(contenders, SECONDS, rounds, console)
    report = SearchReport(
        machine(),
        len(positions),
        {name: 1000 / rate for name, rate in moves.items()},
        {name: moves[name] * count for name, count in nodes.items()},
        nodes,
    )
    if as_json:
        console.print_json(json.dumps(asdict(report)))
        return
    table = Table(
        "player", "ms a move", "nodes a move", "nodes/s", title=report.machine, title_justify="left"
    )
    for name, milliseconds in report.milliseconds_per_move.items():
        looked_at = [
            figures[name] for figures in (report.nodes_per_move, report.nodes_per_second) if name in figures
        ]
        table.add_row(name, f"{milliseconds:.4f}", *(f"{number:,.0f}" for number in looked_at))
    console.print(table)


def lively_positions() -> NDArray[np.uint8]:
    """[positions, 64]: packed positions from all stages of games."""
    game = make_game("shogi", batch=GAMES, seed=1)
    situation, player = Situation(game, 1, 0), SearchPlayer(1)
    packed = []
    for ply in range(PLIES):
        if ply % EVERY == EVERY - 1:
            packed.append(game.pack())
        game.step(player.act(situation).actions if ply >= 4 else game.random_actions())
        situation.advance()
    return np.concatenate(packed)


def _nodes(positions: NDArray[np.uint8], depth: int) -> NDArray[np.uint64]:
    """Counts the searched positions for each; depth 0 stands for greedy, which searches none."""
    rows = len(positions)
    keys, nodes = np.arange(rows, dtype=np.uint64), np.zeros(rows, np.uint64)
    actions, scores = np.empty(rows, np.int32), np.empty(rows, np.int32)
    if depth:
        core.search(positions, depth, keys, actions, scores, nodes)
    else:
        core.grab(positions, keys, actions, scores, nodes)
    return nodes


def _rate(positions: NDArray[np.uint8], depth: int, seconds: float) -> float:
    """Measures moves per second. All positions are used each time, since they differ in cost."""
    return rate_of(lambda: len(_nodes(positions, depth)), seconds)


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each player has its turn.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    run(rounds=rounds, as_json=as_json, console=Console(highlight=False))


if __name__ == "__main__":
    typer.run(main)
