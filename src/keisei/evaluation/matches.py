"""Matches: two players, many games. Seats rotate, openings vary, and every game counts once.

Games come in rounds with the same opening, a few random plies. In each round the first player has each seat once, and
the second player has the others. In every slot of the batch, only the first game counts, even if it takes long. To
count the games that finish first would count short games too often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from keisei.errors import ConfigError, PolicyError
from keisei.evaluation.match_table import MatchTable, opening_error
from keisei.evaluation.results import MatchResult, PlayedGame, judged_by_returns
from keisei.games.contract import Game, GameSpec
from keisei.games.options import whole_number
from keisei.games.registry import GameSource, make_game
from keisei.policies.contract import Player, Policy
from keisei.policies.players.finding import RUNS
from keisei.policies.players.saved_player import load_player
from keisei.policies.registry import need_offers
from keisei.ranges import MAX_GAMES, MAX_OPENING

__all__ = [
    "OnGame",
    "Player",
    "PlayerLike",
    "as_player",
    "check_opening",
    "play_match",
    "usual_opening",
    "whole_rounds",
]

_USUAL_OPENING, _SHARE_OF_A_GAME, _PROBES, _LONG_ENOUGH = 4, 5, 32, 40
_ENOUGH_LAST = 1 / 8


PlayerLike: TypeAlias = str | Policy | Player
"""A text such as 'random', 'search:2' or 'first@42', a policy, or a policy with a name."""
OnGame: TypeAlias = Callable[[int, int], None]
"""Called when games of a match end, with the number of finished games and of all games."""


def as_player(player: PlayerLike, game: Game, root: Path = RUNS) -> Player:
    """Gets the player for a text or a policy, for games such as this one. Runs have their names below ``root``."""
    spec = game.spec
    if isinstance(player, Player):
        return _of_this_game(player, spec)
    if not isinstance(player, str):
        return _of_this_game(Player(getattr(player, "name", type(player).__name__), player), spec)
    policy = load_player(player, spec, root).policy
    need_offers(policy, game)
    return Player(player, policy)


def _of_this_game(player: Player, spec: GameSpec) -> Player:
    """Refuses a policy that is made for another game."""
    own = getattr(player.policy, "spec", None)
    if isinstance(own, GameSpec) and own.interface != spec.interface:
        raise PolicyError(
            f"{player.name} is made for {own.interface} and cannot play {spec.interface}; take a player of that game"
        )
    return player


def play_match(
    game: GameSource,
    options: Mapping[str, Any] | None,
    first: PlayerLike,
    second: PlayerLike,
    games: int,
    seed: int = 0,
    *,
    opening_plies: int | None = None,
    batch: int = 256,
    record: bool = False,
    root: Path = RUNS,
    on_game: OnGame | None = None,
) -> MatchResult:
    """Plays ``games`` games of two players, ``batch`` of them side by side.

    With two seats, ``games`` is an even number. With more, it is rounded up to whole rounds. With one seat, each player
    plays these games alone. Each round starts with ``opening_plies`` random plies; see ``usual_opening`` for the
    default. Runs that play have their names below ``root``. The same arguments give the same games. With ``record``
    the result has all actions. ``on_game`` is called when games end.
    """
    options = dict(options or {})
    games = whole_number("games", games, 2, MAX_GAMES)
    if opening_plies is None:
        opening_plies = usual_opening(game, options)
    opening_plies = whole_number("opening_plies", opening_plies, 0, MAX_OPENING)
    batch = whole_number("batch", batch, 1, MAX_GAMES)
    fresh = make_game(game, **options)
    spec = fresh.spec
    games = whole_rounds(games, spec.seats)
    players = (as_player(first, fresh, root), as_player(second, fresh, root))

    def table(start: int, seated: tuple[Player, Player]) -> MatchTable:
        slots = make_game(game, batch=min(batch, games - start), seed=seed, first_game=start, **options)
        policies = (seated[0].policy, seated[1].policy)
        return MatchTable(slots, policies, seed, start, opening_plies, record)

    played: list[PlayedGame] = []
    for start in range(0, games, batch):
        main = table(start, players)
        for finished in main.play():
            if on_game is not None:
                on_game(start + finished, games)
        played += main.played if spec.seats > 1 else _beside(main.played, table(start, players[::-1]))
    return MatchResult(
        game=spec.name,
        players=(players[0].name, players[1].name),
        seed=seed,
        opening_plies=opening_plies,
        games=tuple(played),
        options=options,
        seats=spec.seats,
        by_returns=judged_by_returns(spec),
        record_format=spec.record_format,
    )


def _beside(games: list[PlayedGame], table: MatchTable) -> list[PlayedGame]:
    """Pairs the games of one seat with the scores of another player in the same games."""
    for _ in table.play():
        pass
    return [
        replace(mine, scores=mine.scores + theirs.scores)
        for mine, theirs in zip(games, table.played, strict=True)
    ]


def whole_rounds(games: int, seats: int) -> int:
    """Rounds the number of games of a match up to whole rounds, so that the first player has each seat equally
    often."""
    if seats == 2 and games % 2:
        raise ConfigError(
            f"games come in pairs, so that both players have both seats; play {games + 1}, not {games}"
        )
    return -(-games // seats) * seats


def check_opening(game: GameSource, options: Mapping[str, Any], plies: int) -> None:
    """Raises ``ConfigError`` if so few random games outlast an opening that a match might find none."""
    probe = make_game(game, batch=2 * _PROBES, seed=0, **options)
    lasting = np.ones(probe.batch, np.bool_)
    for _ in range(plies):
        lasting &= ~probe.step(probe.random_actions()).done
        if lasting.mean() < _ENOUGH_LAST:
            raise opening_error(probe.spec.name, plies)


def usual_opening(game: GameSource, options: Mapping[str, Any]) -> int:
    """Computes the default number of random plies: 4, but at most a fifth of the length of a random game. More would
    decide a short game before the players can. Tic-tac-toe gets 1, connect four and Shogi 4. In games of one seat there
    are none, so that a return is that of a whole game."""
    probe = make_game(game, batch=_PROBES, seed=0, **options)
    if probe.spec.seats == 1:
        return 0
    lengths = np.full(_PROBES, _LONG_ENOUGH)
    for _ in range(_LONG_ENOUGH):
        step = probe.step(probe.random_actions())
        first = step.done & (lengths == _LONG_ENOUGH)
        lengths[first] = step.plies[first]
    return min(_USUAL_OPENING, int(lengths.mean() / _SHARE_OF_A_GAME))
