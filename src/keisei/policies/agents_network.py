"""The networks of independent agents, as one module: what workers get, and what is published.

Agent i decides for seat i with weights of its own. Agents of one kind are stacked and computed at once; the others
are computed beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from pydantic import model_validator
from torch import Tensor, nn

from keisei.config import Settings
from keisei.games.contract import GameSpec
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.stacked_network import share_memory, stacked

__all__ = [
    "AgentsNetwork",
    "AgentsPlan",
    "Stack",
    "agents_network",
    "joined_network",
    "stacks_of",
    "weights_of",
]

Stack: TypeAlias = tuple[int, ...]
"""Agents that are computed at once. An agent alone is computed by its own network."""


class AgentsPlan(Settings):
    """What a worker needs to know to build the networks of all agents."""

    models: tuple[ModelConfig, ...]
    """The network of each agent. Agent i decides for seat i."""
    stacks: tuple[Stack, ...]
    """Which agents are computed at once. Each agent is in one of them."""

    @model_validator(mode="after")
    def _has_each_agent_once(self) -> AgentsPlan:
        stacked = sorted(agent for stack in self.stacks for agent in stack)
        if stacked != [*range(len(self.models))] or not all(self.stacks):
            raise ValueError(f"stacks must hold each of the {len(self.models)} agents once")
        return self


def stacks_of(kinds: Sequence[str | None], size: int) -> tuple[Stack, ...]:
    """Sorts agents into stacks of one kind, with at most ``size`` agents each. An agent whose kind is None stays
    alone."""
    members: dict[str, list[int]] = {}
    for agent, kind in enumerate(kinds):
        members.setdefault(f"alone {agent}" if kind is None else f"kind {kind}", []).append(agent)
    return tuple(
        tuple(of[start : start + size]) for of in members.values() for start in range(0, len(of), size)
    )


class AgentsNetwork(ActorCritic):
    """The networks of all agents. Rows are those of agent 0, then those of agent 1, and so on, equally many of each."""

    def __init__(self, spec: GameSpec, stacks: Sequence[Stack], networks: Sequence[ActorCritic]) -> None:
        super().__init__(replace(spec.observation, scale=()))  # each network scales its observations
        self.stacks = tuple(stacks)
        self.networks = nn.ModuleList(networks)
        self.agents = sum(map(len, stacks))
        self._in_order = [agent for stack in stacks for agent in stack] == list(range(self.agents))

    def forward(self, observations: Tensor, actions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if len(self.stacks) == 1:
            found: tuple[Tensor, Tensor] = self.networks[0](observations, actions)
            return found
        rows = self._by_agent(observations)
        listed = None if actions is None else self._by_agent(actions)
        outputs = [
            network(_rows_of(rows, stack), None if listed is None else _rows_of(listed, stack))
            for stack, network in zip(self.stacks, self.networks, strict=True)
        ]
        logits, values = (torch.cat(parts) for parts in zip(*outputs, strict=True))
        return (logits, values) if self._in_order else (self._sorted(logits), self._sorted(values))

    def _sorted(self, outputs: Tensor) -> Tensor:
        """Puts outputs in the order of the stacks into the order of the agents."""
        order = torch.tensor([agent for stack in self.stacks for agent in stack])
        return self._by_agent(outputs)[order.argsort()].flatten(0, 1)

    def _by_agent(self, rows: Tensor) -> Tensor:
        return rows.reshape(self.agents, -1, *rows.shape[1:])


def agents_network(plan: AgentsPlan, spec: GameSpec) -> AgentsNetwork:
    """Builds the networks of all agents without weights, as a worker does: it reads them before it plays."""
    networks = []
    for stack in plan.stacks:
        network = build_network(plan.models[stack[0]], spec, seed=None)
        networks.append(stacked(network, len(stack)) if len(stack) > 1 else network)
    return AgentsNetwork(spec, plan.stacks, networks)


def joined_network(plan: AgentsPlan, networks: Sequence[ActorCritic], spec: GameSpec) -> AgentsNetwork:
    """Lets networks of agents play together. They keep their weights, in memory that they share with the stacks."""
    whole = agents_network(plan, spec)
    for number, stack in enumerate(plan.stacks):
        if len(stack) == 1:
            whole.networks[number] = networks[stack[0]]
        else:
            stacked_one = whole.networks[number]
            assert isinstance(stacked_one, ActorCritic)
            share_memory(stacked_one, [networks[agent] for agent in stack])
    return whole


def weights_of(named: Mapping[str, Tensor], agent: int) -> dict[str, Tensor]:
    """Gets the tensors of one agent out of those of all."""
    prefix = f"{agent}."
    return {name.removeprefix(prefix): tensor for name, tensor in named.items() if name.startswith(prefix)}


def _rows_of(rows: Tensor, stack: Stack) -> Tensor:
    first, last = stack[0], stack[-1]
    follow_each_other = last - first + 1 == len(stack)
    return (rows[first : last + 1] if follow_each_other else rows[list(stack)]).flatten(0, 1)
