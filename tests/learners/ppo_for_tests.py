"""Learners whose networks are simple enough to work out what they must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from plain_ppo_for_tests import LinearNetwork
from torch import Tensor

from keisei.experience.rollout import Minibatch
from keisei.games import make_game
from keisei.learners.ppo import PPO, PPOConfig
from keisei.policies.networks import ActorCritic

GAME = make_game("tictactoe", batch=4, seed=1)


class FixedNetwork(ActorCritic):
    """Gives the logits and values it holds, for as many rows as it is asked about."""

    def __init__(self, logits: Tensor, values: Tensor) -> None:
        super().__init__(GAME.spec.observation)
        self.logits = torch.nn.Parameter(logits)
        self.values = torch.nn.Parameter(values)

    def heads(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits[: len(observations)], self.values[: len(observations)]


def two_rows(**changes: object) -> Minibatch:
    """Two starting positions of tic-tac-toe, where all nine actions are legal."""
    columns: dict[str, object] = {
        "packed": GAME.pack()[:2],
        "actions": np.array([0, 1], np.int32),
        "log_probs": np.log(np.array([0.1, 0.2], np.float32)),
        "values": np.array([0.0, 0.5], np.float32),
        "advantages": np.array([1.0, -2.0], np.float32),
        "returns": np.array([1.0, -1.0], np.float32),
    }
    return Minibatch(**(columns | changes))  # type: ignore[arg-type]


def fixed(logits: Tensor, values: list[float], **settings: Any) -> PPO:
    config = PPOConfig(normalise_advantages=False, **settings)
    return PPO(FixedNetwork(logits, torch.tensor(values)), GAME, config)


def linear(seed: int = 0, *, learner_seed: int = 0, parts: int = 1, **settings: Any) -> PPO:
    network, game = LinearNetwork(seed), make_game("tictactoe", batch=1, seed=0)
    return PPO(network, game, PPOConfig(**settings), learner_seed, parts=parts)
