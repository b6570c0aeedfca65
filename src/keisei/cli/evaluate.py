"""``keisei evaluate``: measures a run's player against other players."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.cli.numbers import MAX_GAMES, MAX_OPENING, MAX_SEED, temperature
from keisei.cli.views.match_report import (
    bar_of,
    games_progress,
    matches_as_json,
    prepare_records,
    print_facts,
    print_matches,
    write_records,
)

if TYPE_CHECKING:
    from keisei.policies.players.finding import RunGame

Games = Annotated[
    int,
    typer.Option(
        min=2,
        max=MAX_GAMES,
        help="Games of each match: an even number. In games of three seats and more it is rounded up, so that each "
        "seat counts alike.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The same seed plays the same games.")]
Temperature = Annotated[
    float | None,
    temperature(
        "Temperature of networks; 0 takes the best action. The default is that of their runs' evaluations.",
    ),
]
OpeningPlies = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_OPENING,
        help="Random plies at the start of games, the same for each seat; the default suits the game.",
    ),
]
Root = Annotated[Path, typer.Option(help="The directory of runs.")]
Records = Annotated[Path | None, typer.Option(help="Write all games into this new directory.")]
RecordForm = Annotated[
    str | None,
    typer.Option("--format", help="The format of records. Shogi has kif (the default), csa and sfen."),
]
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
    records: Records = None,
    form: RecordForm = None,
    as_json: Json = False,
) -> None:
    """Play a run's player against opponents, in each seat equally often. Nothing is written into the run.

    In games of three seats and more the player has one seat, and the opponent has the others. In games of one seat,
    both play the same games alone."""
    from keisei.evaluation import play_match
    from keisei.evaluation.matches import whole_rounds
    from keisei.policies.players.finding import game_of
    from keisei.policies.players.saved_player import checkpoint_facts, load_player

    game, suffix = game_of(run, root), form and f".{form}"
    games = whole_rounds(games, game.spec.seats)
    need_players(opponent or [], game)
    if records is not None:
        prepare_records(records, game.spec, suffix)
    player, *others = (
        load_player(text, game.spec, root, temperature) for text in (run, *(opponent or ["random"]))
    )
    if not as_json:
        print_facts(player.name, checkpoint_facts(player.name, root))
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
                on_game=bar_of(progress, f"{player.name} against {other.name}", games),
            )
            for other in others
        ]
    if as_json:
        typer.echo(json.dumps(matches_as_json(player.name, matches, temperature), indent=2))
    else:
        print_matches(player.name, matches)
    if records is not None:
        write_records(records, matches, suffix)


def need_players(texts: Sequence[str], game: RunGame) -> None:
    """Checks before anything is played that players without a run can play this game."""
    from keisei.games.registry import make_game
    from keisei.policies.registry import check_player

    for text in texts:
        check_player(text, make_game(game.name, **game.options))
