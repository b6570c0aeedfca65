"""A player that takes the most it can win at once."""

from __future__ import annotations

import numpy as np

from keisei.games.contract import Array, BoolArray, FloatArray, IntArray
from keisei.games.offers import LooksAhead
from keisei.games.single import SingleGame
from keisei.policies.contract import Decision, Situation, no_values
from keisei.policies.players.lookahead import Branch, by_lot, games_of, legal_actions, look, row_keys

__all__ = ["GreedyPlayer"]

_MOST_REPLIES = 1024
"""The most answers of opponents that a decision looks at. If there are more, it looks at none."""


class GreedyPlayer:
    """If the batch has its own look-ahead (``LooksAhead``), this player uses it. In Shogi it takes the most
    material.

    In other turn-based games it takes an action that wins at once. Else it takes one after which no opponent can
    win at once, if that is quick to check. Else it plays at random. It chooses at random among equal actions.
    Log-probabilities are 0, since the choice is certain given its key.
    """

    name = "greedy"

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        keys = row_keys(situation, selected)
        if isinstance(situation.game, LooksAhead):
            actions = situation.game.greedy_actions(selected, keys)
        else:
            games = games_of(situation, selected, self.name)
            chosen = [choose(game, key) for game, key in zip(games, keys.tolist(), strict=True)]
            actions = np.array(chosen, np.int32)
        return Decision(actions, no_values(len(actions)), no_values(len(actions)))

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return no_values(len(observations))


def choose(game: SingleGame, key: int) -> int:
    """Chooses an action for the seat to move."""
    seat = game.acting()[0]
    branches = {action: look(game, action) for action in by_lot(legal_actions(game), key)}
    for action, branch in branches.items():
        if branch.is_won_by(seat):
            return action
    if len(branches) ** 2 <= _MOST_REPLIES:
        for action, branch in branches.items():
            if not _gives_a_win(branch, seat):
                return action
    return next(iter(branches))


def _gives_a_win(branch: Branch, seat: int) -> bool:
    """Checks if the next seat is an opponent that can win with one action."""
    if branch.outcome is not None:
        return any(branch.is_won_by(other) for other in range(branch.game.seats) if other != seat)
    rival = branch.game.acting()[0]
    return rival != seat and any(
        look(branch.game, reply, 1).is_won_by(rival) for reply in legal_actions(branch.game)
    )
