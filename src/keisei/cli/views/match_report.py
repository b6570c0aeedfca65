"""What the commands that play matches share: progress, tables, JSON, and files with records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import duration, likelihood, percent
from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.evaluation import Interval, MatchResult, Tally
    from keisei.games import GameSpec
    from keisei.policies.players.saved_player import CheckpointFacts


_LONGEST_NAME = 80
"""Letters of an opponent in the name of a file; an engine's command may be long."""


def games_progress() -> Progress:
    """Shows the number of finished games, on stderr."""
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Terminal(stderr=True), transient=True)


def bar_of(progress: Progress, text: str, games: int) -> Callable[[int, int], None]:
    task = progress.add_task(text, total=games)
    return lambda ended, total: progress.update(task, completed=ended)


def print_facts(name: str, facts: CheckpointFacts | None) -> None:
    """Says which weights of a run play, and how old they are."""
    if facts is None:
        return
    of = "" if facts.newest == facts.update else f" of {facts.newest:,}"
    goes_on = ", and the run goes on" if facts.is_running else ""
    text = f"{name} plays with update {facts.update:,}{of}{_age(facts.saved)}{goes_on}."
    Terminal(highlight=False).print(Text(text), soft_wrap=True)


def _age(saved: str) -> str:
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(saved)).total_seconds()
    except (ValueError, TypeError):  # somebody else has written the checkpoint
        return ""
    return f", saved {duration(seconds)} ago"


def print_matches(player: str, matches: Sequence[MatchResult]) -> None:
    """Makes a table with one column for each opponent."""
    table = Table(box=None, pad_edge=False)
    table.add_column("against", no_wrap=True)
    for match in matches:
        table.add_column(Text(match.players[1]), justify="right")
    columns = [dict(_figures(match)) for match in matches]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(Text(column.get(name, "–")) for column in columns))
    console = Terminal(highlight=False)
    first = matches[0]
    heading = f"{player} on {first.game}, seed {first.seed}, opening plies {first.opening_plies}\n"
    console.print(Text(heading), soft_wrap=True)
    console.print(table)


def _figures(match: MatchResult) -> Iterator[tuple[str, str]]:
    from keisei.evaluation import likelihood_of_superiority

    tally, score, elo = match.tally(), match.score, match.elo
    yield "games", f"{len(match.games)}"
    if match.by_returns:
        yield from _returns(match)
    yield "won-drawn-lost", _results(tally)
    yield "score", percent(score.value)
    yield "95 % interval", f"{percent(score.low)} … {percent(score.high)}"
    yield "Elo difference", "–" if elo.value is None else f"{elo.value:+.0f}"
    yield "95 % interval of it", elo.interval
    if match.comparisons == 1:  # comparisons of one game are not independent
        yield "is the better one", likelihood(likelihood_of_superiority(tally))
    if match.seats > 1:
        for seat in range(match.seats):
            yield f"in seat {seat}", _results(match.tally(seat))
    yield "mean length", f"{match.mean_length:.1f}"
    for ending, count in match.endings.items():
        yield f"ended by {ending}", percent(count / len(match.games))


def _returns(match: MatchResult) -> Iterator[tuple[str, str]]:
    mean, lead = match.mean_return, match.lead
    yield "mean return", f"{mean.value:.3f}"
    yield "95 % interval of the return", f"{mean.low:.3f} … {mean.high:.3f}"
    yield "return of the opponent", f"{match.opponent_return:.3f}"
    yield "lead over it", f"{lead.value:+.3f}"
    yield "95 % interval of the lead", f"{lead.low:+.3f} … {lead.high:+.3f}"
    if match.seats > 1:
        yield "mean rank", f"{match.mean_rank:.2f} of {match.seats}"


def _results(tally: Tally) -> str:
    return f"{tally.wins}-{tally.draws}-{tally.losses}"


def matches_as_json(
    name: str, matches: Sequence[MatchResult], temperature: float | None
) -> dict[str, object]:
    first = matches[0]
    return {
        "player": name,
        "game": first.game,
        "options": dict(first.options),
        "seed": first.seed,
        "opening_plies": first.opening_plies,
        "temperature": temperature,
        "matches": [_match_as_json(match) for match in matches],
    }


def _match_as_json(match: MatchResult) -> dict[str, object]:
    from keisei.evaluation import likelihood_of_superiority

    tally = match.tally()
    alone = match.comparisons == 1  # comparisons of one game are not independent
    return {
        "opponent": match.players[1],
        "games": len(match.games),
        **asdict(tally),
        "score": asdict(match.score),
        "elo": asdict(match.elo),
        "superiority": likelihood_of_superiority(tally) if alone else None,
        "seats": [asdict(match.tally(seat)) for seat in range(match.seats)],
        "returns": _returns_as_json(match) if match.by_returns else None,
        "mean_length": match.mean_length,
        "endings": match.endings,
    }


def _returns_as_json(match: MatchResult) -> dict[str, object]:
    return {
        "mean": _bounds(match.mean_return),
        "opponent": match.opponent_return,
        "lead": _bounds(match.lead),
        "mean_rank": match.mean_rank if match.seats > 1 else None,
    }


def _bounds(interval: Interval) -> dict[str, float | None]:
    """Writes an interval as JSON, which has no infinity."""
    return {name: value if isfinite(value) else None for name, value in asdict(interval).items()}


def prepare_records(directory: Path, spec: GameSpec, suffix: str | None = None) -> None:
    """Checks the folder before anything is played, so no games are lost."""
    from keisei.evaluation.records import record_suffixes

    if spec.record_format is None:
        raise ConfigError(f"--records: {spec.name} has no format for records; leave it out")
    known = record_suffixes(spec.record_format)
    if suffix not in (None, *known):
        names = ", ".join(name.removeprefix(".") for name in known)
        raise ConfigError(f"--format: {spec.name} has the formats {names}; got {(suffix or '')[1:]}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        taken = any(directory.iterdir())
    except OSError as error:
        raise ConfigError(f"--records: {directory} cannot be made: {error.strerror or error}") from error
    if taken:
        raise ConfigError(f"--records: {directory} is not empty; name a new directory")


def write_records(directory: Path, matches: Sequence[MatchResult], suffix: str | None = None) -> None:
    """Writes a file for each game, named by its opponent and its number within the match."""
    from keisei.evaluation import write_record

    for place, match in enumerate(matches, start=1):
        opponent = re.sub(r"[^A-Za-z0-9._-]+", "-", match.players[1])[-_LONGEST_NAME:]
        for number, game in enumerate(match.games):
            if not game.actions:  # an engine crashed before the first move
                continue
            write_record(match, number, directory / f"{place}-{opponent}-{number + 1:04d}", suffix)
