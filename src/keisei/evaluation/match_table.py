"""One batch of games of a match: who sits where, which openings are drawn, and which games count."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from keisei.errors import ConfigError
from keisei.evaluation.results import PlayedGame, judged_by_returns
from keisei.games.contract import Game, IntArray, Rows, Step
from keisei.games.randomness import keyed_uniform
from keisei.policies.contract import Policy, Situation
from keisei.policies.sampling import legal_counts

__all__ = ["MatchTable"]

_MOST_SHORT_GAMES = 100
"""How often a game may end within its opening before this is an error."""
_OPENINGS = 0x6F70656E
"""Separates the random numbers of openings from all others of the seed."""


class MatchTable:
    """Games that are played side by side. The first policy has seat 0 in the first game of a round, seat 1 in the
    next, and so on. The second policy has all other seats."""

    def __init__(
        self,
        game: Game,
        policies: tuple[Policy, Policy],
        seed: int,
        first_game: int,
        opening: int,
        record: bool,
    ) -> None:
        self._game, self._seed, self._first_game, self._opening = game, seed, first_game, opening
        self._policies = policies
        self._round, self._seat = np.divmod(first_game + np.arange(game.batch), game.spec.seats)
        """Of each slot: its round, and the seat of the first player."""
        self._truncated_is_drawn = not judged_by_returns(game.spec)
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
        """Draws a random action for each chosen row, the same for all games of a round."""
        rows, legal = situation.rows, situation.legal[chosen]
        episode, ply, seat = rows.episode[chosen], rows.ply[chosen], rows.seat[chosen]
        if episode.max() > _MOST_SHORT_GAMES:
            raise opening_error(self._game.spec.name, self._opening)
        numbers = keyed_uniform(self._seed, self._round[rows.game[chosen]], episode, ply, _OPENINGS, seat)
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
        truncated = bool(step.truncated[slot])
        scores = step.scores[slot] * (not (truncated and self._truncated_is_drawn))
        return PlayedGame(
            round=int(self._round[slot]),
            seat=int(self._seat[slot]),
            scores=tuple(map(float, scores)),
            plies=int(step.plies[slot]),
            ending=self._game.spec.endings[step.ending[slot]],
            truncated=truncated,
            actions=tuple(self._actions[slot]) if self._actions is not None else (),
        )


def opening_error(game: str, plies: int) -> ConfigError:
    return ConfigError(
        f"games of {game} end within the {plies} random plies of their opening; lower opening_plies"
    )
