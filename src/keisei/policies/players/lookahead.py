"""What players that look ahead share: copies of single games, and keys that decide between equal actions.

A look-ahead must not see future chance events. So copies are played with other random numbers, which depend only on
the depth. It does see what a game hides from its players: these players are for games of perfect information.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError, KeiseiError, PolicyError
from keisei.games.contract import Game, GameSpec, IntArray
from keisei.games.offers import HasHeuristic, LooksAhead
from keisei.games.randomness import KeyedRandom, Stream, keyed_word, keyed_words
from keisei.games.single import Outcome, SingleGame
from keisei.policies.contract import Situation

__all__ = [
    "Branch",
    "by_lot",
    "games_of",
    "legal_actions",
    "look",
    "need_look_ahead",
    "need_search",
    "need_turns",
    "row_keys",
]

_TRIAL_PLIES = 4


@runtime_checkable
class _CanPeek(Protocol):
    def peek(self, game: int) -> SingleGame: ...


@dataclass(frozen=True, slots=True)
class Branch:
    """A game after one more action."""

    game: SingleGame
    rewards: Sequence[float] | None
    outcome: Outcome | None

    def is_won_by(self, seat: int) -> bool:
        if self.outcome is None:
            return False
        scores = self.outcome.scores or self.rewards or ()
        return len(scores) > seat and scores[seat] > 0 and scores[seat] == max(scores)


def look(game: SingleGame, action: int, depth: int = 0) -> Branch:
    """Plays an action in a copy of the game."""
    after = game.copy()
    chance = KeyedRandom(0, 0, 0)
    chance.move_to(depth)
    rewards = after.play(action, chance)
    return Branch(after, rewards, after.outcome())


def legal_actions(game: SingleGame) -> list[int]:
    """Lists the legal actions of the seat to move."""
    legal = game.legal(game.acting()[0])
    if isinstance(legal, np.ndarray) and legal.dtype == np.bool_:
        return [int(action) for action in np.flatnonzero(legal)]
    return [int(action) for action in legal]


def by_lot(actions: Iterable[int], key: int) -> list[int]:
    """Lists the actions in a random order, which the key determines."""
    return sorted(actions, key=lambda action: keyed_word(key, action), reverse=True)


def row_keys(situation: Situation, selected: IntArray | None) -> NDArray[np.uint64]:
    """Computes 64 random bits for each row. They depend only on its game, ply and seat."""
    rows = situation.rows
    keys = (rows.game, rows.episode, rows.ply, rows.seat)
    game, episode, ply, seat = keys if selected is None else (key[selected] for key in keys)
    numbers = game.astype(np.uint64) + np.uint64(situation.first_game)
    return keyed_words(situation.seed, numbers, episode, ply, int(Stream.POLICY), seat)


def games_of(situation: Situation, selected: IntArray | None, player: str) -> list[SingleGame]:
    """Makes a copy of the game of each row."""
    game = _need_peek(situation.game, player)
    need_turns(situation.game.spec, player)
    indices = situation.rows.game if selected is None else situation.rows.game[selected]
    return [game.peek(int(index)) for index in indices]


def _need_peek(game: Game, player: str) -> _CanPeek:
    if not isinstance(game, _CanPeek):
        raise PolicyError(
            f"{player} looks ahead in games written as a SingleGame, and where the batch can do it (LooksAhead); "
            f"{game.spec.name} is neither. Give its batch a method peek(game) that copies one game as a SingleGame"
        )
    return game


def need_look_ahead(game: Game, player: str) -> None:
    """Refuses a game in which no player can look ahead. Pass a new game: the check plays some plies of it."""
    if isinstance(game, LooksAhead):
        return
    copies = _need_peek(game, player)
    for _ in range(_TRIAL_PLIES):
        try:
            shared = _shares_state(copies)
        except KeiseiError:
            raise
        except Exception as error:
            raise ConfigError(
                f"{player} cannot look ahead in {game.spec.name}: a copy of it raises {type(error).__name__}: {error}"
            ) from error
        if shared:
            raise ConfigError(
                f"{player} cannot look ahead in {game.spec.name}: its copy() shares state with the game, so that a "
                f"move in the copy changes the game; copy all that play() changes"
            )
        game.step(game.random_actions())


def _shares_state(game: _CanPeek) -> bool:
    """Checks if a move in a copy of the first game changes that game."""
    one, other = game.peek(0), game.peek(0)
    seat = one.acting()[0]
    before = np.asarray(other.observe(seat)).tobytes()
    look(one, legal_actions(one)[0])
    after = game.peek(0)
    return after.acting()[0] != seat or np.asarray(after.observe(seat)).tobytes() != before


def need_turns(spec: GameSpec, player: str) -> None:
    """Refuses games in which several seats act at once."""
    if spec.simultaneous:
        raise ConfigError(f"{player} plays games in turns; in {spec.name} several seats act at once")


def need_search(game: Game, player: str) -> None:
    """Refuses games that cannot be searched: the batch has no look-ahead, and its copies do not suffice for one."""
    spec = game.spec
    if isinstance(game, LooksAhead):
        return
    if spec.chance:
        plays = "'heuristic'" if isinstance(game, HasHeuristic) else "'random'"
        raise ConfigError(
            f"{player} searches games without chance, and {spec.name} has dice or the like; {plays} plays it"
        )
    if not (spec.zero_sum and spec.seats == 2):
        raise ConfigError(
            f"{player} plays games of two seats in which one wins what the other loses (zero_sum); {spec.name} is "
            f"none. 'greedy' plays any game in turns"
        )
