"""Runs as the trainer leaves them, with small networks whose weights follow from the update."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keisei.policies import ActorCritic, build_network
from keisei.policies.trust import trust_settings
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.directory import RunDirectory
from keisei.runs.state_tensors import model_tensors
from keisei.training.settings import TrainConfig

MODEL = {"network": "mlp", "hidden_dim": 8, "num_layers": 1}


def make_run(
    root: Path,
    name: str,
    updates: Iterable[int] = (10, 20),
    best: int | None = None,
    game: str = "tictactoe",
    **env: Any,
) -> RunDirectory:
    """A run with a checkpoint after each of the updates; ``env`` are further settings of what is played."""
    config = TrainConfig.model_validate({"env": {"game": game, **env}, "model": MODEL})
    run = RunDirectory.create(root, name, config)
    trust_settings(run, config)  # as for who starts a run
    store = CheckpointArchive(run.checkpoints, keep=100)
    for update in updates:
        path = store.save(checkpoint_of(run, update))
        if update == best:
            store.mark_best(path)
    return run


def checkpoint_of(run: RunDirectory, update: int) -> Checkpoint:
    game = TrainConfig.model_validate(run.config()).env.make(batch=1, seed=0)
    return Checkpoint(
        game=game.spec.name,
        counters={
            "update": update,
            "transitions": update * 512,
            "games": update * 9,
            "seconds": update * 0.1,
        },
        tensors={"model": model_tensors(network_of(run, update))},
    )


def network_of(run: RunDirectory, update: int) -> ActorCritic:
    """The network that the checkpoint of an update has."""
    config = TrainConfig.model_validate(run.config())
    return build_network(config.model, config.env.make(batch=1, seed=0).spec, seed=update)


def damage(checkpoint: Path) -> None:
    """Flip one bit of the weights."""
    weights = checkpoint / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
