"""The policies that training makes. A network knows what its outputs mean, so they serve every regime."""

from __future__ import annotations

from typing import Any

from keisei.games.contract import GameSpec
from keisei.learners.contract import Learner
from keisei.policies.contract import Policy
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.state_tensors import load_model
from keisei.training.settings import TrainConfig

__all__ = ["current_policy", "saved_policy"]


def saved_policy(
    config: TrainConfig, checkpoint: Checkpoint, spec: GameSpec, temperature: float
) -> NeuralPolicy:
    network = build_network(config.model, spec, seed=None)
    load_model(network, checkpoint.tensors.get("model", {}))
    return NeuralPolicy(network, spec, temperature)


def current_policy(learner: Learner[Any], spec: GameSpec, temperature: float) -> Policy:
    network = learner.behaviour(1.0).network
    assert isinstance(network, ActorCritic)
    return NeuralPolicy(network, spec, temperature)
