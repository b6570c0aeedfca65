"""``keisei match``: two players, ours or the engines of other programs."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.cli.evaluate import Json, OpeningPlies, RecordForm, Records, Root, Seed, Temperature, need_players
from keisei.cli.numbers import MAX_GAMES, MAX_SECONDS
from keisei.cli.views.match_report import (
    bar_of,
    games_progress,
    matches_as_json,
    prepare_records,
    print_matches,
    write_records,
)
from keisei.errors import ConfigError

if TYPE_CHECKING:
    from keisei.evaluation import MatchResult
    from keisei.interfaces.usi.clocks import TimeControl
    from keisei.interfaces.usi.engine_match import Contestant
    from keisei.policies.players.finding import RunGame

ENGINE = "usi:"
"""Begins the name of a player that is the engine of another program."""
USUAL_BYOYOMI = 1.0
_PLAYER = "A run, RUN@UPDATE, a checkpoint, random, greedy, heuristic, search:DEPTH, or usi:COMMAND."
_OPTION = "NAME=VALUE, an option of the engine; may be repeated."


@dataclass(frozen=True)
class _Plan:
    """A match as it was asked for."""

    texts: tuple[str, str]
    commands: tuple[list[str], list[str]]
    """The commands of engines; empty for other players."""
    options: tuple[Mapping[str, str], Mapping[str, str]]
    game: RunGame
    root: Path
    temperature: float | None
    games: int
    seed: int
    opening_plies: int | None


def match(
    first: Annotated[str, typer.Argument(help=_PLAYER)],
    second: Annotated[str, typer.Argument(help=_PLAYER)],
    games: Annotated[
        int,
        typer.Option(min=2, max=MAX_GAMES, help="An even number: each player has each seat in half of them."),
    ] = 20,
    game: Annotated[
        str | None, typer.Option(help="The game, if neither player is a run. The default is Shogi.")
    ] = None,
    seed: Seed = 0,
    temperature: Temperature = None,
    opening_plies: OpeningPlies = None,
    time: Annotated[
        float,
        typer.Option(min=0, max=MAX_SECONDS, help="Seconds of a side for a game with an engine."),
    ] = 0.0,
    byoyomi: Annotated[
        float | None,
        typer.Option(min=0, max=MAX_SECONDS, help="Seconds of each move after that; 1 without --increment."),
    ] = None,
    increment: Annotated[
        float,
        typer.Option(
            min=0, max=MAX_SECONDS, help="Seconds that a side gets with each move, in place of byoyomi."
        ),
    ] = 0.0,
    first_option: Annotated[list[str] | None, typer.Option(help=f"{_OPTION} Of the first player.")] = None,
    second_option: Annotated[list[str] | None, typer.Option(help=f"{_OPTION} Of the second player.")] = None,
    root: Root = Path("runs"),
    records: Records = None,
    form: RecordForm = None,
    as_json: Json = False,
) -> None:
    """Play a match of two players, and tell the difference of their ratings. An engine of another program is written
    as usi:COMMAND, such as "usi:./engine --fast". Such games have a clock, and are played one after the other."""
    from keisei.evaluation.matches import whole_rounds

    suffix = form and f".{form}"
    found = game_of_players((first, second), game, root)
    plan = _Plan(
        texts=(first, second),
        commands=(_command(first), _command(second)),
        options=(_options(first_option), _options(second_option)),
        game=found,
        root=root,
        temperature=temperature,
        games=whole_rounds(games, found.spec.seats),
        seed=seed,
        opening_plies=opening_plies,
    )
    if records is not None:
        prepare_records(records, found.spec, suffix)
    if any(plan.commands):
        played = _against_engines(plan, _control(time, byoyomi, increment))
    else:
        played = _among_ours(plan, record=records is not None)
    if as_json:
        typer.echo(json.dumps(matches_as_json(played.players[0], [played], temperature), indent=2))
    else:
        print_matches(played.players[0], [played])
    if records is not None:
        write_records(records, [played], suffix)


def _options(given: Sequence[str] | None) -> dict[str, str]:
    """Reads NAME=VALUE."""
    pairs = [text.partition("=") for text in given or ()]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise ConfigError(f"an option of an engine is written NAME=VALUE; got {name!r}")
    return {name: value for name, _, value in pairs}


def _control(time: float, byoyomi: float | None, increment: float) -> TimeControl:
    from keisei.interfaces.usi.clocks import TimeControl

    if byoyomi and increment:
        raise ConfigError(
            f"--byoyomi {byoyomi:g} and --increment {increment:g}: a clock has one of them; leave out the other"
        )
    if byoyomi is None:
        byoyomi = 0.0 if increment else USUAL_BYOYOMI
    if not time + byoyomi + increment:
        raise ConfigError("a game with an engine needs time: give --time, --byoyomi or --increment")
    return TimeControl(time, byoyomi, increment)


def game_of_players(texts: Sequence[str], named: str | None, root: Path) -> RunGame:
    """Finds the game of the first run among the players, or the one that is named."""
    from keisei.games.registry import DEFAULT_GAME
    from keisei.policies.players import needs_no_run
    from keisei.policies.players.finding import RunGame, game_of

    runs = [text for text in texts if not (needs_no_run(text) or text.startswith(ENGINE))]
    found = game_of(runs[0], root) if runs else None
    if found is None:
        name = named or DEFAULT_GAME
        found = RunGame.of(name, {})
    elif named not in (None, found.name):
        raise ConfigError(f"--game {named}: {runs[0]} plays {found.name}; leave out --game")
    if found.spec.name != "shogi" and any(text.startswith(ENGINE) for text in texts):
        raise ConfigError(f"engines that speak USI play Shogi, and this match is of {found.spec.name}")
    return found


def _among_ours(plan: _Plan, record: bool) -> MatchResult:
    from keisei.evaluation import play_match
    from keisei.policies.players.saved_player import load_player

    if any(plan.options):
        raise ConfigError("--first-option and --second-option are for engines (usi:COMMAND); leave them out")
    game, games = plan.game, plan.games
    need_players(plan.texts, game)
    first, second = (load_player(text, game.spec, plan.root, plan.temperature) for text in plan.texts)
    with games_progress() as progress:
        return play_match(
            game.name,
            game.options,
            first,
            second,
            games,
            plan.seed,
            opening_plies=plan.opening_plies,
            record=record,
            on_game=bar_of(progress, f"{first.name} against {second.name}", games),
        )


def _against_engines(plan: _Plan, control: TimeControl) -> MatchResult:
    from keisei.interfaces.usi.engine_match import MatchSettings, play_engines

    plies = 4 if plan.opening_plies is None else plan.opening_plies
    settings = MatchSettings(plan.games, plan.seed, plies, plan.game.spec.max_plies or 512, control)
    with _ended_in_order(), ExitStack() as stack, games_progress() as progress:
        first, second = (_contestant(plan, number, stack) for number in (0, 1))
        bar = bar_of(progress, f"{first.name} against {second.name}", plan.games)
        return play_engines(first, second, settings, bar)


def _command(text: str) -> list[str]:
    """Splits usi:COMMAND as a shell does; empty for a player that is no engine."""
    if not text.startswith(ENGINE):
        return []
    try:
        command = shlex.split(text.removeprefix(ENGINE))
    except ValueError as error:
        raise ConfigError(
            f"{text}: {error}; write usi:COMMAND, with quotes in pairs, such as usi:'./my engine'"
        ) from None
    if not any(command):
        raise ConfigError(f"{text}: no command follows; write usi:COMMAND, such as usi:./engine")
    return command


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end a match as Ctrl-C does. Engines have sessions of their own, so they must be ended
    explicitly."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _contestant(plan: _Plan, number: int, stack: ExitStack) -> Contestant:
    """Makes a player of a match with engines. The stack ends an engine that it starts."""
    from keisei.interfaces.usi.client import UsiClient
    from keisei.interfaces.usi.engine_match import EngineContestant, MindContestant
    from keisei.interfaces.usi.protocol import EngineOptions
    from keisei.interfaces.usi.thinkers import mind_of
    from keisei.policies.players.saved_player import load_player

    text, command, options = plan.texts[number], plan.commands[number], plan.options[number]
    if command:
        client = UsiClient(command, options)
        stack.callback(client.end)
        return EngineContestant(client.name, client)
    if options:
        raise ConfigError(f"{text} is no engine and has no options; leave them out")
    player = load_player(text, plan.game.spec, plan.root, plan.temperature)
    ours = EngineOptions(temperature=getattr(player.policy, "temperature", 0.0), delay=0)
    return MindContestant(player.name, mind_of(player.policy, plan.game.options), ours)
