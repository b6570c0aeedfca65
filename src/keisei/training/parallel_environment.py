"""A world of independent agents in one object: ``ParallelEnvironment("treasurehunt", config)``.

The names are those of scripts in which a main loop plays epochs of turns and trains every agent. What happens is the
independent regime: one epoch is one collection, in which every world plays ``max_turns`` turns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, field_validator

from keisei.config import Settings, parse_settings
from keisei.errors import ConfigError
from keisei.experience.agent_memory import AgentMemory
from keisei.experience.agents_buffer import Memory
from keisei.games.registry import takes_option
from keisei.learners.agent_units import AgentLearner
from keisei.learners.dqn import DQN
from keisei.learners.independent_config import Algorithm
from keisei.machine.torch_threads import single_threaded
from keisei.parallel.config import MAX_WORKERS
from keisei.policies.model_config import ModelConfig
from keisei.runs import metric_names as tags
from keisei.training.events import Counters, Update
from keisei.training.regimes.independent import agents_plan, build_buffer, build_learner, independent
from keisei.training.regimes.loop import Pace, Parts
from keisei.training.regimes.publishing import Publisher
from keisei.training.settings import TrainConfig
from keisei.training.wiring import build_manager, choose_device

__all__ = ["AgentModel", "Experiment", "ParallelEnvironment", "WorldAgent"]


MOST_TABLES = 4
"""Tables are played by several workers at a time. Fewer tables with more worlds make larger batches for networks."""


class ParallelSection(Settings):
    """What runs at the same time."""

    enabled: bool = True
    """False does everything one after the other."""
    parallel_actions: bool = True
    """Compute what all agents do at once, not agent by agent."""
    parallel_training: bool = True
    """Train agents at once, not one after the other."""
    async_learning: bool = False
    """Learn in a thread while epochs go on."""
    train_interval: Annotated[int, Field(ge=1)] = 4
    """Epochs between two trainings."""
    num_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None = None
    """Workers that play the worlds, and threads or processes that train. Null takes 1 worker, in this process, and as
    many threads as there are cores."""
    use_threads: bool | None = None
    """Train every agent by itself: true on threads, false in processes. Null computes equal agents at once, which is
    the fastest."""


class ExperimentSection(Settings):
    """How long an experiment lasts."""

    epochs: Annotated[int, Field(ge=1)] = 1000
    max_turns: Annotated[int, Field(ge=1)] = 100
    """Turns of an epoch."""
    worlds: Annotated[int, Field(ge=1)] = 1
    """Worlds that are played side by side."""
    seed: Annotated[int, Field(ge=0)] = 0


class ModelSection(ModelConfig):
    """The network of the agents, and how they learn. Each agent has its own."""

    algorithm: Algorithm = "dqn"
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    batch_size: Annotated[int, Field(ge=1)] = 64
    """Decisions of one gradient step."""
    memory_size: Annotated[int, Field(ge=1)] = 10_000
    """Decisions that an agent remembers."""
    train_steps: Annotated[int, Field(ge=1)] = 1
    """Gradient steps for each epoch, made when agents are trained."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.99
    epsilon: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of random decisions in the first epoch. It falls over half of the experiment."""
    final_epsilon: Annotated[float, Field(ge=0, le=1)] = 0.05


class EnvironmentConfig(Settings):
    """The whole dictionary."""

    parallel: ParallelSection = ParallelSection()
    experiment: ExperimentSection = ExperimentSection()
    model: ModelSection = ModelSection(network="mlp", hidden_dim=64)
    world: dict[str, Any] = Field(default_factory=dict)
    """Options of the game."""

    @field_validator("model", mode="before")
    @classmethod
    def _agents_have_networks(cls, given: object) -> object:
        if given is None:
            raise ValueError("agents need a network: give its settings, or leave model out for the usual one")
        return given


class AgentModel:
    """What an agent has learned and remembers. It belongs to this agent alone."""

    def __init__(self, learner: AgentLearner, memory: Memory) -> None:
        self.learner, self.memory = learner, memory

    @property
    def network(self) -> Any:
        return self.learner.network

    def train_step(self) -> float:
        """Trains on the agent's own memory: one gradient step of DQN, or one update of PPO. Returns the loss; NaN if
        there is nothing to learn from yet."""
        if isinstance(self.learner, DQN) and isinstance(self.memory, AgentMemory):
            if not len(self.memory):
                return math.nan
            with single_threaded():
                return self.learner.step(self.learner.draw(self.memory.view(), 0.0)).loss
        if not len(self.memory):
            return math.nan
        return float(self.learner.learn(self.memory.view(), 0.0).owners[0][tags.LOSS])  # type: ignore[arg-type]


@dataclass(frozen=True)
class WorldAgent:
    """The agent of one seat."""

    number: int
    model: AgentModel


@dataclass(frozen=True)
class Experiment:
    """The results of an experiment."""

    epochs: int
    turns: int
    """Turns of all worlds together."""
    gradient_steps: int
    """Of all agents together."""
    seconds: float
    returns: Sequence[Mapping[int, float]] = field(repr=False)
    """For each epoch: the rewards of each agent in a world, as a mean over the worlds that ended."""
    failures: Sequence[Mapping[int, str]] = field(repr=False)
    """For each epoch: the agents that could not learn, and why."""

    def mean_return(self, last: int = 100) -> float:
        """Computes the mean return of all agents over the last epochs."""
        known = [value for of in self.returns[-last:] for value in of.values() if not math.isnan(value)]
        return sum(known) / len(known) if known else math.nan


class ParallelEnvironment:
    """A world whose agents act and learn at the same time, and share nothing.

    ``config`` is a dictionary with the sections ``parallel``, ``experiment``, ``model`` and ``world``; see
    docs/independent.md. All problems in it are told at once, before anything starts.
    """

    def __init__(self, game: str, config: Mapping[str, Any] | None = None) -> None:
        own = parse_settings(EnvironmentConfig, config, "the configuration of ParallelEnvironment")
        self.config = own
        self.settings = _train_config(game, own)
        """The same as settings of a run."""
        world = self.settings.env.make(batch=1, seed=0)
        self.spec = world.spec
        learning: Any = self.settings.learner
        self._learner = build_learner(self.settings, learning, world, choose_device("cpu"))
        self._buffer = build_buffer(self.settings, learning, self.spec, self._learner)
        self.agents = [
            WorldAgent(number, AgentModel(learner, memory))
            for number, (learner, memory) in enumerate(
                zip(self._learner.agents, self._buffer.memories, strict=True)
            )
        ]

    def run_experiment_parallel(self) -> Experiment:
        """Plays all epochs and trains the agents. The last training ends before this returns. Nothing is left running,
        also after an error."""
        began = time.monotonic()
        behaviour = self._learner.behaviour(0.0)
        manager = build_manager(self.settings, behaviour, 1, 0, None, agents_plan(self._learner))
        with single_threaded(), manager:
            publisher = Publisher(manager, "every")
            rollout = manager.slab_transitions * len(manager.tables)
            parts = Parts(self.spec, manager, self._buffer, self._learner, publisher, rollout)
            updates = list(independent(parts, Pace(updates=self.config.experiment.epochs), Counters()))
        return self._experiment(updates, time.monotonic() - began)

    def _experiment(self, updates: Sequence[Update], seconds: float) -> Experiment:
        experiment = self.config.experiment
        return Experiment(
            epochs=len(updates),
            turns=len(updates) * experiment.max_turns * experiment.worlds,
            gradient_steps=int(sum(_gradient_steps(update) for update in updates)),
            seconds=seconds,
            returns=[
                {agent: numbers[tags.AGENT_RETURN] for agent, numbers in update.report.owners.items()}
                for update in updates
            ],
            failures=[update.report.failures for update in updates],
        )


def _gradient_steps(update: Update) -> float:
    return sum(numbers.get(tags.GRADIENT_STEPS, 0.0) for numbers in update.report.owners.values())


def _train_config(game: str, own: EnvironmentConfig) -> TrainConfig:
    """Makes the settings of a run that does what the dictionary says."""
    parallel, experiment, model = own.parallel, own.experiment, own.model
    if "max_turns" in own.world:
        raise ConfigError("world.max_turns: the turns of an epoch are experiment.max_turns; write them there")
    turns = {"max_turns": experiment.max_turns} if takes_option(game, "max_turns") else {}
    asynchronous = parallel.enabled and parallel.async_learning
    workers, tables = parallel.num_workers or 1, _tables(experiment.worlds)
    given = model.model_dump(exclude_unset=True)
    settings = {
        "env": {"game": game, "options": {**turns, **own.world}, "discount": model.discount},
        "model": {name: value for name, value in given.items() if name in ModelConfig.model_fields},
        "learner": {
            "regime": "independent",
            "algorithm": model.algorithm,
            "training": _training(parallel),
            "acting": "stacked" if parallel.enabled and parallel.parallel_actions else "one-by-one",
            "train_interval": parallel.train_interval,
            "dqn": {
                "learning_rate": model.learning_rate,
                "minibatch_size": model.batch_size,
                "epsilon": model.epsilon,
                "final_epsilon": model.final_epsilon,
            },
            "ppo": {"learning_rate": model.learning_rate, "minibatch_size": model.batch_size},
            "replay": {
                "capacity": max(model.memory_size, 2 * experiment.worlds * experiment.max_turns),
                "learning_starts": min(model.batch_size, model.memory_size),
                "learning_steps": model.train_steps,
                "n_step": 1,
            },
        },
        "parallel": {
            "tables": tables,
            "games": experiment.worlds // tables,
            "horizon": experiment.max_turns,
            "mode": "async" if asynchronous else "sync",
            "backend": "inline" if workers == 1 else "thread" if parallel.use_threads else "process",
            "num_workers": min(workers, tables),
        },
        "evaluation": {"opponents": []},
        "run": {"seed": experiment.seed, "device": "cpu"}
        | ({"learner_threads": workers} if parallel.num_workers else {}),
    }
    return parse_settings(TrainConfig, settings, f"ParallelEnvironment({game!r})").resolved().placed()


def _tables(worlds: int) -> int:
    """Computes into how many equal tables the worlds are divided. It does not depend on the workers that play them, so
    the results do not either."""
    return max(tables for tables in range(1, MOST_TABLES + 1) if worlds % tables == 0)


def _training(parallel: ParallelSection) -> str:
    if not (parallel.enabled and parallel.parallel_training):
        return "sequential"
    return {None: "stacked", True: "threads", False: "processes"}[parallel.use_threads]
