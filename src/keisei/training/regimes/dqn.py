"""The regime ``dqn``: one network plays all seats, and learns by DQN from a replay of all that was played."""

from __future__ import annotations

import torch

from keisei.experience.replay import ReplayBuffer
from keisei.experience.schema import SlabShape
from keisei.games.contract import Game, GameSpec
from keisei.learners.dqn import DQN
from keisei.policies.q_network import build_q_network
from keisei.training.regimes.learner_settings import DQNSettings
from keisei.training.regimes.loop import play_and_learn
from keisei.training.regimes.registry import Regime
from keisei.training.settings import TrainConfig

__all__ = ["REGIME", "build_buffer", "build_learner"]


def build_learner(config: TrainConfig, settings: DQNSettings, game: Game, device: torch.device) -> DQN:
    network = build_q_network(config.model, game.spec, config.run.seed).to(device)
    return DQN(
        network,
        game,
        settings,
        config.run.seed,
        parts=int(settings.parts) if device.type == "cpu" else 1,
        threads=int(config.run.learner_threads),
        mixed_precision=config.run.mixed_precision,
        compile_network=config.run.compile,
    )


def build_buffer(config: TrainConfig, settings: DQNSettings, spec: GameSpec, learner: DQN) -> ReplayBuffer:
    parallel = config.parallel
    return ReplayBuffer(
        spec,
        SlabShape.of(spec, parallel.horizon, parallel.games),
        settings.replay,
        config.env.discount,
        batch_size=settings.minibatch_size,
        tables=parallel.table_count,
    )


REGIME = Regime(build_learner, build_buffer, play_and_learn)
