"""A player that searches some plies ahead: by the batch itself if it can, else by alpha-beta on copies."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from keisei.games.contract import Array, BoolArray, FloatArray, GameSpec, IntArray
from keisei.games.offers import LooksAhead
from keisei.games.options import whole_number
from keisei.games.single import SingleGame
from keisei.native import core
from keisei.policies.contract import Decision, Situation, no_values
from keisei.policies.players.lookahead import by_lot, games_of, legal_actions, look, need_search, row_keys

__all__ = ["SearchPlayer", "TreeSearch"]


class SearchPlayer:
    """Plays the best action of a search over ``depth`` plies. It chooses at random among equal actions.

    A batch with its own look-ahead (``LooksAhead``) values its leaves itself. In other games only finished games
    have a value, so a search that always reaches the end plays perfectly. Log-probabilities are 0, since the choice
    is certain given its key.
    """

    def __init__(self, depth: int) -> None:
        self.depth = whole_number("depth", depth, 1, core.MAX_SEARCH_DEPTH)
        self.name = f"search:{self.depth}"
        self._tree = TreeSearch()

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        keys = row_keys(situation, selected)
        if isinstance(situation.game, LooksAhead):
            actions = situation.game.search_actions(self.depth, selected, keys)
        else:
            actions = self._search_copies(situation, selected, keys)
        return Decision(actions, no_values(len(actions)), no_values(len(actions)))

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return no_values(len(observations))

    def _search_copies(
        self, situation: Situation, selected: IntArray | None, keys: NDArray[np.uint64]
    ) -> IntArray:
        spec = situation.game.spec
        need_search(situation.game, self.name)
        plies = situation.rows.ply if selected is None else situation.rows.ply[selected]
        depths = [self._depth_at(spec, ply) for ply in plies.tolist()]
        games = games_of(situation, selected, self.name)
        chosen = [
            self._tree.choose(game, depth, key)
            for game, depth, key in zip(games, depths, keys.tolist(), strict=True)
        ]
        return np.array(chosen, np.int32)

    def _depth_at(self, spec: GameSpec, ply: int) -> int:
        """Limits the depth by the ply limit: beyond it the game is truncated, which is a draw, as a leaf is."""
        return self.depth if spec.max_plies is None else max(1, min(self.depth, spec.max_plies - ply))


class _Bound(IntEnum):
    AT_MOST = -1
    EXACT = 0
    AT_LEAST = 1


_Place: TypeAlias = tuple[type[SingleGame], Hashable, int]
"""The class of a game, the key of a position, and the remaining depth."""


class TreeSearch:
    """Negamax with alpha-beta over copies of a single game of two seats and zero sum.

    An unfinished position at the last ply has value 0. A finished game has its score as value, and a little more if
    it ends sooner. So wins come early and losses late. The value of a position depends only on itself and the
    remaining depth, so values of positions with a key are remembered between decisions.
    """

    HASTE = 1 / 1024
    MOST_REMEMBERED = 1 << 18

    def __init__(self) -> None:
        self._remembered: dict[_Place, tuple[float, _Bound]] = {}
        self.nodes = 0
        """Positions searched so far."""

    def choose(self, game: SingleGame, depth: int, key: int) -> int:
        """Finds the best action for the seat to move."""
        best, best_value = -1, -np.inf
        # Actions come in a random order, and the first of the best ones is taken.
        for action in by_lot(legal_actions(game), key):
            value = self._after(game, action, depth, best_value, np.inf)
            if value > best_value:
                best, best_value = action, value
        return best

    def value(self, game: SingleGame, depth: int, alpha: float = -np.inf, beta: float = np.inf) -> float:
        """Computes the value of a position for the seat to move: exact between alpha and beta, else a bound."""
        key = game.position_key()
        place = None if key is None else (type(game), key, depth)
        known = self._known(place, alpha, beta)
        if known is not None:
            return known
        best = -np.inf
        for action in legal_actions(game):
            best = max(best, self._after(game, action, depth, max(alpha, best), beta))
            if best >= beta:
                break
        self._remember(place, best, alpha, beta)
        return best

    def _after(self, game: SingleGame, action: int, depth: int, alpha: float, beta: float) -> float:
        """Computes the value of an action for the seat that plays it."""
        self.nodes += 1
        seat = game.acting()[0]
        branch = look(game, action, depth)
        gain = float(branch.rewards[seat]) if game.scored_by_rewards and branch.rewards is not None else 0.0
        if branch.outcome is not None:
            scores = branch.outcome.scores
            return (gain + (float(scores[seat]) if scores else 0.0)) * (1 + depth * self.HASTE)
        if depth == 1:
            return gain
        if branch.game.acting()[0] == seat:
            return gain + self.value(branch.game, depth - 1, alpha - gain, beta - gain)
        return gain - self.value(branch.game, depth - 1, gain - beta, gain - alpha)

    def _known(self, place: _Place | None, alpha: float, beta: float) -> float | None:
        found = None if place is None else self._remembered.get(place)
        if found is None:
            return None
        value, bound = found
        settled = (
            bound is _Bound.EXACT
            or (bound is _Bound.AT_LEAST and value >= beta)
            or (bound is _Bound.AT_MOST and value <= alpha)
        )
        return value if settled else None

    def _remember(self, place: _Place | None, value: float, alpha: float, beta: float) -> None:
        if place is None:
            return
        if len(self._remembered) >= self.MOST_REMEMBERED:
            self._remembered.clear()
        bound = _Bound.AT_MOST if value <= alpha else _Bound.AT_LEAST if value >= beta else _Bound.EXACT
        self._remembered[place] = (value, bound)
