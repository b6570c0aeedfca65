"""The policy that plays at random."""

from __future__ import annotations

import numpy as np

from keisei.games.contract import Array, BoolArray, FloatArray, IntArray
from keisei.policies.contract import Decision, Situation, no_values
from keisei.policies.sampling import legal_counts

__all__ = ["RandomPolicy"]


class RandomPolicy:
    """Plays every legal action with the same probability, and needs no observation.

    Log-probabilities need the legal mask, which takes some 0.4 µs for a row of Shogi. With ``log_probs=False`` they
    are 0, for rows that nobody learns from.
    """

    def __init__(self, log_probs: bool = True) -> None:
        self._wants_log_probs = log_probs

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        actions = situation.game.random_actions()
        if selected is not None:
            actions = actions[selected]
        return Decision(actions, self._log_probs(situation, selected), no_values(len(actions)))

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return no_values(len(observations))

    def _log_probs(self, situation: Situation, selected: IntArray | None) -> FloatArray:
        if not self._wants_log_probs:
            return no_values(len(situation.rows) if selected is None else len(selected))
        legal = situation.legal if selected is None else situation.legal[selected]
        return -np.log(legal_counts(legal).astype(np.float32))
