"""``keisei league``: the opponents of a run, and how the learner fares against each. It only reads ``run.db``, also
while a run is being trained."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from keisei.cli.plot import find_directory
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import counted, one_line, percent
from keisei.errors import RunError
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.league import LeagueView
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow

NAME_WIDTH, CELL_WIDTH = 18, 7
MATRIX_TITLE = "The learner after each snapshot (rows) against members (columns): score in %, number of games"
MATRIX_ROWS = 12
"""Rows of the matrix on a terminal; --json has all of them."""


def league(
    run: Annotated[str, typer.Argument(help="A run: its name, or its path.")],
    root: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show the league of a run: members, scores against each, ratings, and the win-rate matrix."""
    view = _read(RunDirectory(find_directory(run, root)))
    if as_json:
        typer.echo(json.dumps(_as_json(view), indent=2))
        return
    console = Terminal(highlight=False)
    console.print(_members(view))
    for line in _facts(view):
        console.print(line, soft_wrap=True)
    if view.results:
        console.print(f"\n{MATRIX_TITLE}\n", soft_wrap=True)
        console.print(_matrix(view, console.width))


def _read(run: RunDirectory) -> LeagueView:
    if not run.database.exists():
        raise RunError(f"run {run.path} has no numbers yet; look again when it has made its first update")
    with RunDatabase(run.database, read_only=True) as database:
        view = LeagueView.of(database)
    if view is None:
        raise RunError(
            f"run {run.path} has no league; start one with it: keisei train PRESET --set league.enabled=true"
        )
    return view


def _members(view: LeagueView) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("No", "Member", "Kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Games", "Score", "(95 %)", "Elo", "(95 %)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in view.members:
        score, between, elo, elo_between = _figures(row)
        kind = "" if row.kind == "snapshot" else row.kind
        games = f"{row.games:,}"
        table.add_row(
            str(row.number), Text(one_line(row.name)), kind, games, score, between, elo, elo_between, _state(row)
        )  # fmt: skip
    return table


def _figures(row: LeagueMemberRow) -> tuple[str, str, str, str]:
    score = between = elo = elo_between = "–"
    if row.score is not None and row.low is not None and row.high is not None:
        score, between = percent(row.score, 0), f"{100 * row.low:.0f} … {100 * row.high:.0f}"
    if row.rating is not None and row.rating_low is not None and row.rating_high is not None:
        elo, elo_between = f"{row.rating:+.0f}", f"{row.rating_low:+.0f} … {row.rating_high:+.0f}"
    return score, between, elo, elo_between


def _state(row: LeagueMemberRow) -> Text:
    if row.forgotten:
        return Text("forgotten", style="yellow")
    return Text("" if row.in_pool else "leaves", style="dim")


def _facts(view: LeagueView) -> list[Text]:
    drawn, games = counted(len(view.pool), "member"), counted(view.games, "game")
    lines = [f"\n{drawn} may be drawn, {len(view.former)} left, {games}"]
    if view.worst is not None and view.worst.score is not None:
        lines.append(f"worst: {view.worst.name} with {percent(view.worst.score)}")
    names = ", ".join(row.name for row in view.forgotten)
    lines.append(f"forgotten: {len(view.forgotten)}{f' ({names})' if names else ''}")
    return [Text(line) for line in lines]


def _matrix(view: LeagueView, width: int) -> Table:
    """Draws the newest rows, and as many members as fit, of those that the learner has met."""
    room = max(1, (width - NAME_WIDTH) // CELL_WIDTH)
    met = {row.number for row in view.results}
    shown = [member for member in view.pool if member.number in met][-room:]
    cells = {(row.learner, row.number): row for row in view.results}
    table = Table("Learner", box=None, pad_edge=False)
    for member in shown:
        table.add_column(str(member.number), justify="right", no_wrap=True)
    numbers = {member.number for member in shown}
    learners = list(dict.fromkeys(row.learner for row in view.results if row.number in numbers))
    for learner in learners[-MATRIX_ROWS:]:
        found = [cells.get((learner, member.number)) for member in shown]
        table.add_row(Text(one_line(learner)), *(_cell(row) for row in found))
    return table


def _cell(row: LeagueResultRow | None) -> str:
    if row is None:
        return ""
    half = (row.high - row.low) / 2
    return f"{100 * row.score:.0f}±{100 * half:.0f}\n{row.games}"


def _as_json(view: LeagueView) -> dict[str, object]:
    return {
        "size": len(view.pool),
        "worst": None if view.worst is None else view.worst.name,
        "forgotten": [row.name for row in view.forgotten],
        "members": [asdict(row) for row in view.members],
        "former": [asdict(row) for row in view.former],
        "results": [asdict(row) for row in view.results],
    }
