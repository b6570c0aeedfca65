"""The self-play regime: the learner plays all seats and learns by PPO.

One loop serves both modes. Synchronous workers rest while the learner learns, and every update learns from
experience of exactly the weights before it. Asynchronous workers play on. Their experience is some updates old, and
the buffer corrects for this. The loop calls no logger and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from keisei.experience.rollout import ExperienceBuffer
from keisei.games.contract import Game, GameSpec
from keisei.learners.contract import NOTHING_LEARNED, Learner
from keisei.learners.ppo import PPO
from keisei.policies.networks import build_network
from keisei.training.events import Counters, Update
from keisei.training.regimes.learner_settings import SelfPlaySettings
from keisei.training.regimes.loop import Laps, Pace, Parts, collect, hand_over, told
from keisei.training.regimes.registry import Regime
from keisei.training.regimes.trained_policies import current_policy, saved_policy
from keisei.training.settings import TrainConfig

__all__ = ["REGIME", "self_play"]


def self_play(parts: Parts, pace: Pace, start: Counters) -> Iterator[Update]:
    """Collects, learns, publishes and yields an update, until the run is over."""
    counters, began = start, pace.clock() - start.seconds
    while not pace.is_over(counters):
        progress = pace.progress(counters)
        experiences, games, collection = collect(parts, counters, progress)
        laps = Laps(parts.manager.timeline)
        hand_over(parts, experiences)
        laps.lap("prepare")
        report = parts.learner.learn(parts.buffer.view(), progress) if parts.buffer.due() else NOTHING_LEARNED
        laps.lap("learn")
        parts.publisher.publish(parts.learner.behaviour(progress), report)
        laps.lap("publish")
        seconds, numbers = pace.clock() - began, parts.buffer.numbers()
        update = told(counters, pace, seconds, games, collection, report, laps, numbers)
        counters = update.counters
        yield update


def build_learner(config: TrainConfig, game: Game, device: torch.device) -> PPO:
    settings = config.learner
    assert isinstance(settings, SelfPlaySettings)
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


def build_buffer(config: TrainConfig, spec: GameSpec, learner: Learner[Any]) -> ExperienceBuffer:
    settings = config.learner
    assert isinstance(learner, PPO)
    assert isinstance(settings, SelfPlaySettings)
    return ExperienceBuffer(
        spec,
        config.env.discount,
        settings.trace,
        judge=learner.judge,
        vtrace=config.asynchronous and settings.correction == "vtrace",
        rho_clip=settings.rho_clip,
        trace_clip=settings.trace_clip,
        minibatch_size=settings.minibatch_size,
        epochs=settings.epochs,
        share=settings.advantage_share,
    )


REGIME = Regime("self-play", build_learner, build_buffer, self_play, saved_policy, current_policy)
