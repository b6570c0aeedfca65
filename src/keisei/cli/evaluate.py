"""``keisei evaluate``: measures a run's player against other players."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.evaluation import MatchResult, Player, Tally
    from keisei.training.players import RunGame

Games = Annotated[int, typer.Option(min=2, help="Games of each match, an even number.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed plays the same games.")]
Temperature = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Temperature of networks; 0 takes the best action. The default is that of their runs' evaluations.",
    ),
]
OpeningPlies = Annotated[
    int | None,
    typer.Option(min=0, help="Random plies at the start of each pair of games; the default suits the game."),
]
Root = Annotated[Path, typer.Option(help="The directory of runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def evaluate(
    run: Annotated[
        str, typer.Argument(help="A run, RUN@best, RUN@latest, RUN@UPDATE, or a checkpoint's directory.")
    ],
    opponent: Annotated[
        list[str] | None,
        typer.Option(
            help="random (the default), greedy, heuristic, search:DEPTH, or another run; may be repeated."
        ),
    ] = None,
    games: Games = 100,
    seed: Seed = 0,
    temperature: Temperature = None,
    opening_plies: OpeningPlies = None,
    root: Root = Path("runs"),
    records: Annotated[
        Path | None,
        typer.Option(help="Write all games into this new directory, in its own format (Shogi: KIF)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a run's player against opponents, with both players in both seats. Nothing is written into the run."""
    from keisei.evaluation import play_match
    from keisei.training.players import game_of, load_player

    game = game_of(run, root)
    if records is not None:
        _prepare_records(records, game)
    player, *others = (
        load_player(text, game.spec, root, temperature) for text in (run, *(opponent or ["random"]))
    )
    with games_progress() as progress:
        matches = [
            play_match(
                game.name,
                game.options,
                player,
                other,
                games,
                seed,
                opening_plies=opening_plies,
                record=records is not None,
                on_game=_bar(progress, f"{player.name} against {other.name}", games),
            )
            for other in others
        ]
    if as_json:
        typer.echo(json.dumps(_as_json(player, matches, temperature), indent=2))
    else:
        _print(player, matches)
    if records is not None:
        _write_records(records, matches)


def games_progress() -> Progress:
    """Shows the number of finished games, on stderr."""
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _bar(progress: Progress, text: str, games: int) -> Callable[[int, int], None]:
    task = progress.add_task(text, total=games)
    return lambda ended, total: progress.update(task, completed=ended)


def _print(player: Player, matches: Sequence[MatchResult]) -> None:
    """Makes a table with one column for each opponent."""
    table = Table(box=None, pad_edge=False)
    table.add_column("against", no_wrap=True)
    for match in matches:
        table.add_column(Text(match.players[1]), justify="right")
    columns = [dict(_figures(match)) for match in matches]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(Text(column.get(name, "–")) for column in columns))
    console = Console(highlight=False)
    first = matches[0]
    heading = f"{player.name} on {first.game}, seed {first.seed}, opening plies {first.opening_plies}\n"
    console.print(Text(heading), soft_wrap=True)
    console.print(table)


def _figures(match: MatchResult) -> Iterator[tuple[str, str]]:
    from keisei.evaluation import elo_difference, likelihood_of_superiority, score_interval

    tally = match.tally()
    score, elo = score_interval(tally), elo_difference(tally)
    yield "games", f"{tally.games}"
    yield "won-drawn-lost", _results(tally)
    yield "score", f"{score.value:.1%}"
    yield "95 % interval", f"{score.low:.1%} … {score.high:.1%}"
    yield "Elo difference", "–" if elo.value is None else f"{elo.value:+.0f}"
    yield "95 % interval of it", elo.interval
    yield "is the better one", f"{likelihood_of_superiority(tally):.1%}"
    for seat in (0, 1):
        yield f"in seat {seat}", _results(match.tally(seat))
    yield "mean length", f"{match.mean_length:.1f}"
    for ending, count in match.endings.items():
        yield f"ended by {ending}", f"{count / tally.games:.1%}"


def _results(tally: Tally) -> str:
    return f"{tally.wins}-{tally.draws}-{tally.losses}"


def _as_json(player: Player, matches: Sequence[MatchResult], temperature: float | None) -> dict[str, object]:
    first = matches[0]
    return {
        "player": player.name,
        "game": first.game,
        "options": dict(first.options),
        "seed": first.seed,
        "opening_plies": first.opening_plies,
        "temperature": temperature,
        "matches": [_match_as_json(match) for match in matches],
    }


def _match_as_json(match: MatchResult) -> dict[str, object]:
    from keisei.evaluation import elo_difference, likelihood_of_superiority, score_interval

    tally = match.tally()
    return {
        "opponent": match.players[1],
        "games": tally.games,
        **asdict(tally),
        "score": asdict(score_interval(tally)),
        "elo": asdict(elo_difference(tally)),
        "superiority": likelihood_of_superiority(tally),
        "seats": [asdict(match.tally(seat)) for seat in (0, 1)],
        "mean_length": match.mean_length,
        "endings": match.endings,
    }


def _prepare_records(directory: Path, game: RunGame) -> None:
    """Checks the folder before anything is played, so no games are lost."""
    if game.spec.record_format is None:
        raise ConfigError(f"--records: {game.spec.name} has no format for records; leave it out")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        taken = any(directory.iterdir())
    except OSError as error:
        raise ConfigError(f"--records: {directory} cannot be made: {error.strerror or error}") from error
    if taken:
        raise ConfigError(f"--records: {directory} is not empty; name a new directory")


def _write_records(directory: Path, matches: Sequence[MatchResult]) -> None:
    """Writes a file for each game, named by its opponent and its number within the match."""
    from keisei.evaluation import write_record

    for place, match in enumerate(matches, start=1):
        opponent = re.sub(r"[^A-Za-z0-9._-]+", "-", match.players[1])
        for number in range(len(match.games)):
            write_record(match, number, directory / f"{place}-{opponent}-{number + 1:04d}")
