"""Runs of independent agents that take a second. Three agents of ``relay`` rest now and then; processes import it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from training_for_tests import train as train_run

from keisei.config import apply_overrides, parse_settings
from keisei.experience.agents_buffer import AgentsBuffer
from keisei.learners.independent import IndependentLearners
from keisei.training.events import Counters
from keisei.training.regimes.loop import Parts, collect, hand_over
from keisei.training.settings import TrainConfig
from keisei.training.trainer import TrainResult
from keisei.training.wiring import connect

RELAY = "games_for_tests:Relay"
UPDATES = 4
SETTINGS: dict[str, Any] = {
    "env": {"game": RELAY},
    "model": {"network": "mlp", "hidden_dim": 8, "num_layers": 1},
    "learner": {
        "regime": "independent",
        "dqn": {"minibatch_size": 16, "target_interval": 3, "learning_rate": 1e-2},
        "ppo": {"minibatch_size": 16, "epochs": 2},
        "replay": {"capacity": 256, "learning_starts": 20, "n_step": 2, "sample_to_insert_ratio": 2},
    },
    "parallel": {"backend": "inline", "num_workers": 1, "tables": 2, "games": 4, "horizon": 8},
    "evaluation": {"every": 0, "games": 2, "opponents": []},
    "run": {"steps": UPDATES * 2 * 4 * 8 * 2, "learner_threads": 1, "checkpoint_every": 1},
}
"""In each step two of the three agents act, so an update has 2 x 4 x 8 x 2 or more decisions."""


def config_of(*overrides: str) -> TrainConfig:
    return parse_settings(TrainConfig, apply_overrides(SETTINGS, overrides)).resolved()


def train(root: Path, *overrides: str, **options: Any) -> TrainResult:
    """Trains a run from nothing, or from where it stands."""
    return train_run(root, *overrides, settings=SETTINGS, **options)


@contextmanager
def parts_of(*overrides: str) -> Iterator[Parts]:
    parts = connect(config_of(*overrides).placed())
    try:
        yield parts
    finally:
        parts.manager.stop_workers()


def learner_of(parts: Parts) -> IndependentLearners:
    assert isinstance(parts.learner, IndependentLearners)
    return parts.learner


def buffer_of(parts: Parts) -> AgentsBuffer:
    assert isinstance(parts.buffer, AgentsBuffer)
    return parts.buffer


def fill(parts: Parts, rounds: int = 2) -> None:
    """Gives the agents some experience, without learning from it."""
    for _ in range(rounds):
        hand_over(parts, collect(parts, Counters(), 0.0)[0])


def weights(learner: IndependentLearners, agent: int) -> torch.Tensor:
    """All that training has changed in an agent: weights, target and moments, as one row."""
    tensors = learner.agents[agent].state().tensors
    return torch.cat([t.double().reshape(-1) for group in sorted(tensors) for t in tensors[group].values()])
