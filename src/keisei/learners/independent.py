"""Independent agents as one learner: each has its own network, memory and optimiser, and nothing is shared.

What is joined is work, not knowledge: equal agents are computed at once, or several at a time on threads or in
processes. An agent that cannot learn is reported and left out, and tries again in the next training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any, Protocol

from torch import Tensor

from keisei.errors import CheckpointError
from keisei.games.contract import Game
from keisei.learners.agent_plan import AgentPlan
from keisei.learners.agent_units import AgentLearner, Alone, Outcome, Unit
from keisei.learners.contract import Report
from keisei.learners.dqn import DQN
from keisei.learners.independent_config import Training
from keisei.learners.ppo import PPO
from keisei.learners.stacked_dqn import StackedDQN
from keisei.learners.stacked_ppo import StackedPPO
from keisei.learners.unit_processes import UnitProcesses
from keisei.learners.unit_threads import UnitThreads
from keisei.policies.agents_network import AgentsNetwork, AgentsPlan, Stack, stacks_of, weights_of
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import ActorCritic
from keisei.policies.q_network import QNetwork
from keisei.policies.stacked_network import can_be_stacked, share_memory, stacked
from keisei.runs.json_values import Json
from keisei.runs.state import State

__all__ = ["IndependentLearners", "of_agent", "plan_agents"]


class Runner(Protocol):
    """Trains units and waits for them."""

    def train(
        self, units: Sequence[Any], views: Mapping[int, Any], progress: float
    ) -> dict[int, Outcome]: ...

    def close(self) -> None: ...


def plan_agents(plans: Sequence[AgentPlan], game: Game, size: int) -> AgentsPlan:
    """Decides which agents are computed at once, at most ``size`` of them. With 1 every agent is alone."""
    kinds = {plan.kind: can_be_stacked(plan.build(game).network) for plan in plans} if size > 1 else {}
    stacks = stacks_of([plan.kind if kinds.get(plan.kind) else None for plan in plans], size)
    return AgentsPlan(models=tuple(plan.model for plan in plans), stacks=stacks)


class IndependentLearners:
    """Trains all agents, each on its own view. Entry i belongs to agent i."""

    def __init__(
        self,
        plans: Sequence[AgentPlan],
        game: Game,
        *,
        training: Training = "stacked",
        acting: AgentsPlan,
        stack_size: int = 16,
        train_interval: int = 1,
        threads: int = 1,
        timeout: float = 300.0,
    ) -> None:
        """``acting`` says how workers compute the agents. ``timeout`` is how long a training may take,
        in seconds, before it counts as hung."""
        self.agents: tuple[AgentLearner, ...] = tuple(plan.build(game) for plan in plans)
        self._fixed = {agent for agent, plan in enumerate(plans) if not plan.learns}
        trained = plan_agents(plans, game, stack_size).stacks if training == "stacked" else ()
        self._stacks = [
            self._stacked(stack, game) for stack in trained if len(stack) > 1 and not self._fixed & {*stack}
        ]
        alone = (
            {*range(len(plans))} - {agent for stack in self._stacks for agent in stack.agents} - self._fixed
        )
        units: list[Unit] = [*self._stacks, *(Alone(agent, self.agents[agent]) for agent in sorted(alone))]
        self.units = tuple(units)
        self.train_interval = train_interval
        """Collections between two trainings."""
        self.plan = acting
        self.network = AgentsNetwork(game.spec, acting.stacks, [self._played(s) for s in acting.stacks])
        self.whole = RLock()
        """The lock that is held while weights change. Other threads take it to read them."""
        self._runner: Runner = (
            UnitProcesses(plans, threads, timeout)
            if training == "processes"
            else UnitThreads(1 if training == "sequential" else threads, timeout)
        )

    def learn(self, view: Sequence[Any], progress: float) -> Report:
        """Trains all agents. The report has the numbers of each, and the reasons of those that failed."""
        with self.whole:
            outcomes = self._runner.train(self.units, dict(enumerate(view)), progress)
        numbers = {agent: found for agent, found in outcomes.items() if not isinstance(found, str)}
        failures = {agent: found for agent, found in outcomes.items() if isinstance(found, str)}
        return Report(dict(sorted(numbers.items())), dict(sorted(failures.items())))

    def behaviour(self, progress: float) -> Behaviour:
        """Gets the weights of all agents, and how freely each of them plays. A fixed agent plays as at the end of a
        run."""
        at = [1.0 if agent in self._fixed else progress for agent in range(len(self.agents))]
        settings = [agent.behaviour(own).settings for agent, own in zip(self.agents, at, strict=True)]
        return Behaviour(self.network, agents=tuple(own for each in settings for own in each))

    def close(self) -> None:
        """Ends processes. The next training starts new ones."""
        self._runner.close()

    def state(self) -> State:
        """Gets the states of all agents, each under its number."""
        with self.whole:
            states = [agent.state() for agent in self.agents]
        tensors: dict[str, dict[str, Tensor]] = {}
        for number, state in enumerate(states):
            for group, named in state.tensors.items():
                tensors.setdefault(group, {}).update({f"{number}.{name}": t for name, t in named.items()})
        return State(tensors, {"agents": [state.document for state in states]})

    def restore(self, state: State) -> None:
        """Restores all agents, or raises ``CheckpointError`` if the state is of others."""
        documents: Json = state.document.get("agents") if isinstance(state.document, dict) else None
        if not isinstance(documents, list) or len(documents) != len(self.agents):
            found = f"{len(documents)} agents" if isinstance(documents, list) else "no independent agents"
            raise CheckpointError(
                f"the checkpoint is of {found}, and this run has {len(self.agents)}; take a checkpoint of a run with "
                f"as many agents"
            )
        with self.whole:
            for number, (agent, document) in enumerate(zip(self.agents, documents, strict=True)):
                agent.restore(State(of_agent(state.tensors, number), document))
            for stack in self._stacks:
                stack.rebind()

    def _stacked(self, stack: Stack, game: Game) -> StackedDQN | StackedPPO:
        """Makes the unit of agents that learn at once. They are of one kind."""
        learners = [self.agents[agent] for agent in stack]
        network = stacked(learners[0].network, len(stack))
        if isinstance(network, QNetwork):
            return StackedDQN(stack, [own for own in learners if isinstance(own, DQN)], network, game)
        return StackedPPO(stack, [own for own in learners if isinstance(own, PPO)], network, game)

    def _played(self, stack: Stack) -> ActorCritic:
        """Makes the network that plays a stack. It reads the weights where its agents learn them."""
        if len(stack) == 1:
            return self.agents[stack[0]].network
        for learning in self._stacks:
            if learning.agents == stack:
                return learning.network
        network = stacked(self.agents[stack[0]].network, len(stack))
        share_memory(network, [self.agents[agent].network for agent in stack])
        return network


def of_agent(tensors: Mapping[str, Mapping[str, Tensor]], number: int) -> dict[str, dict[str, Tensor]]:
    """Picks the tensors of one agent out of those of all."""
    return {group: weights_of(named, number) for group, named in tensors.items()}
