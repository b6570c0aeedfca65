"""Builds all parts of a run from its settings, and saves and restores them with checkpoints."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict

import torch

from keisei.errors import CheckpointError, ConfigError
from keisei.games.contract import GameSpec
from keisei.machine.freed_memory import keep_freed_memory
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.tables import TableSnapshot
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import ActorCritic
from keisei.runs.checkpoint import Checkpoint, State
from keisei.runs.directory import RunDirectory, config_digest
from keisei.runs.json_values import Json
from keisei.runs.state_tensors import load_random, random_tensors
from keisei.training.events import Counters
from keisei.training.league.assembly import Assembly, assemble
from keisei.training.regimes.loop import Pace, Parts
from keisei.training.regimes.publishing import Publisher
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig

logger = logging.getLogger(__name__)


def connect(
    config: TrainConfig, checkpoint: Checkpoint | None = None, run: RunDirectory | None = None
) -> Parts:
    """Builds every part, new or from a checkpoint, and starts the workers.

    ``config`` is resolved and placed. ``run`` is the directory with the league's weights; a run without one keeps them
    in memory. The caller stops the workers at the end: ``parts.manager.stop_workers()``.
    """
    keep_freed_memory()
    regime = regime_of(config)
    game = config.env.make(batch=1, seed=0)
    learner = regime.build_learner(config, game, choose_device(config.run.device))
    buffer = regime.build_buffer(config, game.spec, learner)
    version, counters = 1, Counters()
    if checkpoint is not None:
        learner.restore(State(checkpoint.tensors, checkpoint.documents.get("learner")))
        load_random(checkpoint.tensors.get("random", {}))
        version, counters = int(checkpoint.counters.get("version", 1)), counters_of(checkpoint)
    league = _assemble_league(config, game.spec, checkpoint, run)
    behaviour = learner.behaviour(pace_of(config).progress(counters))
    agents = regime.agents_plan(learner)
    manager = build_manager(config, behaviour, version, buffer.most_leases, league, agents)
    snapshots = [] if checkpoint is None else _table_snapshots(checkpoint, config)
    if checkpoint is not None and snapshots:
        state = State(checkpoint.tensors, checkpoint.documents.get("buffer"), checkpoint.pieces)
        buffer.restore(state, manager.lend_slabs)
    opponents = None if league is None else league.open(manager)
    since_reset = (
        int(checkpoint.counters.get("since_reset", 0)) if checkpoint is not None and snapshots else 0
    )
    manager.start_workers(snapshots if league is None else league.without_gone(snapshots), since_reset)
    publisher = Publisher(manager, config.run.sync if config.asynchronous else "every")
    rollout = manager.slab_transitions * len(manager.tables)
    return Parts(game.spec, manager, buffer, learner, publisher, rollout, opponents)


def build_manager(
    config: TrainConfig,
    behaviour: Behaviour,
    version: int,
    leases: int,
    league: Assembly | None,
    agents: AgentsPlan | None,
) -> ParallelManager:
    """Makes the manager that plays with a behaviour. Its workers are not started."""
    assert isinstance(behaviour.network, ActorCritic)
    return ParallelManager(
        config.env,
        config.model,
        config.parallel,
        model=behaviour.network,
        seed=config.run.seed,
        first_version=version,
        first_settings=behaviour.settings,
        # Copies are not leased, so the arena needs no room for them.
        leased_slabs=leases if config.parallel.use_shared_memory else 0,
        league=None if league is None else league.plan,
        agents=agents,
    )


def _assemble_league(
    config: TrainConfig, spec: GameSpec, checkpoint: Checkpoint | None, run: RunDirectory | None
) -> Assembly | None:
    if not config.league.enabled:
        return None
    return assemble(config.league, spec, config.parallel.table_count, checkpoint, run)


def choose_device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"run.device = {wanted!r}: there is no such device here ({reason}); take cpu or auto"
        ) from error
    return device


def pace_of(config: TrainConfig) -> Pace:
    """Gives the length of a run. What is null sets no limit."""
    steps, minutes, games = config.run.steps, config.run.minutes, config.run.episodes
    return Pace(
        steps=math.inf if steps is None else steps,
        seconds=math.inf if minutes is None else 60 * minutes,
        games=math.inf if games is None else games,
    )


def capture(parts: Parts, counters: Counters, config: TrainConfig) -> Checkpoint:
    """Makes a checkpoint between two updates. It holds copies, so training may continue while it is written; only
    pieces, which the buffer keeps, are read when they are written."""
    learner, buffer = parts.learner.state(), parts.buffer.state()
    league = State() if parts.league is None else parts.league.state()
    snapshots = parts.manager.snapshot()
    tables: list[Json] = [
        {"table": taken.table, "epoch": taken.epoch, "sequence": taken.sequence} for taken in snapshots
    ]
    return Checkpoint(
        game=parts.spec.name,
        counters={
            **asdict(counters),
            "version": parts.manager.version,
            "since_reset": parts.manager.since_reset,
        },
        tensors={**learner.tensors, **buffer.tensors, **league.tensors, "random": random_tensors()},
        pieces=buffer.pieces,
        blobs={f"table-{taken.table}": taken.state for taken in snapshots},
        documents={
            "learner": learner.document,
            "buffer": buffer.document,
            **({} if parts.league is None else {"league": league.document}),
            "tables": tables,
            "games": games_digest(config),
            "settings": config.model_dump(mode="json"),
        },
        config_digest=config_digest(config),
    )


def counters_of(checkpoint: Checkpoint) -> Counters:
    saved = checkpoint.counters
    return Counters(
        update=checkpoint.update,
        transitions=int(saved.get("transitions", 0)),
        games=int(saved.get("games", 0)),
        seconds=float(saved.get("seconds", 0.0)),
    )


def games_digest(config: TrainConfig) -> str:
    """Gives the digest of the settings that the saved games of tables depend on. With other settings the games
    cannot be resumed. The placement is not part of it."""
    parallel = config.parallel
    return config_digest(
        {
            "env": config.env.model_dump(mode="json"),
            "tables": parallel.table_count,
            "games": parallel.games,
            "seed": config.run.seed,
        }
    )


def _table_snapshots(checkpoint: Checkpoint, config: TrainConfig) -> list[TableSnapshot]:
    """Gives the games of all tables if they still fit the settings; else none, and games start over."""
    if checkpoint.documents.get("games") != games_digest(config):
        logger.warning(
            "the settings of games or tables have changed since update %d: all games start over",
            checkpoint.update,
        )
        return []
    tables = checkpoint.documents.get("tables")
    try:
        assert isinstance(tables, list)
        return [
            TableSnapshot(
                entry["table"], entry["epoch"], entry["sequence"], checkpoint.blobs[f"table-{entry['table']}"]
            )
            for entry in tables
        ]
    except (AssertionError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"the checkpoint of update {checkpoint.update} does not hold the games of its tables: {error!r}"
        ) from error
