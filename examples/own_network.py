"""A network of your own: it is written, named in the settings as ``module:Class``, and trained.

    python examples/own_network.py

The same on the command line, from the folder of this file:

    keisei train tictactoe-ppo --name own-network --set model.network=own_network:BoardNet
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import keisei
from keisei.games import GameSpec
from keisei.policies import ActorCritic, ModelConfig


class BoardNet(ActorCritic):
    """One convolution that looks at the whole neighbourhood of a square, then two heads."""

    def __init__(self, config: ModelConfig, spec: GameSpec) -> None:
        super().__init__(spec.observation)  # always first; it scales the observations
        planes, height, width = spec.observation.shape
        features = config.channels * height * width
        self.body = nn.Sequential(nn.Conv2d(planes, config.channels, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.policy = nn.Linear(features, spec.num_actions)
        self.value = nn.Linear(features, 1)

    def heads(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Float32 [n, planes, height, width] in; logits [n, actions] and values [n] out."""
        features = self.body(inputs)
        return self.policy(features), torch.tanh(self.value(features)).squeeze(-1)


SETTINGS = {
    "env": {"game": "tictactoe"},
    "model": {"network": "own_network:BoardNet", "channels": 32},  # workers import it by this name
    "learner": {"learning_rate": 3e-3, "minibatch_size": 256},
    "parallel": {"tables": 4, "games": 16, "horizon": 16},
    "evaluation": {"opponents": ["random"], "games": 100},
    "run": {"steps": 20_000},
}


def main() -> None:
    result = keisei.train(SETTINGS, name="own-network", existing="restart")
    assert result.evaluation is not None
    for row in result.evaluation.rows:
        print(f"{result.counters.transitions:,} steps: {row.score:.0%} against {row.opponent}")  # noqa: T201


if __name__ == "__main__":
    main()
