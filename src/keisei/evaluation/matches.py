"""Matches: two players, many games. Seats alternate, openings vary, and every game counts once.

Games come in pairs with the same opening, a few random plies. Each player has each seat once. In every slot of the
batch, only the first game counts, even if it takes long. To count the games that finish first would count short
games too often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.evaluation.statistics import Tally
from keisei.games.contract import Game, GameSpec, IntArray, Rows, Step
from keisei.games.options import did_you_mean, whole_number
from keisei.games.randomness import keyed_uniform
from keisei.games.records import RecordFormat
from keisei.games.registry import GameSource, make_game
from keisei.policies.contract import Policy, Situation
from keisei.policies.registry import PLAYERS, named_player
from keisei.policies.sampling import legal_counts

__all__ = [
    "MatchResult",
    "OnGame",
    "PlayedGame",
    "Player",
    "PlayerLike",
    "Resolver",
    "as_player",
    "play_match",
    "usual_opening",
]

MAX_GAMES = 1_000_000
MAX_OPENING = 1000
_MOST_SHORT_GAMES = 100
"""How often a game may end within its opening before this is an error."""
_USUAL_OPENING, _SHARE_OF_A_GAME, _PROBES, _LONG_ENOUGH = 4, 5, 32, 40
_OPENINGS = 0x6F70656E
"""Separates the random numbers of openings from all others of the seed."""


@dataclass(frozen=True, slots=True)
class Player:
    """A policy and its name."""

    name: str
    policy: Policy


PlayerLike: TypeAlias = str | Policy | Player
"""A text such as 'random', 'greedy' or 'search:2', a policy, or a policy with a name."""
Resolver: TypeAlias = Callable[[str, GameSpec], Policy | None]
"""Finds the policy for a text that is not a built-in player, such as a run or a checkpoint; None if it is unknown."""
OnGame: TypeAlias = Callable[[int, int], None]
"""Called when games of a match end, with the number of finished games and of all games."""


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """One game of a match."""

    pair: int
    """The number of the pair. Games of a pair have the same opening, and the players change seats."""
    seat: int
    """The seat of the first player."""
    result: int
    """The result of the first player: 1 win, 0 draw, -1 loss. A truncated game is a draw."""
    plies: int
    ending: str
    """One of the game's own endings."""
    truncated: bool
    actions: tuple[int, ...] = ()
    """All actions, opening included; empty if they were not recorded."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The games of two players, in the order of their numbers."""

    game: str
    players: tuple[str, str]
    seed: int
    opening_plies: int
    games: tuple[PlayedGame, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    record_format: RecordFormat | None = field(default=None, compare=False, repr=False)
    """The game's format for records; see ``keisei.evaluation.records``."""

    def tally(self, seat: int | None = None) -> Tally:
        """Counts the results of the first player, in one seat only if it is given."""
        results = Counter(game.result for game in self.games if seat in (None, game.seat))
        return Tally(results[1], results[0], results[-1])

    @property
    def endings(self) -> dict[str, int]:
        """Counts the games by their ending, the most frequent first."""
        return dict(Counter(game.ending for game in self.games).most_common())

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(game.plies for game in self.games)

    @property
    def mean_length(self) -> float:
        return sum(self.lengths) / len(self.games)


def as_player(player: PlayerLike, spec: GameSpec, resolver: Resolver | None = None) -> Player:
    """Gives the player for a text or a policy."""
    if isinstance(player, Player):
        return player
    if not isinstance(player, str):
        return Player(getattr(player, "name", type(player).__name__), player)
    policy = named_player(player, spec)
    if policy is None and resolver is not None:
        policy = resolver(player, spec)
    if policy is None:
        near = did_you_mean(player, PLAYERS)
        raise ConfigError(f"no player is named {player!r}{near}. Players: {', '.join(PLAYERS)}, or a policy")
    return Player(player, policy)


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
    resolver: Resolver | None = None,
    on_game: OnGame | None = None,
) -> MatchResult:
    """Plays ``games`` games (an even number) of two players, ``batch`` of them side by side.

    Each pair of games starts with ``opening_plies`` random plies; the default is 4, or fewer if games are short
    (see ``usual_opening``). The same arguments give the same games. With ``record`` the result has all actions.
    ``on_game`` is called when games end.
    """
    options = dict(options or {})
    games = whole_number("games", games, 2, MAX_GAMES)
    if opening_plies is None:
        opening_plies = usual_opening(game, options)
    opening_plies = whole_number("opening_plies", opening_plies, 0, MAX_OPENING)
    batch = whole_number("batch", batch, 1, MAX_GAMES)
    if games % 2:
        raise ConfigError(
            f"games come in pairs, so that both players have both seats; play {games + 1}, not {games}"
        )
    spec = make_game(game, **options).spec
    if spec.seats != 2:
        raise ConfigError(f"a match has two players, and {spec.name} has {spec.seats} seats")
    players = (as_player(first, spec, resolver), as_player(second, spec, resolver))
    played: list[PlayedGame] = []
    for start in range(0, games, batch):
        slots = make_game(game, batch=min(batch, games - start), seed=seed, first_game=start, **options)
        table = _Table(slots, players, seed, start, opening_plies, record)
        for finished in table.play():
            if on_game is not None:
                on_game(start + finished, games)
        played += table.played
    names = (players[0].name, players[1].name)
    return MatchResult(spec.name, names, seed, opening_plies, tuple(played), options, spec.record_format)


def usual_opening(game: GameSource, options: Mapping[str, Any]) -> int:
    """Gives the default number of random plies: 4, but at most a fifth of the length of a random game. More would
    decide a short game before the players can. Tic-tac-toe gets 1, connect four and Shogi 4."""
    probe = make_game(game, batch=_PROBES, seed=0, **options)
    lengths = np.full(_PROBES, _LONG_ENOUGH)
    for _ in range(_LONG_ENOUGH):
        step = probe.step(probe.random_actions())
        first = step.done & (lengths == _LONG_ENOUGH)
        lengths[first] = step.plies[first]
    return min(_USUAL_OPENING, int(lengths.mean() / _SHARE_OF_A_GAME))


class _Table:
    """One batch of games of a match. Game 2k and game 2k + 1 are a pair."""

    def __init__(
        self,
        game: Game,
        players: tuple[Player, Player],
        seed: int,
        first_game: int,
        opening: int,
        record: bool,
    ) -> None:
        self._game, self._seed, self._first_game, self._opening = game, seed, first_game, opening
        self._policies = [player.policy for player in players]
        self._number = first_game + np.arange(game.batch)
        self._seat = self._number % 2
        """The seat of the first player in each slot."""
        self._finished: list[PlayedGame | None] = [None] * game.batch
        self._actions: list[list[int]] | None = [[] for _ in range(game.batch)] if record else None

    @property
    def played(self) -> list[PlayedGame]:
        """The finished games that count."""
        return [game for game in self._finished if game is not None]

    def play(self) -> Iterator[int]:
        """Plays all games to their end; yields the number of finished games whenever it grows."""
        situation = Situation(self._game, self._seed, self._first_game)
        ended = 0
        while ended < len(self._finished):
            rows = situation.rows
            actions = self._decide(situation, rows)
            self._write_down(rows, actions)
            self._count(self._game.step(actions))
            situation.advance()
            if len(self.played) > ended:
                ended = len(self.played)
                yield ended

    def _decide(self, situation: Situation, rows: Rows) -> IntArray:
        """Decides for all rows: openings are random, players decide in games that count, and later games are
        random."""
        counts = np.array([game is None for game in self._finished])[rows.game]
        actions = np.zeros(len(rows), np.int32) if counts.all() else self._game.random_actions()
        opening = np.flatnonzero(counts & (rows.ply < self._opening))
        if len(opening):
            actions[opening] = self._draw_opening(situation, opening)
        deciding = np.flatnonzero(counts & (rows.ply >= self._opening)).astype(np.int32)
        for index, policy in enumerate(self._policies):
            sits = (self._seat[rows.game[deciding]] == rows.seat[deciding]) == (index == 0)
            mine = deciding[sits]
            if len(mine):
                actions[mine] = policy.act(situation, mine).actions
        return actions

    def _draw_opening(self, situation: Situation, chosen: NDArray[np.intp]) -> IntArray:
        """Draws a random action for each chosen row, the same for both games of a pair."""
        rows, legal = situation.rows, situation.legal[chosen]
        episode, ply, seat = rows.episode[chosen], rows.ply[chosen], rows.seat[chosen]
        if episode.max() > _MOST_SHORT_GAMES:
            raise ConfigError(
                f"games of {self._game.spec.name} end within the {self._opening} random plies of their opening; lower "
                f"opening_plies"
            )
        pair = self._number[rows.game[chosen]] // 2
        numbers = keyed_uniform(self._seed, pair, episode, ply, _OPENINGS, seat)
        picks = (numbers * legal_counts(legal)).astype(np.int64)
        actions: IntArray = (legal.cumsum(axis=1) == picks[:, None] + 1).argmax(axis=1).astype(np.int32)
        return actions

    def _write_down(self, rows: Rows, actions: IntArray) -> None:
        if self._actions is None:
            return
        for slot, action in zip(rows.game.tolist(), actions.tolist(), strict=True):
            if self._finished[slot] is None:
                self._actions[slot].append(action)

    def _count(self, step: Step) -> None:
        for slot in np.flatnonzero(step.done).tolist():
            if self._finished[slot] is not None:
                continue
            if step.plies[slot] <= self._opening:  # no player has decided yet: the slot starts again
                if self._actions is not None:
                    self._actions[slot].clear()
                continue
            self._finished[slot] = self._played(step, slot)

    def _played(self, step: Step, slot: int) -> PlayedGame:
        seat = int(self._seat[slot])
        mine, other = float(step.scores[slot, seat]), float(step.scores[slot, 1 - seat])
        truncated = bool(step.truncated[slot])
        return PlayedGame(
            pair=int(self._number[slot]) // 2,
            seat=seat,
            result=0 if truncated else (mine > other) - (mine < other),
            plies=int(step.plies[slot]),
            ending=self._game.spec.endings[step.ending[slot]],
            truncated=truncated,
            actions=tuple(self._actions[slot]) if self._actions is not None else (),
        )
