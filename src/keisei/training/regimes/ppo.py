"""The regime ``ppo``: one network plays all seats, and learns by PPO from what was just played."""

from __future__ import annotations

import torch

from keisei.experience.rollout import ExperienceBuffer
from keisei.games.contract import Game, GameSpec
from keisei.learners.ppo import PPO
from keisei.policies.networks import build_network
from keisei.training.regimes.learner_settings import PPOSettings
from keisei.training.regimes.loop import play_and_learn
from keisei.training.regimes.registry import Regime
from keisei.training.settings import TrainConfig

__all__ = ["REGIME"]


def build_learner(config: TrainConfig, settings: PPOSettings, game: Game, device: torch.device) -> PPO:
    network = build_network(config.model, game.spec, config.run.seed).to(device)
    return PPO(
        network,
        game,
        settings,
        config.run.seed,
        parts=int(settings.parts) if device.type == "cpu" else 1,
        threads=int(config.run.learner_threads),
        temperature=config.parallel.temperature,
        epsilon=config.parallel.epsilon,
        mixed_precision=config.run.mixed_precision,
        compile_network=config.run.compile,
    )


def build_buffer(
    config: TrainConfig, settings: PPOSettings, spec: GameSpec, learner: PPO
) -> ExperienceBuffer:
    return ExperienceBuffer(
        spec,
        config.env.discount,
        settings.trace,
        judge=learner.judge,
        vtrace=config.asynchronous and settings.correction == "vtrace",
        rho_clip=settings.rho_clip,
        trace_clip=settings.trace_clip,
    )


REGIME = Regime(build_learner, build_buffer, play_and_learn)
