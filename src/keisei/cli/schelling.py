"""``keisei schelling``: what cooperating and defecting earns in a world, by the number of others who cooperate."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from keisei.cli.numbers import MAX_GAMES, MAX_SEED
from keisei.cli.views.terminal import Terminal

if TYPE_CHECKING:
    from keisei.training.studies.schelling import Choice, Diagram

_WIDTH = 30


def schelling(
    run: Annotated[str, typer.Argument(help="A run of cleanup or stag hunt.")],
    games: Annotated[int, typer.Option(min=1, max=MAX_GAMES, help="Episodes of each checkpoint.")] = 32,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The seed of the worlds.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
) -> None:
    """Show what cooperating and defecting earns in a world, by the number of others who cooperate."""
    from keisei.training.studies.schelling import schelling_diagram

    found = schelling_diagram(run, root=root, games=games, seed=seed)
    console = Terminal(highlight=False)
    if as_json:
        console.file.write(json.dumps(asdict(found), indent=2) + "\n")
        return
    console.print(_table(found))
    console.print(f"an agent of {found.game} cooperates if it {found.cooperating}")
    if found.is_dilemma:
        console.print("all agents earn more if all cooperate than if none does")


def _table(found: Diagram) -> Table:
    table = Table(box=SIMPLE)
    for heading, side in (
        ("others who cooperate", "right"),
        ("a cooperator earns", "left"),
        ("a defector", "left"),
    ):
        table.add_column(heading, justify="right" if side == "right" else "left")
    means = [c.mean for c in (*found.cooperators, *found.defectors) if not isnan(c.mean)]
    most = max((abs(mean) for mean in means), default=0.0) or 1.0
    for count, pair in enumerate(zip(found.cooperators, found.defectors, strict=True)):
        table.add_row(str(count), *(_bar(choice, most) for choice in pair))
    return table


def _bar(choice: Choice, most: float) -> str:
    if isnan(choice.mean):
        return "–"
    length = round(_WIDTH * abs(choice.mean) / most)
    return f"{choice.mean:8.1f} {'█' * length:<{_WIDTH}} ({choice.episodes})"
