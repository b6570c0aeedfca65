"""The memories of independent agents, as one buffer. Each agent has its own, and nothing is shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from keisei.errors import CheckpointError
from keisei.experience.agent_memory import AgentMemory, MemoryView
from keisei.experience.agent_rollout import AgentRollout
from keisei.experience.collected import CollectedSlab, Leases
from keisei.experience.contract import Lend
from keisei.experience.rollout import RolloutView
from keisei.runs.state import State

__all__ = ["AgentView", "AgentsBuffer", "Memory"]

Memory: TypeAlias = AgentMemory | AgentRollout
AgentView: TypeAlias = MemoryView | RolloutView


class AgentsBuffer:
    """Holds for every agent what it has decided itself. Entry i belongs to agent i."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.memories = tuple(memories)

    @property
    def most_leases(self) -> int:
        """0: each agent copies what belongs to it."""
        return 0

    def take(self, collected: Sequence[CollectedSlab]) -> Leases:
        for memory in self.memories:
            memory.take(collected)
        return Leases()

    def view(self) -> Sequence[AgentView]:
        """Gets one view for each agent, with all that is due to it."""
        return [memory.view() for memory in self.memories]

    def numbers(self) -> Mapping[str, float]:
        """Computes the sums over all agents."""
        found = [memory.numbers() for memory in self.memories]
        names = dict.fromkeys(name for numbers in found for name in numbers)
        return {name: sum(numbers.get(name, 0.0) for numbers in found) for name in names}

    def state(self) -> State:
        states = [memory.state() for memory in self.memories]
        return State(
            {
                f"{group}_{agent}": tensors
                for agent, state in enumerate(states)
                for group, tensors in state.tensors.items()
            },
            {"agents": [state.document for state in states]},
            {name: piece for state in states for name, piece in state.pieces.items()},
        )

    def restore(self, state: State, lend: Lend | None = None) -> None:
        """Restores a state. Each memory has slabs of its own."""
        documents = state.document.get("agents") if isinstance(state.document, dict) else None
        if not isinstance(documents, list) or len(documents) != len(self.memories):
            found = len(documents) if isinstance(documents, list) else "no"
            raise CheckpointError(
                f"the checkpoint holds {found} memories, and this run has {len(self.memories)} agents; take a "
                f"checkpoint of this run"
            )
        for agent, (memory, document) in enumerate(zip(self.memories, documents, strict=True)):
            own = {
                group.removesuffix(f"_{agent}"): tensors
                for group, tensors in state.tensors.items()
                if group.endswith(f"_{agent}")
            }
            memory.restore(State(own, document, state.pieces))
