"""A worker plays tables and writes the experience into slabs.

The code is the same in every backend. A backend gives the worker a channel to the manager; the inline backend calls
``obey`` directly. The manager decides where the games of a table start.
"""

from __future__ import annotations

import time

from keisei.errors import ParallelError
from keisei.experience.slab import SlabRecord
from keisei.parallel.arena import Arena
from keisei.parallel.messages import (
    PIECE_BYTES,
    THROUGH_PIPE,
    Manager,
    Order,
    OrderKind,
    Question,
    Start,
    StatePiece,
)
from keisei.parallel.plan import WorkerPlan
from keisei.parallel.weights.model_sync import WeightReader
from keisei.parallel.worker.members import Members
from keisei.parallel.worker.table_in_hand import TableInHand
from keisei.policies.behaviour import Play, PlaySettings
from keisei.policies.learner_policy import NoNetwork, learner_network
from keisei.policies.networks import ActorCritic
from keisei.policies.registry import seated_policies


class WorkerStopped(Exception):  # noqa: N818  (an order, not an error)
    """The manager asks this worker to end at once, in the middle of a slab."""


class SelfPlayWorker:
    """Plays slabs of tables. The result depends only on its plan, its orders, the states and the weights."""

    def __init__(
        self, plan: WorkerPlan, arena: Arena, weights: WeightReader | None, manager: Manager
    ) -> None:
        self.plan = plan
        self._arena = arena
        self.weights = weights
        self._manager = manager
        self._control = arena.control(plan.worker)
        self._tables: dict[int, TableInHand] = {}
        self._version = 0
        self._behaviour: Play = (PlaySettings(),)
        self._members: Members | None = None
        self._network = self._build_network()
        self._idle_since = time.monotonic()

    def obey(self, order: Order) -> SlabRecord | None:
        """Carries out an order. Returns a record if a slab was played."""
        if order.kind is OrderKind.FORGET:
            self._tables.pop(order.table, None)
            return None
        waited = time.monotonic() - self._idle_since
        record = self._play(order, waited)
        self._idle_since = time.monotonic()
        return record

    def _build_network(self) -> ActorCritic | None:
        """Builds the network and the members of the league. It also tries the game and the opponents, so that a worker
        reports ready only if it can make them all."""
        self.plan.env.check_source()
        spec = self.plan.env.make(batch=1, seed=0).spec
        network = None
        if self.plan.model is not None and not self.plan.central:
            network = learner_network(self.plan.model, self.plan.agents, spec)
        for seating in self.plan.seatings:
            seated_policies(NoNetwork(), seating, spec, network)
        if self.plan.league is not None and self._arena.shelf is not None:
            self._members = Members(self.plan.league, self._arena.shelf, spec)
        return network

    def _play(self, order: Order, waited: float) -> SlabRecord:
        started = time.monotonic()
        slab = self._arena.slab(order.slab)
        self._take_behaviour(order.version)
        hand = self._take_up(order)
        hand.behave(self._behaviour)
        hand.meet(order.lineup)
        version = self._version
        timing = hand.play(
            slab,
            lambda: self._version_at_a_step(order, hand),
            self._tick,
            lambda step: self._manager.ask(Question(order.table, order.slab, step)),
        )
        hand.next_sequence = order.sequence + 1
        return SlabRecord(
            table=order.table, worker=self.plan.worker, epoch=order.epoch, sequence=order.sequence,
            slab=order.slab, version=version, transitions=timing.transitions, checksum=slab.checksum(),
            started=started, seconds=time.monotonic() - started, game_seconds=timing.game_seconds,
            policy_seconds=timing.policy_seconds, waited_seconds=waited,
            state_slot=self._leave_state(order, hand.save()),
        )  # fmt: skip

    def _take_up(self, order: Order) -> TableInHand:
        """Gets the games of a table as the order says: held already, loaded from a state, or new."""
        if order.start is Start.GO_ON:
            hand = self._tables.get(order.table)
            if hand is None or (hand.epoch, hand.next_sequence) != (order.epoch, order.sequence):
                raise ParallelError(f"the games of table {order.table} are not in hand for {order}")
            return hand
        hand = TableInHand(self.plan, order.table, order.epoch, self._network, self._members)
        if order.start is Start.LOAD:
            self._tick()
            hand.load(self._state_at(order))
        self._tick()  # loading counts as progress, so that the worker does not look hung
        self._tables[order.table] = hand
        return hand

    def _state_at(self, order: Order) -> bytes:
        if order.source == THROUGH_PIPE:
            return self._manager.fetch_state(order.table)
        return self._arena.read_state(order.source)

    def _leave_state(self, order: Order, state: bytes) -> int:
        if self._arena.write_state(order.state_slot, state):
            return order.state_slot
        for start in range(0, len(state), PIECE_BYTES):
            piece = state[start : start + PIECE_BYTES]
            self._manager.deliver_piece(StatePiece(order.table, start == 0, piece))
        return THROUGH_PIPE

    def _take_behaviour(self, version: int) -> None:
        reader = self.weights
        if reader is None:
            return
        if self._network is None:
            self._version = version if version >= 0 else reader.version
        elif version < 0 or version != self._version:
            self._version = reader.read_into(self._network, None if version < 0 else version)
            self._behaviour = reader.settings

    def _version_at_a_step(self, order: Order, hand: TableInHand) -> int:
        """Finds the version of the weights for a step. Some workers take new weights at every step, others with an
        order."""
        renews = self.plan.renews_at_steps and order.version < 0
        if renews and self.weights is not None and self.weights.version != self._version:
            self._take_behaviour(order.version)
            hand.behave(self._behaviour)
        return self._version

    def _tick(self) -> None:
        """Counts a step, and stops if the manager has asked for it."""
        self._control[0] += 1
        if self._control[1]:
            raise WorkerStopped
