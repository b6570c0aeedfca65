"""The independent regime: agent i plays seat i and learns for itself. Nothing is shared.

One loop serves both modes. Synchronous workers rest while agents learn, so a run with the same seed ends with the same
weights. Asynchronous workers play on while agents learn in a thread beside them. The loop calls no logger and writes no
file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy

import numpy as np
import torch

from keisei.errors import ConfigError
from keisei.experience.agent_memory import AgentMemory
from keisei.experience.agent_rollout import AgentRollout
from keisei.experience.agent_slabs import spec_of_agent
from keisei.experience.agents_buffer import AgentsBuffer, Memory
from keisei.experience.collected import Experiences
from keisei.experience.rollout import ExperienceBuffer
from keisei.experience.schema import SlabShape
from keisei.games.contract import ByteArray, FloatArray, Game, GameSpec, IntArray
from keisei.games.randomness import keyed_word
from keisei.games.registry import portable_name
from keisei.learners.agent_plan import AgentPlan
from keisei.learners.contract import Report
from keisei.learners.independent import IndependentLearners, plan_agents
from keisei.learners.ppo import PPO
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.agents_policy import AgentsPolicy
from keisei.runs.metric_names import AGENT_RETURN
from keisei.training.events import Counters, Update
from keisei.training.regimes.background import InBackground, InTurn, Learning, joined
from keisei.training.regimes.learner_settings import IndependentSettings
from keisei.training.regimes.loop import Laps, Pace, Parts, collect, counted, hand_over, told
from keisei.training.regimes.registry import Regime
from keisei.training.settings import TrainConfig

__all__ = ["REGIME", "agent_plans", "independent"]


def independent(parts: Parts[IndependentLearners], pace: Pace, start: Counters) -> Iterator[Update]:
    """Collects, gives each agent what it has decided itself, trains the agents, and yields an update, until the run is
    over. The last training ends before the run does."""
    counters, began = start, pace.clock() - start.seconds
    learning, interval = _learning(parts), parts.learner.train_interval
    try:
        while not pace.is_over(counters):
            progress = pace.progress(counters)
            experiences, games, collection = collect(parts, counters, progress)
            returns = returns_of(experiences, parts.spec)
            laps = Laps(parts.manager.timeline)
            hand_over(parts, experiences)
            laps.lap("prepare")
            after = counted(counters, games, collection, pace.clock() - began)
            before, progress = progress, pace.progress(after)
            if after.update % interval == 0 or pace.is_over(after):
                report = learning.train(parts.buffer.view(), before, progress)
            else:
                report = learning.skip(progress)
            if pace.is_over(after):
                report = joined([report, learning.finish()])
            laps.lap("learn")
            report = with_returns(report, returns)
            yield told(after, progress, games, collection, report, laps, parts.buffer.numbers())
            counters = after
    finally:
        learning.close()


def _learning(parts: Parts[IndependentLearners]) -> Learning:
    asynchronous = parts.manager.config.mode == "async"
    return (InBackground if asynchronous else InTurn)(parts.learner, parts.publisher)


def returns_of(experiences: Experiences, spec: GameSpec) -> Mapping[int, float]:
    """Computes the mean rewards of each agent in the games that were finished; NaN if there were none."""
    scores = [item.slab.score[item.slab.terminated | item.slab.truncated] for item in experiences]
    whole = np.concatenate(scores) if scores else np.zeros((0, spec.seats))
    means = whole.mean(axis=0) if len(whole) else np.full(spec.seats, math.nan)
    return dict(enumerate(means.tolist()))


def with_returns(report: Report, returns: Mapping[int, float]) -> Report:
    """Adds the return of each agent to its numbers."""
    owners = {agent: {**report.owners.get(agent, {}), AGENT_RETURN: mean} for agent, mean in returns.items()}
    return Report(owners, report.failures)


def agent_plans(config: TrainConfig, settings: IndependentSettings, spec: GameSpec) -> list[AgentPlan]:
    """Lists the settings of all agents, one for each seat. Each has a seed of its own."""
    return [
        AgentPlan(
            model=settings.model_of(agent, config.model, spec),
            algorithm=settings.algorithm_of(agent),
            dqn=settings.dqn_of(agent),
            ppo=settings.ppo_of(agent),
            seed=keyed_word(config.run.seed, agent) >> 1,
            game=portable_name(config.env.game) if settings.training == "processes" else config.env.game,
            options=config.env.game_options(),
            learns=agent not in settings.fixed_agents,
        )
        for agent in range(spec.seats)
    ]


def build_learner(
    config: TrainConfig, settings: IndependentSettings, game: Game, device: torch.device
) -> IndependentLearners:
    plans = agent_plans(config, settings, game.spec)
    if device.type != "cpu" and config.run.device != "auto":
        raise ConfigError(
            f"run.device = {config.run.device}: independent agents learn on processors; take cpu or auto"
        )
    return IndependentLearners(
        plans,
        game,
        training=settings.training,
        acting=plan_agents(plans, game, settings.stack_size if settings.acting == "stacked" else 1),
        stack_size=settings.stack_size,
        train_interval=settings.train_interval,
        threads=int(config.run.learner_threads),
        timeout=settings.training_timeout,
    )


def build_buffer(
    config: TrainConfig, settings: IndependentSettings, spec: GameSpec, learner: IndependentLearners
) -> AgentsBuffer:
    return AgentsBuffer([_memory(config, settings, spec, learner, agent) for agent in range(spec.seats)])


def _memory(
    config: TrainConfig,
    settings: IndependentSettings,
    spec: GameSpec,
    learner: IndependentLearners,
    agent: int,
) -> Memory:
    parallel, own = config.parallel, learner.agents[agent]
    shape = SlabShape.of(spec, parallel.horizon, parallel.games)
    if isinstance(own, PPO):
        return AgentRollout(agent, shape, _rollout_buffer(config, spec, learner, own))
    return AgentMemory(
        spec,
        shape,
        settings.replay,
        config.env.discount,
        agent=agent,
        batch_size=own.config.minibatch_size,
        tables=parallel.table_count,
        seed=own.seed,
    )


def _rollout_buffer(
    config: TrainConfig, spec: GameSpec, learner: IndependentLearners, own: PPO
) -> ExperienceBuffer:
    def judge(packed: ByteArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        with learner.whole:  # a training in the background may be changing the weights
            return own.judge(packed, actions)

    return ExperienceBuffer(
        spec_of_agent(spec),
        config.env.discount,
        own.config.trace,
        judge=judge,
        vtrace=config.asynchronous and own.config.correction == "vtrace",
        rho_clip=own.config.rho_clip,
        trace_clip=own.config.trace_clip,
    )


def current_policy(learner: IndependentLearners, spec: GameSpec, temperature: float) -> AgentsPolicy:
    """Makes a policy with a copy of the weights: agents may be learning in the background."""
    with learner.whole:
        network = deepcopy(learner.network)
    return AgentsPolicy(network, spec, temperature)


def agents_plan(learner: IndependentLearners) -> AgentsPlan:
    return learner.plan


REGIME = Regime(build_learner, build_buffer, independent, current_policy, agents_plan)
