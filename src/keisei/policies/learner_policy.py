"""The learner as workers play it: by one network for all seats, by one for each seat, or without any."""

from __future__ import annotations

from keisei.games.contract import Array, BoolArray, FinalRows, FloatArray, GameSpec, Rows
from keisei.policies.agents_network import AgentsNetwork, AgentsPlan, agents_network
from keisei.policies.agents_policy import AgentsPolicy
from keisei.policies.behaviour import LearnerPolicy, Play, TableGames
from keisei.policies.contract import no_values
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.policies.players.random_policy import RandomPolicy

__all__ = ["NoNetwork", "learner_network", "learner_policy", "policy_of"]


class NoNetwork(RandomPolicy):
    """Plays at random where there is no network, and where another process decides."""

    def __init__(self) -> None:
        super().__init__(log_probs=False)

    def behave(self, settings: Play, games: TableGames) -> None:
        """Does nothing, since it always plays at random."""

    def owners(self, rows: Rows) -> int:
        return 0

    def values(self, observations: Array, legal: BoolArray, rows: Rows | FinalRows) -> FloatArray:
        return no_values(len(rows.game))


def learner_network(model: ModelConfig, agents: AgentsPlan | None, spec: GameSpec) -> ActorCritic:
    """Builds the network of the learner, or those of all agents as one. The weights are read later."""
    return build_network(model, spec, seed=None) if agents is None else agents_network(agents, spec)


def learner_policy(network: ActorCritic | None, spec: GameSpec) -> LearnerPolicy:
    """Makes the policy that plays with a network of the learner, or without one."""
    return NoNetwork() if network is None else policy_of(network, spec)


def policy_of(network: ActorCritic, spec: GameSpec, temperature: float = 1.0) -> AgentsPolicy | NeuralPolicy:
    """Makes the policy of one network, or of the networks of independent agents."""
    if isinstance(network, AgentsNetwork):
        return AgentsPolicy(network, spec, temperature)
    return NeuralPolicy(network, spec, temperature)
