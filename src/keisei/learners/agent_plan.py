"""The settings of one independent agent, and the learner that they make. Processes that train it get them too."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from keisei.config import Settings
from keisei.games.contract import Game
from keisei.games.registry import make_game
from keisei.learners.dqn import DQN
from keisei.learners.dqn_config import DQNConfig
from keisei.learners.ppo import PPO
from keisei.learners.ppo_config import PPOConfig
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import build_network
from keisei.policies.q_network import build_q_network

__all__ = ["AgentPlan"]


class AgentPlan(Settings):
    """One agent: its network, its algorithm and its seed."""

    model: ModelConfig
    algorithm: Literal["dqn", "ppo"]
    dqn: DQNConfig
    ppo: PPOConfig
    seed: int
    game: str
    options: dict[str, Any] = Field(default_factory=dict)
    learns: bool = True
    """Whether it learns at all. One that does not is played beside those that do, not in a stack with them."""

    @property
    def kind(self) -> str:
        """All but the seed: agents of one kind can be trained at once."""
        return self.model_copy(update={"seed": 0}).model_dump_json()

    def make_game(self) -> Game:
        """Makes a game that unpacks positions."""
        return make_game(self.game, batch=1, seed=0, first_game=0, **self.options)

    def build(self, game: Game) -> DQN | PPO:
        """Makes the agent's own network, optimiser and, for DQN, target network."""
        if self.algorithm == "ppo":
            return PPO(build_network(self.model, game.spec, self.seed), game, self.ppo, self.seed, parts=1)
        return DQN(build_q_network(self.model, game.spec, self.seed), game, self.dqn, self.seed, parts=1)
