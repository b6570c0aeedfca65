"""Games that a person plays in the browser. A request holds the whole game, so the server keeps none."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from keisei.config import Settings
from keisei.errors import ConfigError, GameError
from keisei.games.contract import GameSpec
from keisei.games.faces import face_of
from keisei.games.records import RecordedGame
from keisei.games.registry import make_game, registered_games
from keisei.policies.contract import Policy, Situation
from keisei.web.lines import LONGEST, Line
from keisei.web.players import Players

__all__ = ["PlayedGame", "offered_games", "play", "record"]

PERSON = "person"
NOT_FOR_PEOPLE = ("dummy",)
_MOST_REPLIES = 400
"""Moves that players make in a row before a person has to move, as in Ludo."""


class PlayedGame(Settings):
    """A game as a page tells it."""

    run: Annotated[str, Field(max_length=100)] = ""
    """The run whose game is played, with its options; empty if ``game`` names one."""
    game: Annotated[str, Field(max_length=50)] = ""
    options: dict[str, str | int] = Field(default_factory=dict)
    """Those of ``GameFace.person_options``."""
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    actions: Annotated[list[int], Field(max_length=LONGEST)] = Field(default_factory=list)
    seats: Annotated[list[str], Field(max_length=8)] = Field(default_factory=list)
    """Who plays: ``person``, or a player."""
    judge: Annotated[str, Field(max_length=200)] = ""
    """The player whose value and favourite moves are shown; empty shows none."""
    temperature: Annotated[float, Field(ge=0, le=10)] = 0.0
    view: Annotated[int, Field(ge=0, le=8)] = 0
    at: Annotated[int, Field(ge=0)] | None = None
    """The ply to look at; null is the newest, where players move."""


def offered_games(players: Players) -> list[dict[str, Any]]:
    """Gives the games that a person can play, with the players that need no network."""
    offered = []
    for name in registered_games():
        if name in NOT_FOR_PEOPLE:
            continue
        game = make_game(name)
        if game.spec.simultaneous or game.spec.seats < 2:
            continue
        face = face_of(game.spec)
        offered.append(
            {
                "name": name,
                "seats": list(face.seats),
                "players": players.names(game),
                "options": list(face.person_options),
            }
        )
    return offered


def play(players: Players, wanted: PlayedGame) -> dict[str, Any]:
    """Plays the moves of all players that are due, and gives the position."""
    line = _line(players, wanted)
    spec = line.game.spec
    if spec.simultaneous:
        raise GameError(
            f"the seats of {spec.name} act at once, and a page plays one move at a time; replay its games"
        )
    seats = _seated(players, wanted, spec)
    if wanted.at is None and any(seats.values()):
        _reply(line, seats, wanted.seed)
    policy = players.load(wanted.judge, spec)[1] if wanted.judge else None
    frame = line.frame(wanted.at, wanted.view, policy)
    here = line.moments[-1]
    is_newest = frame["ply"] == frame["plies"]
    choices = line.face.choices(here.packed, here.seat, line.legal) if is_newest else []
    return frame | {
        "actions": line.actions,
        "choices": list(map(asdict, choices)),
        "exports": spec.record_format is not None,
    }


def record(players: Players, wanted: PlayedGame) -> tuple[str, str]:
    """Gives a game in the game's own format: the name of a file, and its content."""
    line = _line(players, wanted)
    spec = line.game.spec
    if spec.record_format is None:
        raise GameError(f"{spec.name} has no format for records")
    names = tuple((wanted.seats + [PERSON] * spec.seats)[: spec.seats])
    scores = tuple(line.result()["scores"]) if line.end is not None else (0.0,) * spec.seats
    ending = "interrupted" if line.end is None else spec.endings[line.end.ending[0]]
    game = RecordedGame(_options(players, wanted)[1], tuple(line.actions), names, scores, ending)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"game{spec.record_format.suffix}"
        spec.record_format.write(game, path)
        return path.name, path.read_text(encoding="utf-8")


def _options(players: Players, wanted: PlayedGame) -> tuple[str, dict[str, Any]]:
    """Gives the name and the options of a game: of a run, or of one of the known games with few options."""
    if wanted.run:
        name, options = players.game_of(wanted.run)
    elif wanted.game in registered_games():
        name, options = wanted.game, {}
    else:
        raise ConfigError(f"no game is named {wanted.game!r}; games are {', '.join(registered_games())}")
    allowed = face_of(make_game(name, **options).spec).person_options
    refused = sorted(set(wanted.options) - set(allowed))
    if refused:
        raise ConfigError(
            f"a page cannot choose {', '.join(refused)}; it may choose {', '.join(allowed) or 'nothing'}"
        )
    return name, options | wanted.options


def _line(players: Players, wanted: PlayedGame) -> Line:
    name, options = _options(players, wanted)
    return Line(name, options, wanted.actions, wanted.seed)


def _seated(players: Players, wanted: PlayedGame, spec: GameSpec) -> Mapping[int, Policy | None]:
    """Gives the policy of each seat; None where a person sits."""
    if wanted.seats and len(wanted.seats) != spec.seats:
        raise ConfigError(f"{spec.name} has {spec.seats} seats, and {len(wanted.seats)} are taken")
    named = wanted.seats or [PERSON] * spec.seats
    return {
        seat: None if name == PERSON else players.load(name, spec, wanted.temperature)[1]
        for seat, name in enumerate(named)
    }


def _reply(line: Line, seats: Mapping[int, Policy | None], seed: int) -> None:
    """Lets players move until a person has to. If nobody is a person, one move is played."""
    alone = all(seats.values())
    for _ in range(1 if alone else _MOST_REPLIES):
        policy = seats[line.seat]
        if line.end is not None or policy is None:
            return
        decision = policy.act(Situation(line.game, seed, 0))
        line.play([int(action) for action in _first(decision.actions)])


def _first(actions: Any) -> Sequence[int]:
    chosen: Sequence[int] = actions[:1].tolist()
    return chosen
