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
from keisei.games.contract import FinalRows, IntArray, Rows, Step
from keisei.games.randomness import keyed_word
from keisei.parallel.plan import WorkerPlan
from keisei.policies.behaviour import PlaySettings
from keisei.policies.contract import Decision, Policy, Situation
from keisei.policies.networks import ActorCritic
from keisei.policies.neural import NeuralPolicy
from keisei.policies.random_policy import RandomPolicy
from keisei.policies.registry import seated_policies
from keisei.policies.seating import Assignment, play

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

    def __init__(self, plan: WorkerPlan, table: int, epoch: int, network: ActorCritic | None) -> None:
        self.epoch = epoch
        self.next_sequence = -1
        """The sequence number of the slab that these games are ready for. A worker checks it before it continues
        them."""
        self._plan, self._table = plan, table
        self._first_game = plan.first_game(table)
        own_seating = plan.override_of(table).seating
        self._seating = plan.seating if own_seating is None else own_seating
        seed = plan.seed if epoch == 0 else keyed_word(plan.seed, epoch) >> 1
        self._game = plan.env.make(batch=plan.games, seed=seed, first_game=self._first_game)
        spec = self._game.spec
        self._shape = SlabShape.of(spec, plan.horizon, plan.games)
        self._network = None if plan.central else network
        self._learner: Policy = RandomPolicy(log_probs=False)  # used too if the manager decides
        if self._network is not None:
            self._learner = NeuralPolicy(self._network, spec)
        self._policies = seated_policies(self._learner, self._seating, spec, self._network)
        self._situation = self._look()

    def load(self, state: bytes) -> None:
        """Continues the games from a saved state."""
        self._game.load(state)
        self._situation = self._look()

    def save(self) -> bytes:
        return self._game.save()

    def behave(self, settings: PlaySettings) -> None:
        """Sets how freely the learner plays, unless this table has settings of its own."""
        if isinstance(self._learner, NeuralPolicy):
            self._learner.temperature = self._plan.temperature_of(self._table, settings)
            self._learner.epsilon = self._plan.epsilon_of(self._table, settings)

    def play(self, slab: Slab, version: int, tick: Callable[[], None], ask: Callable[[int], None]) -> Timing:
        """Plays one slab; each step advances all games. With central inference, ``ask`` lets the manager decide a
        step. ``tick`` is called after each step."""
        timing = Timing()
        for step in range(self._shape.steps):
            began = time.perf_counter()
            slots = self._write_rows(slab, step)
            slab.version[step, slots] = version
            decided_from = time.perf_counter()
            decision = self._decide(slab, step, slots, ask)
            decided = time.perf_counter()
            outcome = self._game.step(decision.actions)
            _write_outcome(slab, step, outcome)
            self._situation.advance()
            timing.game_seconds += time.perf_counter() - decided + decided_from - began
            if outcome.truncated.any():
                self._write_finals(slab, step, outcome)
            timing.policy_seconds += decided - decided_from
            timing.transitions += len(decision.actions)
            tick()
        self._write_end(slab)
        return timing

    def _look(self) -> Situation:
        return Situation(self._game, keyed_word(self._plan.seed, self.epoch) >> 1, self._first_game)

    def _slots(self, rows: Rows | FinalRows) -> IntArray:
        return rows.game * self._shape.seats + rows.seat if self._shape.simultaneous else rows.game

    def _write_rows(self, slab: Slab, step: int) -> Slots:
        """Writes who acts and what each one sees. Gives the slots of the rows."""
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
        seated = self._seating.assign(situation.rows, situation.seed, self._first_game, self._shape.seats)
        decision = play(self._policies, situation, seated)
        slab.policy[step, slots] = seated
        slab.owner[step, slots] = self._seating.owners(seated)
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
        slab.final_value[step, slots] = self._learner.evaluate(*self._game.unpack(rows.packed))

    def _write_end(self, slab: Slab) -> None:
        """Writes the positions after the last step and their values, which are used to bootstrap unfinished games."""
        end = self._shape.steps
        slots = self._write_rows(slab, end)
        if self._network is None:
            slab.value[end] = 0
        else:
            values = self._learner.evaluate(self._situation.observations, self._situation.legal)
            slab.value[end, slots] = values


def _write_outcome(slab: Slab, step: int, outcome: Step) -> None:
    slab.reward[step] = outcome.rewards
    slab.terminated[step] = outcome.terminated
    slab.truncated[step] = outcome.truncated
    slab.ending[step] = outcome.ending
    done = outcome.done
    if done.any():
        slab.score[step, done] = outcome.scores[done]


def _central_decision(slab: Slab, step: int, slots: Slots, seated: Assignment, local: Decision) -> Decision:
    """Gives the manager's decisions for the learner's rows, and the worker's own decisions for its opponents'
    rows."""
    learner = seated == 0
    return Decision(
        actions=np.where(learner, slab.action[step, slots], local.actions),
        log_probs=np.where(learner, slab.log_prob[step, slots], local.log_probs),
        values=np.where(learner, slab.value[step, slots], local.values),
    )
