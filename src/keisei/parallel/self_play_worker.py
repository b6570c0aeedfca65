"""A worker: plays a batch of games with policies in the seats, and leaves experience in slabs.

It is the same code wherever it runs. A backend gives it a channel to the manager; the inline backend
calls ``obey`` itself.
"""

from __future__ import annotations

import time
from typing import Protocol, TypeAlias

import numpy as np

from keisei.experience.schema import SlabShape
from keisei.experience.slab import Slab, SlabRecord
from keisei.games.contract import FinalRows, Game, IntArray, Rows, Step
from keisei.games.randomness import keyed_word
from keisei.parallel.messages import Order, OrderKind, Question, Reply, ResetDone
from keisei.parallel.plan import WorkerMemory, WorkerPlan, state_slots
from keisei.policies.contract import Decision, Policy, Situation
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.policies.random_policy import RandomPolicy
from keisei.policies.registry import seated_policies
from keisei.policies.seating import Assignment, play

Slots: TypeAlias = IntArray | slice
"""Where in a step of a slab the rows have their places."""
ALL_SLOTS = slice(None)
"""Rows come in the order of their slots. Where every slot acts, a slice says so: a list of them costs 1.4 µs
more for each column that is written."""


class WorkerStopped(Exception):  # noqa: N818  (an order, not an error)
    """The manager wants this worker to end at once, in the middle of a slab."""


class Manager(Protocol):
    """What a worker needs of the manager while it plays."""

    def ask(self, question: Question) -> None:
        """Wait until the manager has written the decisions of a step into the slab."""
        ...


class SelfPlayWorker:
    """Plays slab after slab. Everything it does follows from its plan, its orders and the weights."""

    def __init__(self, plan: WorkerPlan, memory: WorkerMemory, manager: Manager) -> None:
        self.plan = plan
        self._memory = memory
        self._manager = manager
        self._epoch = plan.epoch
        self._game = self._new_game()
        self._shape = SlabShape.of(self._game.spec, plan.slab_steps, plan.games)
        if plan.resume_from is not None:
            self._game.load(memory.read_state(plan.resume_from))
        self._network: ActorCritic | None = None
        self._version = 0
        self._learner = self._build_learner()
        self._policies = seated_policies(self._learner, plan.seating, self._game.spec, self._network)
        self._situation = self._look()
        self._idle_since = time.monotonic()

    def obey(self, order: Order) -> Reply:
        """Do what the manager wants, and say that it is done."""
        if order.kind is OrderKind.RESET:
            return self._reset(order.epoch)
        waited = time.monotonic() - self._idle_since
        record = self._play(order, waited)
        self._idle_since = time.monotonic()
        return record

    def _new_game(self) -> Game:
        plan = self.plan
        seed = plan.seed if self._epoch == 0 else keyed_word(plan.seed, self._epoch) >> 1
        return plan.env.make(
            batch=plan.games, seed=seed, first_game=plan.first_game, max_game_length=plan.max_game_length
        )

    def _look(self) -> Situation:
        seed = keyed_word(self.plan.seed, self._epoch) >> 1
        return Situation(self._game, seed, self.plan.first_game)

    def _build_learner(self) -> Policy:
        plan = self.plan
        if plan.model is None or plan.central:
            # Where the manager decides for the learner, only its opponents decide here.
            return RandomPolicy(log_probs=False)
        self._network = build_network(plan.model, self._game.spec, seed=None)
        return NeuralPolicy(self._network, self._game.spec, plan.temperature, plan.epsilon)

    def _reset(self, epoch: int) -> ResetDone:
        self._epoch = epoch
        self._game = self._new_game()
        self._situation = self._look()
        return ResetDone(epoch)

    def _take_weights(self, version: int) -> None:
        reader = self._memory.weights
        if reader is None:
            return
        if self._network is None:
            self._version = version if version >= 0 else reader.version
        elif version < 0 or version != self._version:
            self._version = reader.read_into(self._network, None if version < 0 else version)

    def _play(self, order: Order, waited: float) -> SlabRecord:
        """One slab: a step of all games after the other, each written where the learner will read it."""
        slab, control = self._memory.slab(order.slab), self._memory.control
        started = time.monotonic()
        self._take_weights(order.version)
        transitions, policy_seconds, game_seconds = 0, 0.0, 0.0
        for step in range(self._shape.steps):
            began = time.perf_counter()
            slots = self._write_rows(slab, step)
            decided_from = time.perf_counter()
            decision = self._decide(slab, order.slab, step, slots)
            decided = time.perf_counter()
            outcome = self._game.step(decision.actions)
            _write_outcome(slab, step, outcome)
            self._situation.advance()
            game_seconds += time.perf_counter() - decided + decided_from - began
            if outcome.truncated.any():
                self._write_finals(slab, step, outcome)
            policy_seconds += decided - decided_from
            transitions += len(decision.actions)
            control[0] += 1
            if control[1]:
                raise WorkerStopped
        self._write_end(slab)
        state = order.sequence % state_slots(self.plan.slabs)
        self._memory.write_state(state, self._game.save())
        return SlabRecord(
            table=self.plan.worker, worker=self.plan.worker, epoch=self._epoch, sequence=order.sequence,
            slab=order.slab, version=self._version, transitions=transitions, checksum=slab.checksum(), started=started,
            seconds=time.monotonic() - started, game_seconds=game_seconds, policy_seconds=policy_seconds,
            waited_seconds=waited, state_slot=state,
        )  # fmt: skip

    def _slots(self, rows: Rows | FinalRows) -> IntArray:
        return rows.game * self._shape.seats + rows.seat if self._shape.simultaneous else rows.game

    def _write_rows(self, slab: Slab, step: int) -> Slots:
        """Who must act and what each sees; gives the slots of the rows."""
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

    def _decide(self, slab: Slab, slab_index: int, step: int, slots: Slots) -> Decision:
        situation, plan = self._situation, self.plan
        seated = plan.seating.assign(situation.rows, situation.seed, plan.first_game, self._shape.seats)
        decision = play(self._policies, situation, seated)
        slab.policy[step, slots] = seated
        slab.owner[step, slots] = np.where(seated == 0, 0, -1)
        slab.version[step, slots] = self._version
        if self.plan.central:
            self._manager.ask(Question(slab_index, step))
            decision = _central_decision(slab, step, slots, seated, decision)
        slab.action[step, slots] = decision.actions
        slab.log_prob[step, slots] = decision.log_probs
        slab.value[step, slots] = decision.values
        return decision

    def _write_finals(self, slab: Slab, step: int, outcome: Step) -> None:
        """The last positions of truncated games, and what the learner thinks of them: they bootstrap."""
        final = outcome.final
        cut = outcome.truncated[final.game]
        rows = FinalRows(final.game[cut], final.seat[cut], final.packed[cut])
        slots = self._slots(rows)
        slab.clear_finals(step)
        slab.final_packed[step, slots] = rows.packed
        slab.final_seat[step, slots] = rows.seat
        slab.final_value[step, slots] = self._learner.evaluate(*self._game.unpack(rows.packed))

    def _write_end(self, slab: Slab) -> None:
        """Where the slab ends: the next positions and their values, which bootstrap unfinished games."""
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
    """The manager's decisions for the learner's rows, and the worker's own for its opponents'."""
    learner = seated == 0
    return Decision(
        actions=np.where(learner, slab.action[step, slots], local.actions),
        log_probs=np.where(learner, slab.log_prob[step, slots], local.log_probs),
        values=np.where(learner, slab.value[step, slots], local.values),
    )
