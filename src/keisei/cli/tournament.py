"""``keisei tournament``: each player meets each other. ``keisei ladder``: each checkpoint meets those before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from keisei.cli.evaluate import (
    Games,
    Json,
    OpeningPlies,
    Root,
    Seed,
    Temperature,
    need_players,
)
from keisei.cli.numbers import MAX_FEW
from keisei.cli.views.left_out import whole_ones
from keisei.cli.views.match_report import games_progress
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError, RunLockedError

if TYPE_CHECKING:
    from keisei.evaluation import MatchPlan, MatchResult, Player, Rating, Tournament
    from keisei.policies.players.finding import RunGame
    from keisei.runs.directory import RunDirectory


def tournament(
    players: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAYER...",
            help="Runs, RUN@UPDATE, checkpoints, random, greedy, heuristic, search:DEPTH. A run alone stands for "
            "all its checkpoints and random.",
        ),
    ],
    games: Games = 100,
    seed: Seed = 0,
    temperature: Temperature = None,
    opening_plies: OpeningPlies = None,
    root: Root = Path("runs"),
    as_json: Json = False,
) -> None:
    """Play all players against each other, and rate them. The game is that of the first run."""
    from keisei.evaluation import MatchPlan, round_robin
    from keisei.training.standings import anchor_of

    game, entrants = _entrants(players, root, temperature)
    plan = MatchPlan(game.name, game.options, games, seed, opening_plies)
    with _progress(plan, game, len(entrants) * (len(entrants) - 1) // 2) as shown:
        result = round_robin(shown, entrants, anchor=anchor_of([entrant.name for entrant in entrants]))
    _tell(result, result.ratings, as_json)


def ladder(
    run: Annotated[str, typer.Argument(help="A run: its name, or its path.")],
    back: Annotated[
        int, typer.Option(min=1, max=MAX_FEW, help="How many earlier checkpoints each one meets.")
    ] = 1,
    games: Games = 100,
    seed: Seed = 0,
    temperature: Temperature = None,
    opening_plies: OpeningPlies = None,
    root: Root = Path("runs"),
    save: Annotated[
        bool, typer.Option("--save", help="Write ratings into run.db, together with the run's own matches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Play each checkpoint of a run against the ones before it, and rate them, oldest first."""
    from keisei import evaluation
    from keisei.policies.players.finding import find_run, game_of
    from keisei.policies.players.saved_player import load_players

    directory = find_run(run, root)
    if save:
        _check_idle(directory)
    game = game_of(run, root)
    entrants = load_players(directory, game.spec, temperature)
    if len(entrants) < 2:
        raise ConfigError(
            f"a ladder has two checkpoints or more, and {directory.path} has {len(entrants)}; train it longer, or keep "
            f"more of them (run.keep, run.milestone_every)"
        )
    plan = evaluation.MatchPlan(game.name, game.options, games, seed, opening_plies)
    with _progress(plan, game, sum(min(back, rung) for rung in range(len(entrants)))) as shown:
        result = evaluation.ladder(shown, entrants, back=back)
    rungs = [entrant.name for entrant in entrants]
    _tell(result, sorted(result.ratings, key=lambda rating: rungs.index(rating.player)), as_json)
    if save:
        _save(directory, rungs[-1], result)


def _entrants(texts: Sequence[str], root: Path, temperature: float | None) -> tuple[RunGame, list[Player]]:
    """Finds the players of the texts, and the game of the first run."""
    from keisei.policies.players import needs_no_run
    from keisei.policies.players.finding import find_run, game_of, locate
    from keisei.policies.players.saved_player import load_player, load_players

    runs = [text for text in texts if not needs_no_run(text)]
    if not runs:
        raise ConfigError(
            f"the game is that of the first run, and there is no run among {', '.join(texts)}; add one"
        )
    for text in runs:
        locate(text, root)  # an unknown name is a mistake, while a damaged run is left out
    known = whole_ones(runs, lambda text: game_of(text, root))
    game = next(iter(known.values()))
    if len(texts) > 1:
        present = [text for text in texts if text in known or text not in runs]
        need_players(present, game)
        loaded = whole_ones(
            present, lambda text: load_player(text, game.spec, root, temperature), mistakes=(ConfigError,)
        )
        return game, [loaded[text] for text in present if text in loaded]
    checkpoints = load_players(find_run(runs[0], root), game.spec, temperature)
    return game, [load_player("random", game.spec), *checkpoints]


@contextmanager
def _progress(plan: MatchPlan, game: RunGame, pairs: int) -> Iterator[MatchPlan]:
    """Yields the plan, and shows the number of finished games in all matches."""
    from keisei.evaluation.tournament import games_of_a_meeting

    before = 0
    with games_progress() as progress:
        task = progress.add_task("games", total=pairs * games_of_a_meeting(plan.games, game.spec.seats))

        def on_game(ended: int, total: int) -> None:
            progress.update(task, completed=before + ended)

        def on_match(match: MatchResult) -> None:
            nonlocal before
            before += len(match.games)

        yield replace(plan, on_game=on_game, on_match=on_match)


def _tell(result: Tournament, ratings: Sequence[Rating], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(result, ratings), indent=2))
        return
    table = Table("Player", box=None, pad_edge=False)
    for heading in ("Elo", "95 % interval", "Games", "Score"):
        table.add_column(heading, justify="right", no_wrap=True)
    for rating in ratings:
        fixed = rating.player == result.anchor
        interval = "fixed" if fixed else f"{rating.low:+.0f} … {rating.high:+.0f}"
        table.add_row(
            Text(rating.player), f"{rating.elo:+.0f}", interval, f"{rating.games}", f"{rating.score:.1%}"
        )
    Terminal(highlight=False).print(table)


def _as_json(result: Tournament, ratings: Sequence[Rating]) -> dict[str, object]:
    return {
        "anchor": result.anchor,
        "ratings": [asdict(rating) for rating in ratings],
        "pairings": [
            {
                "first": pairing.first,
                "second": pairing.second,
                **asdict(pairing.tally),
                "comparisons_per_game": pairing.per_game,
            }
            for pairing in result.pairings
        ],
    }


def _check_idle(run: RunDirectory) -> None:
    """Checks that nobody trains the run, before anything is played. The lock is taken only when results are written."""
    from keisei.runs.directory import RunState

    status = run.status()
    if status.state is RunState.RUNNING:
        raise RunLockedError(
            f"--save writes into {run.path}, which is being trained by {status.detail}, and only one process writes "
            f"there; wait for it, stop it, or leave out --save"
        )


def _save(run: RunDirectory, newest: str, result: Tournament) -> None:
    from keisei.runs.checkpoint import checkpoint_rank
    from keisei.training.standings import save_ratings

    rank = checkpoint_rank(newest)
    assert rank is not None  # it is a checkpoint's name
    rows = save_ratings(run, rank[0], result.pairings)
    text = f"Saved {len(rows)} ratings in {run.database}, by these games and the matches of the run itself."
    Terminal(stderr=True).print(Text(text), soft_wrap=True)
