"""The player that takes what it can get at once."""

from __future__ import annotations

import numpy as np

from keisei.games.contract import Array, BoolArray, FloatArray, IntArray
from keisei.games.lookahead import LooksAhead
from keisei.games.single import SingleGame
from keisei.policies.contract import Decision, Situation, no_values
from keisei.policies.lookahead import Branch, by_lot, games_of, legal_actions, look, row_keys

__all__ = ["GreedyPlayer"]

_MOST_REPLIES = 1024
"""How many answers of the others a decision may look at; where there are more, none are."""


class GreedyPlayer:
    """Where the batch looks ahead by itself (``LooksAhead``), what it finds: in a game of pieces, the most material.

    In other games in turns: an action that wins at once, else one that lets nobody else win at once (where that is
    quickly seen), else a random one. Equal actions are drawn by lot. Log-probabilities are 0: given its key, the
    choice is certain.
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
    """The action of the seat to move."""
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
    """Whether whoever is next, another seat, wins with one action."""
    if branch.outcome is not None:
        return any(branch.is_won_by(other) for other in range(branch.game.seats) if other != seat)
    rival = branch.game.acting()[0]
    return rival != seat and any(
        look(branch.game, reply, 1).is_won_by(rival) for reply in legal_actions(branch.game)
    )
