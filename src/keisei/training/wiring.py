"""Where all parts of a run meet: built from its settings, and taken out of and into checkpoints."""

from __future__ import annotations

import logging
from dataclasses import asdict

import torch

from keisei.errors import CheckpointError, ConfigError
from keisei.experience.rollout import ExperienceBuffer
from keisei.learners.ppo import PPO
from keisei.machine.freed_memory import keep_freed_memory
from keisei.parallel.crew import WorkerSnapshot
from keisei.parallel.parallel_manager import ParallelManager
from keisei.policies.networks import build_network
from keisei.runs.checkpoint import Checkpoint, State
from keisei.runs.directory import config_digest
from keisei.runs.json_values import Json
from keisei.runs.state_tensors import (
    FlatState,
    flatten_optimizer,
    load_model,
    load_optimizer,
    load_random,
    model_tensors,
    random_tensors,
)
from keisei.training.events import Counters
from keisei.training.publishing import Publisher
from keisei.training.self_play import Parts
from keisei.training.settings import TrainConfig

logger = logging.getLogger(__name__)


def connect(config: TrainConfig, checkpoint: Checkpoint | None = None) -> Parts:
    """Build every part, as new or as it was in a checkpoint, and start the workers.

    ``config`` is resolved. Whoever calls this stops the workers at the end: ``parts.manager.stop_workers()``.
    """
    keep_freed_memory()
    device = choose_device(config.run.device)
    game = config.env.make(batch=1, seed=0, max_game_length=config.parallel.max_game_length)
    network = build_network(config.model, game.spec, config.run.seed)
    version = 1
    if checkpoint is not None:
        load_model(network, checkpoint.tensors["model"])
        version = int(checkpoint.counters.get("version", 1))
    network.to(device)
    learner = PPO(
        network,
        game,
        config.ppo,
        config.run.seed,
        threads=int(config.run.learner_threads) if device.type == "cpu" else 1,
        mixed_precision=config.run.mixed_precision,
        compile_network=config.run.compile,
    )
    correct = config.asynchronous and config.ppo.correction == "vtrace"
    buffer = ExperienceBuffer(
        game.spec,
        config.env.discount,
        config.ppo.trace,
        learner.judge,
        vtrace=correct,
        rho_clip=config.ppo.rho_clip,
        trace_clip=config.ppo.trace_clip,
        minibatch_size=config.ppo.minibatch_size,
        epochs=config.ppo.epochs,
    )
    if checkpoint is not None:
        _restore_learner(learner, checkpoint)
        if "experience" in checkpoint.documents:
            buffer.restore(State(checkpoint.tensors, checkpoint.documents["experience"]))
    manager = ParallelManager(config.env, config.model, config.parallel, model=network, first_version=version)
    manager.start_workers(_worker_snapshots(checkpoint, config) if checkpoint is not None else ())
    publisher = Publisher(manager, network, config.run.sync if config.asynchronous else "every")
    return Parts(game.spec, manager, buffer, learner, publisher, config.run.rollout)


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


def capture(parts: Parts, counters: Counters, config: TrainConfig) -> Checkpoint:
    """All that a run needs to go on, as it is between two updates. Copies: training may go on meanwhile."""
    optimizer = flatten_optimizer(parts.learner.optimizer)
    snapshots, experience = parts.manager.snapshot(), parts.buffer.state()
    workers: list[Json] = [
        {"worker": taken.worker, "epoch": taken.epoch, "sequence": taken.sequence} for taken in snapshots
    ]
    return Checkpoint(
        game=parts.spec.name,
        counters={**asdict(counters), "version": parts.manager.version},
        tensors={
            "model": model_tensors(parts.learner.network),
            "optimizer": dict(optimizer.tensors),
            "random": random_tensors(),
            **experience.tensors,
        },
        blobs={f"worker-{taken.worker}": taken.state for taken in snapshots},
        documents={
            "optimizer": optimizer.document,
            "learner": {"updates": parts.learner.updates},
            "workers": workers,
            "experience": experience.document,
            "games": games_digest(config),
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
    """Of what the saved games of workers depend on: with other settings they can't be taken up."""
    parallel = config.parallel
    return config_digest(
        {
            "env": config.env.model_dump(mode="json"),
            "games": parallel.games_per_worker,
            "max_game_length": parallel.max_game_length,
            "workers": parallel.workers,
            "seed": parallel.seed,
        }
    )


def _restore_learner(learner: PPO, checkpoint: Checkpoint) -> None:
    documents = checkpoint.documents
    progress = documents.get("learner")
    if "optimizer" not in documents or not isinstance(progress, dict):
        raise CheckpointError(
            f"the checkpoint of update {checkpoint.update} has no learner in it; it was not written by keisei train"
        )
    load_optimizer(
        learner.optimizer, FlatState(checkpoint.tensors.get("optimizer", {}), documents["optimizer"])
    )
    learner.updates = int(progress["updates"])
    load_random(checkpoint.tensors.get("random", {}))


def _worker_snapshots(checkpoint: Checkpoint, config: TrainConfig) -> list[WorkerSnapshot]:
    """The games of all workers, where they still fit the settings; new games otherwise."""
    if checkpoint.documents.get("games") != games_digest(config):
        logger.warning(
            "the settings of games or workers have changed since update %d: workers start new games",
            checkpoint.update,
        )
        return []
    workers = checkpoint.documents.get("workers")
    try:
        assert isinstance(workers, list)
        return [
            WorkerSnapshot(
                entry["worker"],
                entry["epoch"],
                entry["sequence"],
                checkpoint.blobs[f"worker-{entry['worker']}"],
            )
            for entry in workers
        ]
    except (AssertionError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"the checkpoint of update {checkpoint.update} does not hold the games of its workers: {error!r}"
        ) from error
