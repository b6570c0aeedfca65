"""The games of one table that a worker holds. They are played step by step, and each decision is written into the
slab."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab
from keisei.games.contract import BoolArray, FinalRows, IntArray, Rows, Step
from keisei.games.randomness import keyed_word
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.worker.members import Members
from keisei.parallel.worker.table_seats import TableSeats
from keisei.policies.behaviour import Play
from keisei.policies.contract import Decision, Situation
from keisei.policies.learner_policy import learner_policy
from keisei.policies.networks import ActorCritic
from keisei.policies.seating import LEARNER, Assignment, Lineup

Slots: TypeAlias = IntArray | slice
"""The slots of the rows in a step of a slab."""
ALL_SLOTS = slice(None)
"""All slots, for steps in which every slot acts. Rows are in the order of their slots. A list of slots would cost 1.4
µs more for each column that is written."""


@dataclass
class Timing:
    """How the time of a slab was spent, and how many rows acted."""

    transitions: int = 0
    game_seconds: float = 0.0
    policy_seconds: float = 0.0


class TableInHand:
    """Plays the slabs of one table. The result depends only on its state, the weights and the seed."""

    def __init__(
        self,
        plan: WorkerPlan,
        table: int,
        epoch: int,
        network: ActorCritic | None,
        members: Members | None = None,
    ) -> None:
        self.epoch = epoch
        self.next_sequence = -1
        """The sequence number of the slab that these games are ready for. A worker checks it before it continues
        them."""
        self._plan, self._table = plan, table
        self._first_game = plan.first_game(table)
        seed = plan.seed if epoch == 0 else keyed_word(plan.seed, epoch) >> 1
        self._game = plan.env.make(batch=plan.games, seed=seed, first_game=self._first_game)
        spec = self._game.spec
        self._shape = SlabShape.of(spec, plan.horizon, plan.games)
        self._network = None if plan.central else network
        self._learner = learner_policy(self._network, spec)
        self._situation = self._look()
        self._seats = TableSeats(plan, table, self._situation, self._learner, self._network, members)

    def load(self, state: bytes) -> None:
        """Continues the games from a saved state. Each game goes on against the same opponent."""
        self._game.load(self._seats.load(state))
        self._situation = self._look()

    def save(self) -> bytes:
        return self._seats.save(self._game.save())

    def meet(self, lineup: Lineup) -> None:
        """Lets games that begin from now on meet this member of the league."""
        self._seats.meet(lineup, self._situation)

    def behave(self, settings: Play) -> None:
        """Tells the learner how freely it plays, unless this table has settings of its own."""
        plan, table = self._plan, self._table
        self._learner.behave(plan.play_at(table, settings), plan.games_of(table))

    def play(
        self, slab: Slab, version: Callable[[], int], tick: Callable[[], None], ask: Callable[[int], None]
    ) -> Timing:
        """Plays one slab; each step advances all games. ``version`` gives the version of the weights of a step, and
        may renew them. With central inference, ``ask`` lets the manager decide a step. ``tick`` is called after each
        step."""
        timing = Timing()
        for step in range(self._shape.steps):
            began = time.perf_counter()
            slots = self._write_rows(slab, step)
            slab.version[step, slots] = version()
            decided_from = time.perf_counter()
            decision = self._decide(slab, step, slots, ask)
            decided = time.perf_counter()
            outcome = self._game.step(decision.actions)
            _write_outcome(slab, step, outcome)
            self._seat_next(slab, step, outcome.done)
            timing.game_seconds += time.perf_counter() - decided + decided_from - began
            if outcome.truncated.any():
                self._write_finals(slab, step, outcome)
            timing.policy_seconds += decided - decided_from
            timing.transitions += len(decision.actions)
            tick()
        self._write_end(slab)
        return timing

    def _seat_next(self, slab: Slab, step: int, done: BoolArray) -> None:
        """Moves on to the rows that act next. Writes whom the learner met in the games that are done, and seats those
        that have begun in their place."""
        situation = self._situation
        if not done.any():
            situation.advance()
            return
        slab.opponent[step, done] = self._seats.opponents(done, situation.rows, situation.seed)
        situation.advance()
        self._seats.begin(done, situation)

    def _look(self) -> Situation:
        return Situation(self._game, keyed_word(self._plan.seed, self.epoch) >> 1, self._first_game)

    def _slots(self, rows: Rows | FinalRows) -> IntArray:
        return rows.game * self._shape.seats + rows.seat if self._shape.simultaneous else rows.game

    def _write_rows(self, slab: Slab, step: int) -> Slots:
        """Writes who acts and what each one sees. Returns the slots of the rows."""
        rows = self._situation.rows
        slots: Slots = ALL_SLOTS
        if len(rows) == self._shape.slots:
            self._game.pack(out=slab.packed[step])
            slab.acting[step] = True
            slab.seat[step] = rows.seat
        else:
            slots = self._slots(rows)
            slab.clear_step(step)
            slab.acting[step, slots] = True
            slab.packed[step, slots] = self._game.pack()
            slab.seat[step, slots] = rows.seat
        if step < self._shape.steps:
            slab.episode[step, slots] = rows.episode
            slab.ply[step, slots] = rows.ply
        return slots

    def _decide(self, slab: Slab, step: int, slots: Slots, ask: Callable[[int], None]) -> Decision:
        situation = self._situation
        seated = self._seats.assign(situation)
        decision = self._seats.play(situation, seated)
        slab.policy[step, slots] = seated
        slab.owner[step, slots] = self._seats.owners(seated, situation.rows)
        if self._plan.central:
            ask(step)
            decision = _central_decision(slab, step, slots, seated, decision)
        slab.action[step, slots] = decision.actions
        slab.log_prob[step, slots] = decision.log_probs
        slab.value[step, slots] = decision.values
        return decision

    def _write_finals(self, slab: Slab, step: int, outcome: Step) -> None:
        """Writes the last positions of truncated games and the learner's values for them, which are used to
        bootstrap."""
        final = outcome.final
        cut = outcome.truncated[final.game]
        rows = FinalRows(final.game[cut], final.seat[cut], final.packed[cut])
        slots = self._slots(rows)
        slab.clear_finals(step)
        slab.final_packed[step, slots] = rows.packed
        slab.final_seat[step, slots] = rows.seat
        slab.final_value[step, slots] = self._learner.values(*self._game.unpack(rows.packed), rows)

    def _write_end(self, slab: Slab) -> None:
        """Writes the positions after the last step and their values, which are used to bootstrap unfinished games."""
        end = self._shape.steps
        slots = self._write_rows(slab, end)
        if self._network is None:
            slab.value[end] = 0
        else:
            situation = self._situation
            slab.value[end, slots] = self._learner.values(
                situation.observations, situation.legal, situation.rows
            )


def _write_outcome(slab: Slab, step: int, outcome: Step) -> None:
    slab.reward[step] = outcome.rewards
    slab.terminated[step] = outcome.terminated
    slab.truncated[step] = outcome.truncated
    slab.ending[step] = outcome.ending
    done = outcome.done
    if done.any():
        slab.score[step, done] = outcome.scores[done]


def _central_decision(slab: Slab, step: int, slots: Slots, seated: Assignment, local: Decision) -> Decision:
    """Combines the manager's decisions for the learner's rows with the worker's own for the opponents' rows."""
    learner = seated == LEARNER
    return Decision(
        actions=np.where(learner, slab.action[step, slots], local.actions),
        log_probs=np.where(learner, slab.log_prob[step, slots], local.log_probs),
        values=np.where(learner, slab.value[step, slots], local.values),
    )
