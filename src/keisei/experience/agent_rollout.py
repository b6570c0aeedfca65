"""The rollout of one independent agent: its decisions since its last update, with advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keisei.experience.agent_slabs import copy_of_agent, empty_slab, shape_of_agent
from keisei.experience.collected import CollectedSlab
from keisei.experience.rollout import ExperienceBuffer, Minibatch, RolloutView, merged
from keisei.experience.saved_columns import check_actions, columns_like
from keisei.experience.schema import SlabShape
from keisei.runs.state import State

__all__ = ["AgentRollout"]

_SAVED = tuple(name for name in Minibatch.__slots__ if name != "weights")
"""The columns in checkpoints. All rows of a rollout count alike before some are chosen."""


class AgentRollout:
    """Adds up the experience of several collections until the agent learns from it."""

    def __init__(self, agent: int, shape: SlabShape, buffer: ExperienceBuffer) -> None:
        """``shape`` is that of the workers' slabs; ``buffer`` is made for ``spec_of_agent``."""
        self.agent = agent
        self._buffer = buffer
        self._slab = empty_slab(shape_of_agent(shape))
        self._nothing = buffer.view().whole
        self._parts: list[Minibatch] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def take(self, collected: Sequence[CollectedSlab]) -> None:
        """Computes the advantages of what the agent has decided."""
        for item in collected:
            self._buffer.take([copy_of_agent(item, self.agent, self._slab)])
            self._parts += [self._buffer.view().whole] if len(self._buffer) else []

    def view(self) -> RolloutView:
        """Hands out all that was taken since the last view."""
        parts, self._parts = self._parts, []
        return RolloutView(merged(parts or [self._nothing]))

    def numbers(self) -> Mapping[str, float]:
        return self._buffer.numbers()

    def state(self) -> State:
        """Gets the decisions that wait for their outcome, and those that wait for the next update."""
        carry, rows = self._buffer.state(), merged(self._parts or [self._nothing])
        columns = {name: getattr(rows, name) for name in _SAVED}
        return State({**carry.tensors, "rollout": columns}, carry.document)

    def restore(self, state: State) -> None:
        self._buffer.restore(state)
        saved = state.tensors.get("rollout", {})
        examples = {name: getattr(self._nothing, name) for name in _SAVED}
        columns = columns_like(examples, saved) if saved else {}
        self._parts = [Minibatch(**columns)] if columns else []
        for part in self._parts:
            check_actions(part.actions, self._buffer.num_actions)
