"""Games that a person plays in the browser. A request holds the whole game, so the server keeps none."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from keisei.config import Settings
from keisei.errors import ConfigError, GameError
from keisei.games.automatic_faces import live_face
from keisei.games.contract import GameSpec
from keisei.games.offers import RecordedGame
from keisei.games.registry import make_game, registered_games
from keisei.policies.contract import Situation
from keisei.web.lines import LONGEST, Line
from keisei.web.players import Players

__all__ = ["PERSON", "PlayedGame", "offered_games", "offered_run", "play", "record"]

PERSON = "person"
NOT_FOR_PEOPLE = ("dummy",)
MOST_SEATS = 128
_MOST_REPLIES = 400
"""Moves that players make in a row before a person has to move, as in Ludo."""


class PlayedGame(Settings):
    """A game as a page sends it."""

    run: Annotated[str, Field(max_length=100)] = ""
    """The run whose game is played, with its options; empty if ``game`` names one."""
    game: Annotated[str, Field(max_length=50)] = ""
    options: dict[str, str | int] = Field(default_factory=dict)
    """Those of ``GameFace.person_options``."""
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    actions: Annotated[list[int], Field(max_length=LONGEST)] = Field(default_factory=list)
    seats: Annotated[list[str], Field(max_length=MOST_SEATS)] = Field(default_factory=list)
    """Who plays: ``person``, or a player."""
    chosen: int | None = None
    """What the person does now. If other seats act at once, their players choose, and the step is played."""
    judge: Annotated[str, Field(max_length=200)] = ""
    """The player whose value and favourite moves are shown; empty shows none."""
    temperature: Annotated[float, Field(ge=0, le=10)] = 0.0
    view: Annotated[int, Field(ge=0, le=MOST_SEATS)] = 0
    at: Annotated[int, Field(ge=0)] | None = None
    """The ply to look at; null is the newest, where players move."""


def offered_games(players: Players) -> list[dict[str, Any]]:
    """Lists the games that a person can play, with the players that need no network."""
    return [_offer(players, name, {}) for name in registered_games() if name not in NOT_FOR_PEOPLE]


def offered_run(players: Players, run: str) -> dict[str, Any]:
    """Describes the game of a run as a person can play it, with the options that the run has."""
    return _offer(players, *players.game_of(run))


def _offer(players: Players, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    game = make_game(name, **options)
    face = live_face(game)
    return {
        "name": name,
        "title": game.spec.name,
        "seats": list(face.seats),
        "players": players.names(game),
        "options": list(face.person_options),
        "at_once": game.spec.simultaneous,
    }


def play(players: Players, wanted: PlayedGame) -> dict[str, Any]:
    """Plays the moves of all players that are due, and returns the position."""
    line = _line(players, wanted)
    spec = line.game.spec
    table = _Table(players, wanted, spec)
    if wanted.chosen is not None:
        table.step(line, wanted.chosen)
    if wanted.at is None and table.policies:
        table.reply(line)
    policy = players.load(wanted.judge, spec) if wanted.judge else None
    frame = line.frame(wanted.at, wanted.view, policy)
    is_newest = frame["ply"] == frame["plies"]
    return frame | {
        "actions": line.actions,
        "before": table.before(line),
        "choices": _choices(line, frame["seat"]) if is_newest else [],
        "exports": spec.record_format is not None,
    }


def _choices(line: Line, seat: int) -> list[dict[str, Any]]:
    """Lists the legal actions of a seat. Those that a person usually means come first."""
    packed, seat = line.now.seen_by(seat)
    choices = line.face.choices(packed, seat, line.legal(seat))
    return [asdict(choice) for choice in sorted(choices, key=lambda choice: not choice.is_usual)]


def record(players: Players, wanted: PlayedGame) -> tuple[str, str]:
    """Writes a game in the game's own format: the name of a file, and its content."""
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
    """Finds the name and the options of a game: of a run, or of one of the known games with few options."""
    if wanted.run:
        name, options = players.game_of(wanted.run)
    elif wanted.game in registered_games():
        name, options = wanted.game, {}
    else:
        raise ConfigError(f"no game is named {wanted.game!r}; games are {', '.join(registered_games())}")
    allowed = live_face(make_game(name, **options)).person_options
    refused = sorted(set(wanted.options) - set(allowed))
    if refused:
        raise ConfigError(
            f"a page cannot choose {', '.join(refused)}; it may choose {', '.join(allowed) or 'nothing'}"
        )
    return name, options | wanted.options


def _line(players: Players, wanted: PlayedGame) -> Line:
    name, options = _options(players, wanted)
    return Line(name, options, wanted.actions, wanted.seed)


class _Table:
    """Who sits where in a game."""

    def __init__(self, players: Players, wanted: PlayedGame, spec: GameSpec) -> None:
        if wanted.seats and len(wanted.seats) != spec.seats:
            raise ConfigError(f"{spec.name} has {spec.seats} seats, and {len(wanted.seats)} are taken")
        self.names = wanted.seats or [PERSON] * spec.seats
        self.seed = wanted.seed
        self.policies = {
            name: players.load(name, spec, wanted.temperature) for name in {*self.names} - {PERSON}
        }
        persons = self.names.count(PERSON)
        if spec.simultaneous and persons > 1:
            raise ConfigError(
                f"the seats of {spec.name} act at once, and a page gives one action at a time: one seat may be a "
                f"person's, and {persons} are"
            )

    def has_to_wait(self, line: Line) -> bool:
        """Checks if a person acts now."""
        return any(self.names[seat] == PERSON for seat in line.now.seats)

    def reply(self, line: Line) -> None:
        """Lets players move until a person has to. If nobody is a person, one step is played."""
        for _ in range(_MOST_REPLIES if PERSON in self.names else 1):
            if line.end is not None or self.has_to_wait(line):
                return
            self.step(line)

    def step(self, line: Line, chosen: int | None = None) -> None:
        """Plays one step: the person does what was chosen, and players decide for the other seats."""
        if chosen is not None and not self.has_to_wait(line):
            raise GameError("no person acts now, so nothing can be chosen for one")
        names = [self.names[seat] for seat in line.now.seats]
        actions = [chosen or 0] * len(names)
        if line.end is None:
            situation = Situation(line.game, self.seed, 0)
            for name in {*names} - {PERSON}:
                rows = [row for row, one in enumerate(names) if one == name]
                decision = self.policies[name].act(situation, np.array(rows, np.int32))
                for row, action in zip(rows, decision.actions.tolist(), strict=True):
                    actions[row] = action
        line.play(actions)

    def before(self, line: Line) -> int:
        """Counts the actions before the last move of a person, or before the last step without persons."""
        kept = len(line.actions)
        for moment, step in zip(reversed(line.moments[:-1]), reversed(line.steps), strict=True):
            kept -= len(step)
            if PERSON not in self.names or any(self.names[seat] == PERSON for seat in moment.seats):
                return kept
        return 0
