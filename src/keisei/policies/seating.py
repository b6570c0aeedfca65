"""Who sits where: the learner in every seat, or in some games against others. Does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.errors import PolicyError
from keisei.games.contract import Rows
from keisei.games.randomness import Stream, keyed_uniform
from keisei.policies.contract import Decision, Policy, Situation

__all__ = ["Assignment", "OpponentConfig", "PolicyConfig", "Seating", "play"]

Assignment: TypeAlias = NDArray[np.int16]
"""[rows]: which policy decides for each row. 0 is the learner, k is the k-th opponent of a ``Seating``. The number
after the last opponent is chance, which plays openings."""

_ROUNDING = 1e-9


class PolicyConfig(Settings):
    """A policy, and how it draws its actions."""

    policy: str
    """learner (the weights that are being trained), random, greedy, heuristic or search:DEPTH."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Temperature of its play; 0 takes the best action."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of its decisions that are random."""


class OpponentConfig(PolicyConfig):
    """A policy that the learner plays against, and how often."""

    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the games in which it plays. It takes all seats but one."""


class Seating(Settings):
    """Who plays against the learner. In all other games the learner plays against itself."""

    opponents: Annotated[tuple[OpponentConfig, ...], Field(max_length=1024)] = ()
    opening_plies: Annotated[int, Field(ge=0, le=1000)] = 0
    """Games begin with 0 to this many random plies, each number equally often. They show the learner positions that its
    own play no longer reaches. It does not learn from these plies."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Seating:
        total = sum(opponent.share for opponent in self.opponents)
        if total > 1 + _ROUNDING:
            raise ValueError(f"the shares of all opponents together must be at most 1; they are {total:g}")
        return self

    def assign(self, rows: Rows, seed: int, first_game: int, seats: int) -> Assignment:
        """Gives the policy that decides for each row. A game keeps its opponent from the first ply to the last. The
        learner moves on by one seat with each game of a slot."""
        assignment = np.zeros(len(rows), np.int16)
        game = rows.game.astype(np.int64) + first_game
        if self.opponents:
            uniforms = keyed_uniform(seed, game, rows.episode, 0, Stream.OPPONENT)
            learners = rows.seat == (game + rows.episode) % seats
            assignment[:] = np.where(learners, 0, self._by_share(uniforms))
        if self.opening_plies:
            uniforms = keyed_uniform(seed, game, rows.episode, 0, Stream.OPENING)
            length = (uniforms * (self.opening_plies + 1)).astype(np.int64)
            assignment[rows.ply < length] = len(self.opponents) + 1
        return assignment

    def owners(self, assignment: Assignment) -> Assignment:
        """Gives the owner of each row: 0 where the learner decides, -1 where nobody learns from it."""
        return np.where(assignment == 0, np.int16(0), np.int16(-1))

    def _by_share(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Gives the opponent of each game; 0 where the learner plays against itself."""
        shares = np.cumsum([opponent.share for opponent in self.opponents])
        if abs(shares[-1] - 1) <= _ROUNDING:
            shares[-1] = 1  # so that ten shares of 0.1 cover all games
        opponent = np.searchsorted(shares, uniforms, side="right") + 1
        opponent[opponent > len(shares)] = 0
        return opponent


def play(policies: Sequence[Policy], situation: Situation, assignment: Assignment) -> Decision:
    """Lets each policy decide for its own rows, and joins the decisions in the order of the rows."""
    if len(assignment) != len(situation.rows):
        raise PolicyError(
            f"{len(situation.rows)} rows must act, and {len(assignment)} were assigned a policy"
        )
    if not assignment.any():
        return policies[0].act(situation)
    present: list[int] = np.unique(assignment).tolist()
    if not 0 <= present[0] <= present[-1] < len(policies):
        raise PolicyError(
            f"rows are assigned to the policies {present}, and there are {len(policies)}; give "
            f"play all that seated_policies gives"
        )
    if len(present) == 1:
        return policies[present[0]].act(situation)
    rows = len(assignment)
    merged = Decision(np.empty(rows, np.int32), np.empty(rows, np.float32), np.empty(rows, np.float32))
    for index in present:
        selected = np.flatnonzero(assignment == index).astype(np.int32)
        decision = policies[index].act(situation, selected)
        merged.actions[selected] = decision.actions
        merged.log_probs[selected] = decision.log_probs
        merged.values[selected] = decision.values
    return merged
