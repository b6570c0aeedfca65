"""A policy that plays with weights it is given, and has nothing that only a learner needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from keisei.errors import CheckpointError, PolicyError
from keisei.games.contract import GameSpec
from keisei.policies.model_config import ModelConfig
from keisei.policies.networks import ActorCritic, build_network
from keisei.policies.neural import NeuralPolicy
from keisei.runs.state_tensors import load_model, model_tensors

__all__ = ["InferencePolicy", "load_weights"]


class InferencePolicy(NeuralPolicy):
    """A network and how freely it is played; no optimiser, no target network and no replay.

    ``model`` are the settings of the network, such as ``agent.config.model``. Without ``weights`` it plays with new
    ones.
    """

    def __init__(
        self,
        spec: GameSpec,
        model: ModelConfig | Mapping[str, Any],
        weights: Mapping[str, Tensor] | None = None,
        *,
        temperature: float = 0.0,
        epsilon: float = 0.0,
    ) -> None:
        super().__init__(build_network(model, spec, seed=0), spec, temperature, epsilon)
        if weights is not None:
            self.set_weights(weights)

    def get_weights(self) -> dict[str, Tensor]:
        """Copies all weights, by name."""
        return model_tensors(self.network)

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Takes other weights. If they belong to another network or are not finite, that is an error, and nothing
        changes."""
        load_weights(self.network, weights)


def load_weights(network: ActorCritic, weights: Mapping[str, Tensor]) -> None:
    """Loads weights into a network, or raises ``PolicyError`` and changes nothing."""
    if not isinstance(weights, Mapping):
        raise PolicyError(
            f"weights are a mapping from names to tensors, as get_weights gives it; got {type(weights).__name__}"
        )
    for name, tensor in weights.items():
        if isinstance(tensor, Tensor) and not bool(torch.isfinite(tensor).all()):
            broken = int((~torch.isfinite(tensor)).sum())
            raise PolicyError(
                f"{broken} of the {tensor.numel()} numbers of {name} are not finite; take weights from before they "
                f"diverged"
            )
    try:
        load_model(network, weights)
    except CheckpointError as error:
        raise PolicyError(f"these weights do not fit the network: {error}") from error
