"""Who sits where: the learner in every seat, or in some games against others. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.errors import PolicyError
from keisei.games.contract import Array, Rows
from keisei.games.randomness import Stream, keyed_uniform
from keisei.policies.contract import Decision, Policy, Situation
from keisei.ranges import MAX_OPENING, Temperature

__all__ = [
    "CHANCE",
    "FIRST_MEMBER",
    "LAST_MEMBER",
    "LEARNER",
    "SELF_PLAY",
    "Assignment",
    "Lineup",
    "OpponentConfig",
    "PolicyConfig",
    "Seating",
    "learner_seat",
    "play",
]

Assignment: TypeAlias = NDArray[np.int16]
"""[rows]: which policy decides for each row. 0 is the learner, k is the k-th opponent of a ``Seating``, numbers from
``FIRST_MEMBER`` on are members of a league, and ``CHANCE`` plays openings."""
LEARNER = 0
CHANCE = -1
FIRST_MEMBER = 100
"""The number of the first member of a league. The numbers below belong to the opponents of a seating."""
LAST_MEMBER = int(np.iinfo(np.int16).max)

_ROUNDING = 1e-9


class PolicyConfig(Settings):
    """A policy, and how it draws its actions."""

    policy: str
    """learner (the weights that are being trained), random, greedy, heuristic or search:DEPTH."""
    temperature: Temperature = 1.0
    """Temperature of its play; 0 takes the best action."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of its decisions that are random."""


class OpponentConfig(PolicyConfig):
    """A policy that the learner plays against, and how often."""

    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the games in which it plays. It takes all seats but one."""


@dataclass(frozen=True, slots=True)
class Lineup:
    """The member of the league that the next games of a table meet."""

    member: int = LEARNER
    """The number of a member of the league."""
    share: float = 0.0
    """Share of the games that meet it, of those without an opponent of the seating. In the others the learner plays
    against itself."""


SELF_PLAY = Lineup()
"""No game meets a member of the league."""


class Seating(Settings):
    """Who plays against the learner. In all other games the learner plays against itself, or against a member of its
    league."""

    opponents: Annotated[tuple[OpponentConfig, ...], Field(max_length=FIRST_MEMBER - 1)] = ()
    opening_plies: Annotated[int, Field(ge=0, le=MAX_OPENING)] = 0
    """Games begin with 0 to this many random plies, each number equally often. They show the learner positions that its
    own play no longer reaches. It does not learn from these plies."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Seating:
        total = sum(opponent.share for opponent in self.opponents)
        if total > 1 + _ROUNDING:
            raise ValueError(f"the shares of all opponents together must be at most 1; they are {total:g}")
        return self

    @property
    def fills_all_games(self) -> bool:
        """Whether its opponents play in all games, so that nobody else meets the learner."""
        return sum(opponent.share for opponent in self.opponents) >= 1 - _ROUNDING

    def assign(
        self, rows: Rows, seed: int, first_game: int, seats: int, members: Assignment | None = None
    ) -> Assignment:
        """Finds the policy that decides for each row. A game keeps its opponent from the first ply to the last. The
        learner moves on by one seat with each game of a slot. ``members`` [games] are those of ``draw_members``."""
        assignment = np.zeros(len(rows), np.int16)
        game = rows.game.astype(np.int64) + first_game
        if self.opponents or members is not None:
            drawn = None if members is None else members[rows.game]
            learners = rows.seat == learner_seat(game, rows.episode, seats)
            assignment[:] = np.where(learners, LEARNER, self.opponents_of(game, rows.episode, seed, drawn))
        if self.opening_plies:
            uniforms = keyed_uniform(seed, game, rows.episode, 0, Stream.OPENING)
            length = (uniforms * (self.opening_plies + 1)).astype(np.int64)
            assignment[rows.ply < length] = CHANCE
        return assignment

    def opponents_of(
        self, game: Array, episode: Array, seed: int, members: Assignment | None = None
    ) -> Assignment:
        """Finds the opponent of the learner in each of these games; 0 if it meets itself. ``members`` are the members
        that the games drew when they began."""
        if not self.opponents:
            return np.zeros(len(game), np.int16) if members is None else members
        uniforms = keyed_uniform(seed, game, episode, 0, Stream.OPPONENT)
        met = self._by_share(uniforms).astype(np.int16)
        return met if members is None else np.where(met == LEARNER, members, met)

    def draw_members(self, game: Array, episode: Array, seed: int, lineup: Lineup) -> Assignment:
        """Draws the member of the league for each of these games, which begin now; 0 for games without one."""
        taken = sum(opponent.share for opponent in self.opponents)
        uniforms = keyed_uniform(seed, game, episode, 0, Stream.OPPONENT)
        meets = (uniforms >= taken) & (uniforms < taken + (1 - taken) * lineup.share)
        return np.where(meets, np.int16(lineup.member), np.int16(LEARNER))

    def owners(self, assignment: Assignment, learners: Array | int = 0) -> Assignment:
        """Computes the owner of each row: one of ``learners`` where they decide, -1 where nobody learns from it."""
        found: Assignment = np.where(assignment == LEARNER, learners, -1).astype(np.int16)
        return found

    def _by_share(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draws the opponent of each game; 0 where the learner plays against itself."""
        shares = np.cumsum([opponent.share for opponent in self.opponents])
        if abs(shares[-1] - 1) <= _ROUNDING:
            shares[-1] = 1  # so that ten shares of 0.1 cover all games
        opponent = np.searchsorted(shares, uniforms, side="right") + 1
        opponent[opponent > len(shares)] = 0
        return opponent


def learner_seat(game: Array, episode: Array, seats: int) -> Array:
    """Finds the learner's seat in games against others. Games are numbered across all tables."""
    seat: Array = (game + episode) % seats
    return seat


def play(policies: Mapping[int, Policy], situation: Situation, assignment: Assignment) -> Decision:
    """Lets each policy decide for its own rows, and joins the decisions in the order of the rows."""
    if len(assignment) != len(situation.rows):
        raise PolicyError(
            f"{len(situation.rows)} rows must act, and {len(assignment)} were assigned a policy"
        )
    if not assignment.any():
        return policies[LEARNER].act(situation)
    present: list[int] = np.unique(assignment).tolist()
    unknown = [number for number in present if number not in policies]
    if unknown:
        raise PolicyError(
            f"rows are assigned to policy {unknown[0]}, and the policies are {sorted(policies)}; give play all that "
            f"seated_policies gives, and the members of the league"
        )
    if len(present) == 1:
        return policies[present[0]].act(situation)
    rows = len(assignment)
    merged = Decision(np.empty(rows, np.int32), np.empty(rows, np.float32), np.empty(rows, np.float32))
    for number in present:
        selected = np.flatnonzero(assignment == number).astype(np.int32)
        decision = policies[number].act(situation, selected)
        merged.actions[selected] = decision.actions
        merged.log_probs[selected] = decision.log_probs
        merged.values[selected] = decision.values
    return merged
