"""The pool regime: the learner plays against opponents, and learns by DQN from a replay of all that was played.

One loop serves both modes. Synchronous workers rest while the learner learns, so a run with the same seed ends with
the same weights. Asynchronous workers play on; how often each decision is learned from is still the replay's to say.
The loop calls no logger and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from keisei.experience.replay import ReplayBuffer
from keisei.experience.schema import SlabShape
from keisei.games.contract import Game, GameSpec
from keisei.learners.contract import Learner
from keisei.learners.dqn import DQN
from keisei.policies.networks import build_network
from keisei.policies.q_network import QNetwork
from keisei.training.events import Counters, Update
from keisei.training.regimes.learner_settings import PoolSettings
from keisei.training.regimes.loop import Laps, Pace, Parts, collect, counted, hand_over, told
from keisei.training.regimes.registry import Regime
from keisei.training.regimes.trained_policies import current_policy, saved_policy
from keisei.training.settings import TrainConfig

__all__ = ["REGIME", "pool"]


def pool(parts: Parts, pace: Pace, start: Counters) -> Iterator[Update]:
    """Collects, makes the gradient steps that are due, publishes weights with the next epsilon, and yields an update,
    until the run is over."""
    counters, began = start, pace.clock() - start.seconds
    while not pace.is_over(counters):
        progress = pace.progress(counters)
        experiences, games, collection = collect(parts, counters, progress)
        laps = Laps(parts.manager.timeline)
        hand_over(parts, experiences)
        laps.lap("prepare")
        report = parts.learner.learn(parts.buffer.view(), progress)
        laps.lap("learn")
        after = counted(counters, games, collection, pace.clock() - began)
        parts.publisher.publish(parts.learner.behaviour(pace.progress(after)), report)
        laps.lap("publish")
        yield told(counters, pace, after.seconds, games, collection, report, laps, parts.buffer.numbers())
        counters = after


def build_learner(config: TrainConfig, game: Game, device: torch.device) -> DQN:
    settings, network = config.learner, build_network(config.model, game.spec, config.run.seed).to(device)
    assert isinstance(settings, PoolSettings)
    assert isinstance(network, QNetwork)
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


def build_buffer(config: TrainConfig, spec: GameSpec, learner: Learner[Any]) -> ReplayBuffer:
    settings, parallel = config.learner, config.parallel
    assert isinstance(settings, PoolSettings)
    return ReplayBuffer(
        spec,
        SlabShape.of(spec, parallel.horizon, parallel.games),
        settings.replay,
        config.env.discount,
        batch_size=settings.minibatch_size,
        tables=parallel.table_count,
    )


REGIME = Regime("pool", build_learner, build_buffer, pool, saved_policy, current_policy)
