"""Tournaments: all players against each other, or each new one against those before it.

A tournament is plain data: names, tallies and ratings. Its pairings can be kept for the next step of a ladder,
which rates all games together.

Two players meet in a match. In games of three seats and more they meet twice, each of them once as the one who sits
alone among the other's seats, since that may be easier or harder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

from keisei.errors import ConfigError
from keisei.evaluation.matches import (
    OnGame,
    Player,
    PlayerLike,
    as_player,
    play_match,
    whole_rounds,
)
from keisei.evaluation.ratings import Pairing, Rating, rate
from keisei.evaluation.results import MatchResult
from keisei.games.randomness import keyed_word
from keisei.games.registry import GameSource, make_game
from keisei.policies.players.finding import RUNS

__all__ = ["MatchPlan", "Tournament", "games_of_a_meeting", "ladder", "ladder_step", "round_robin"]


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How each match of a tournament is played."""

    game: GameSource
    options: Mapping[str, Any] | None = None
    games: int = 100
    """Games of each match, as in ``play_match``."""
    seed: int = 0
    opening_plies: int | None = None
    batch: int = 256
    on_match: Callable[[MatchResult], None] | None = None
    """Called after each match, to show or store it."""
    on_game: OnGame | None = None
    """Called when games of a match end."""


@dataclass(frozen=True, slots=True)
class Tournament:
    """The matches that were played, and the ratings."""

    anchor: str
    """The player whose rating is 0."""
    pairings: tuple[Pairing, ...]
    ratings: tuple[Rating, ...]
    """Best first."""


def round_robin(
    plan: MatchPlan,
    players: Sequence[PlayerLike],
    *,
    anchor: str | None = None,
    root: Path = RUNS,
) -> Tournament:
    """Plays all players against each other. The anchor is the first player unless another is named."""
    entrants = _entrants(plan, players, root)
    pairings = [_meet(plan, first, second) for first, second in combinations(entrants, 2)]
    return _tournament(pairings, anchor or entrants[0].name)


def ladder(
    plan: MatchPlan,
    players: Sequence[PlayerLike],
    *,
    back: int = 1,
    anchor: str | None = None,
    root: Path = RUNS,
) -> Tournament:
    """Plays a ladder. Players are given oldest first, and each meets the ``back`` players just before it."""
    if back < 1:
        raise ConfigError(f"back is how many earlier players each one meets, at least 1; got {back}")
    entrants = _entrants(plan, players, root)
    pairings = [
        _meet(plan, newest, previous)
        for rung, newest in enumerate(entrants)
        for previous in entrants[max(0, rung - back) : rung]
    ]
    return _tournament(pairings, anchor or entrants[0].name)


def ladder_step(
    plan: MatchPlan,
    newest: PlayerLike,
    previous: Sequence[PlayerLike],
    earlier: Iterable[Pairing] = (),
    *,
    anchor: str | None = None,
    root: Path = RUNS,
) -> Tournament:
    """Adds one player: it meets ``previous``, and all pairings are rated, also the ``earlier`` ones."""
    entrants = _entrants(plan, [*previous, newest], root)
    challenger = entrants[-1]
    pairings = [*earlier, *(_meet(plan, challenger, opponent) for opponent in entrants[:-1])]
    return _tournament(pairings, anchor or pairings[0].second)


def _entrants(plan: MatchPlan, players: Sequence[PlayerLike], root: Path) -> list[Player]:
    game = make_game(plan.game, **dict(plan.options or {}))
    entrants = [as_player(player, game, root) for player in players]
    names = [entrant.name for entrant in entrants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            f"players go by their names, and {', '.join(map(repr, twice))} is there more than once; "
            f"wrap policies as Player(name, policy)"
        )
    if len(entrants) < 2:
        raise ConfigError(f"a tournament has two players or more; got {len(entrants)}")
    return entrants


def games_of_a_meeting(games: int, seats: int) -> int:
    """Counts the games that two players play against each other, with ``games`` in each match."""
    return whole_rounds(games, seats) * (2 if seats > 2 else 1)


def _meet(plan: MatchPlan, first: Player, second: Player) -> Pairing:
    result = _play(plan, first, second)
    tally = result.tally()
    if result.seats > 2:
        tally += _play(plan, second, first).tally().reversed()
    return Pairing(first.name, second.name, tally, result.comparisons)


def _play(plan: MatchPlan, first: Player, second: Player) -> MatchResult:
    """Plays a match. Its seed follows from the names, so other players do not change it."""
    names = f"{first.name}\n{second.name}".encode()
    seed = keyed_word(plan.seed, int.from_bytes(blake2b(names, digest_size=8).digest(), "little")) >> 1
    result = play_match(
        plan.game,
        plan.options,
        first,
        second,
        plan.games,
        seed,
        opening_plies=plan.opening_plies,
        batch=plan.batch,
        on_game=plan.on_game,
    )
    if plan.on_match is not None:
        plan.on_match(result)
    return result


def _tournament(pairings: Sequence[Pairing], anchor: str) -> Tournament:
    return Tournament(anchor, tuple(pairings), rate(pairings, anchor))
