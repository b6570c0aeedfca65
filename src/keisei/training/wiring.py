"""Builds all parts of a run from its settings, and saves and restores them with checkpoints."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import torch

from keisei.errors import CheckpointError, ConfigError
from keisei.games.contract import GameSpec
from keisei.machine.freed_memory import keep_freed_memory
from keisei.machine.memory import free_memory
from keisei.parallel.parallel_manager import ParallelManager
from keisei.parallel.tables import TableSnapshot
from keisei.policies.agents_network import AgentsPlan
from keisei.policies.behaviour import Behaviour
from keisei.policies.model_config import FOR_BOARDS, ModelConfig, least_weights
from keisei.policies.players.player_document import DOCUMENT, PlayerDocument
from keisei.runs.checkpoint import Checkpoint, check_game, restoring
from keisei.runs.directory import RunDirectory, config_digest
from keisei.runs.json_values import Json
from keisei.runs.state import State
from keisei.runs.state_tensors import load_random, random_tensors
from keisei.training.events import Counters
from keisei.training.league.assembly import Assembly, assemble
from keisei.training.league.opponents import OpponentManager
from keisei.training.regimes.loop import AnyParts, Pace, Parts
from keisei.training.regimes.publishing import Publisher
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig

logger = logging.getLogger(__name__)


def connect(
    config: TrainConfig, checkpoint: Checkpoint | None = None, run: RunDirectory | None = None
) -> AnyParts:
    """Builds every part, new or from a checkpoint, and starts the workers.

    ``config`` is resolved and placed. ``run`` is the directory with the league's weights; a run without one keeps them
    in memory. The caller stops the workers at the end: ``parts.manager.stop_workers()``.
    """
    keep_freed_memory()
    _check_memory(config.model)
    regime = regime_of(config)
    game = config.env.make(batch=1, seed=0)
    learner = regime.build_learner(config, config.learner, game, choose_device(config.run.device))
    buffer = regime.build_buffer(config, config.learner, game.spec, learner)
    version, counters = 1, Counters()
    if checkpoint is not None:
        check_game(checkpoint, game.spec.name)
        with restoring(checkpoint, "its learner"):
            learner.restore(State(checkpoint.tensors, checkpoint.documents.get("learner")))
        with restoring(checkpoint, "the random state of torch"):
            load_random(checkpoint.tensors.get("random", {}))
        version, counters = _counter(checkpoint, "version", 1), counters_of(checkpoint)
    league = _assemble_league(config, game.spec, checkpoint, run)
    behaviour = learner.behaviour(pace_of(config).progress(counters))
    agents = regime.agents_plan(learner)
    manager = build_manager(config, behaviour, version, buffer.most_leases, league, agents)
    snapshots = [] if checkpoint is None else _table_snapshots(checkpoint, config)
    if checkpoint is not None and snapshots:
        state = State(checkpoint.tensors, checkpoint.documents.get("buffer"), checkpoint.pieces)
        with restoring(checkpoint, "its experience"):
            buffer.restore(state, manager.lend_slabs)
    opponents = None if league is None else _open_league(league, manager, checkpoint)
    since_reset = _counter(checkpoint, "since_reset", 0) if checkpoint is not None and snapshots else 0
    if checkpoint is not None and league is not None:
        with restoring(checkpoint, "the games of its tables"):
            snapshots = league.without_gone(snapshots)
    manager.start_workers(snapshots, since_reset)
    publisher = Publisher(manager, config.run.sync if config.asynchronous else "every")
    rollout = manager.slab_transitions * len(manager.tables)
    return Parts(game.spec, manager, buffer, learner, publisher, rollout, opponents)


def _check_memory(model: ModelConfig) -> None:
    """Refuses a network that surely does not fit into memory: with its gradients and two moments of each, a weight
    takes 16 bytes. The system would end this process in the middle of making it."""
    weights, free = least_weights(model), free_memory()
    if free is not None and 16 * weights > free:
        sizes = "channels or blocks" if model.network in FOR_BOARDS else "hidden_dim or num_layers"
        raise ConfigError(
            f"model: network {model.network} has more than {weights:,} weights and needs {16 * weights / 2**20:,.0f} "
            f"MB to learn, and {free / 2**20:,.0f} MB are left; make {sizes} smaller"
        )


def build_manager(
    config: TrainConfig,
    behaviour: Behaviour,
    version: int,
    leases: int,
    league: Assembly | None,
    agents: AgentsPlan | None,
) -> ParallelManager:
    """Makes the manager that plays with a behaviour. Its workers are not started."""
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
    if checkpoint is None:
        return assemble(config.league, spec, config.parallel.table_count, run=run)
    with restoring(checkpoint, "its league"):
        return assemble(config.league, spec, config.parallel.table_count, checkpoint, run)


def _open_league(
    league: Assembly, manager: ParallelManager, checkpoint: Checkpoint | None
) -> OpponentManager:
    if checkpoint is None:
        return league.open(manager)
    with restoring(checkpoint, "its league"):
        return league.open(manager)


def choose_device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        with warnings.catch_warnings(action="ignore"):  # old device names cause warnings
            device = torch.device(wanted)
            result = float(torch.ones(1, device=device) + 1)
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = _printable((str(error).splitlines() or ["no reason given"])[0])
        raise ConfigError(
            f"run.device = {wanted!r}: nothing can be computed there ({reason}); take cpu or auto"
        ) from error
    if result != 2:
        raise ConfigError(f"run.device = {wanted!r}: 1 + 1 makes {result:g} there; take cpu or auto")
    return torch.device("cpu") if device.type == "cpu" else device


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


def pace_of(config: TrainConfig) -> Pace:
    """Makes the length of a run. What is null sets no limit."""
    steps, minutes, games = config.run.steps, config.run.minutes, config.run.episodes
    return Pace(
        steps=math.inf if steps is None else steps,
        seconds=math.inf if minutes is None else 60 * minutes,
        games=math.inf if games is None else games,
    )


def capture(parts: AnyParts, counters: Counters, config: TrainConfig) -> Checkpoint:
    """Makes a checkpoint between two updates. It holds copies, so training may continue while it is written; only
    pieces, which the buffer keeps, are read when they are written."""
    learner, buffer = parts.learner.state(), parts.buffer.state()
    agents = regime_of(config).agents_plan(parts.learner)
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
            DOCUMENT: player_document(config, agents).model_dump(mode="json"),
        },
        config_digest=config_digest(config),
    )


def first_checkpoint(config: TrainConfig, learner: State) -> Checkpoint:
    """Makes the checkpoint of update 0, from which a run begins with the weights of a learner and with new games."""
    return Checkpoint(
        game=config.env.make(batch=1, seed=0).spec.name,
        counters={"update": 0},
        tensors=learner.tensors,
        documents={
            "learner": learner.document,
            "tables": [],
            "games": games_digest(config),
            "settings": config.model_dump(mode="json"),
            DOCUMENT: player_document(config).model_dump(mode="json"),
        },
        config_digest=config_digest(config),
    )


def player_document(config: TrainConfig, agents: AgentsPlan | None = None) -> PlayerDocument:
    """Says what the player of a run is. ``agents`` are those of independent agents."""
    model = config.model if agents is None else None
    options, temperature = config.env.game_options(), config.evaluation.temperature
    return PlayerDocument(
        game=config.env.game, options=options, model=model, agents=agents, temperature=temperature
    )


def counters_of(checkpoint: Checkpoint) -> Counters:
    saved = checkpoint.counters
    return Counters(
        update=checkpoint.update,
        transitions=int(saved.get("transitions", 0)),
        games=int(saved.get("games", 0)),
        seconds=float(saved.get("seconds", 0.0)),
    )


def _counter(checkpoint: Checkpoint, name: str, usual: int) -> int:
    """Reads a counter that workers are told, as 32 bits. Older checkpoints lack some."""
    found = int(checkpoint.counters.get(name, usual))
    if found >= 1 << 31:
        raise CheckpointError(f"{checkpoint.path} has {found} for its {name}, which no run reaches")
    return found


def games_digest(config: TrainConfig) -> str:
    """Computes the digest of the settings that the saved games of tables depend on. With other settings the games
    cannot be resumed. The placement is not part of it."""
    parallel = config.parallel
    not_from_a_file = {"source_digest"} if config.env.source_digest is None else set[str]()
    return config_digest(
        {
            "env": config.env.model_dump(mode="json", exclude=not_from_a_file),
            "tables": parallel.table_count,
            "games": parallel.games,
            "seed": config.run.seed,
        }
    )


def _table_snapshots(checkpoint: Checkpoint, config: TrainConfig) -> list[TableSnapshot]:
    """Gets the games of all tables if there are any and they still fit the settings; else none, and games start
    over."""
    if checkpoint.documents.get("games") != games_digest(config):
        logger.warning(
            "the settings of games or tables have changed since update %d: all games start over",
            checkpoint.update,
        )
        return []
    if checkpoint.documents.get("tables") == []:  # a run that begins with weights alone
        return []
    with restoring(checkpoint, "the games of its tables"):
        snapshots = [
            _table_snapshot(entry, checkpoint) for entry in cast(list[Any], checkpoint.documents["tables"])
        ]
        numbers = [taken.table for taken in snapshots]
        # A run that begins with learned weights has none yet: these tables start new games.
        if len({*numbers}) < len(numbers) or max(numbers, default=0) >= config.parallel.table_count:
            raise ValueError(f"the tables are {numbers}, of 0 … {config.parallel.table_count - 1}")
        return snapshots


def _table_snapshot(entry: Mapping[str, Any], checkpoint: Checkpoint) -> TableSnapshot:
    table, epoch, sequence = (entry[name] for name in ("table", "epoch", "sequence"))
    for number, most in ((table, 1 << 31), (epoch, 1 << 31), (sequence, 1 << 53)):
        if type(number) is not int or not 0 <= number < most:
            raise ValueError(f"{number!r:.40} is no number of a table, epoch or slab")
    return TableSnapshot(table, epoch, sequence, checkpoint.blobs[f"table-{table}"])
