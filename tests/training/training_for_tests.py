"""Runs of a second, and callbacks for them. Processes that tests start import this module too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keisei.config import apply_overrides, parse_settings
from keisei.games.randomness import KeyedRandom
from keisei.games.tictactoe import TicTacToe
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import checkpoint_rank
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.training.callbacks import Callback
from keisei.training.events import Ended, Evaluation, Saved, Started, Update
from keisei.training.interruption import Interruption
from keisei.training.settings import TrainConfig
from keisei.training.trainer import Trainer, TrainResult

ROLLOUT = 256
UPDATES = 4
TINY: Mapping[str, Any] = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 16, "num_layers": 1},
    "learner": {"minibatch_size": 64, "epochs": 1, "learning_rate": 3e-3},
    "parallel": {"backend": "inline", "num_workers": 2, "tables": 2, "games": 8, "horizon": 16},
    "evaluation": {"every": 0, "games": 2, "opponents": []},
    "run": {"steps": UPDATES * ROLLOUT, "learner_threads": 1, "checkpoint_every": 1},
}

# What depends on the weights and the games alone, and so is the same in every run.
SAME_NUMBERS = (
    "train/loss",
    "train/approx_kl",
    "train/learning_rate",
    "selfplay/games",
    "rollout/ep_len_mean",
)


def tiny(*overrides: str) -> TrainConfig:
    """Four updates of tic-tac-toe, in this process, without evaluations."""
    return parse_settings(TrainConfig, apply_overrides(TINY, overrides)).resolved()


def train(
    root: Path,
    *overrides: str,
    callbacks: Sequence[Callback] = (),
    interruption: Interruption | None = None,
    name: str = "run",
    settings: Mapping[str, Any] = TINY,
) -> TrainResult:
    """Train a run from nothing, or from where it stands."""
    config = parse_settings(TrainConfig, apply_overrides(settings, overrides)).resolved()
    path = root / name
    run = RunDirectory.open(path) if path.exists() else RunDirectory.create(root, name, config)
    return Trainer(run, config, callbacks, interruption).train()


class Recorder(Callback):
    """Remembers all that it is told, in order."""

    def __init__(self) -> None:
        self.started: list[Started] = []
        self.updates: list[Update] = []
        self.evaluations: list[Evaluation] = []
        self.saved: list[Saved] = []
        self.ended: list[Ended] = []
        self.notes: list[tuple[str, str]] = []
        self.order: list[tuple[str, int]] = []

    def on_start(self, started: Started) -> None:
        self.started.append(started)
        self.order.append(("start", started.counters.update))

    def on_update(self, update: Update) -> None:
        self.updates.append(update)
        self.order.append(("update", update.counters.update))

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self.evaluations.append(evaluation)
        self.order.append(("evaluation", evaluation.update))

    def on_checkpoint(self, saved: Saved) -> None:
        self.saved.append(saved)
        self.order.append(("checkpoint", saved.update))

    def on_end(self, ended: Ended) -> None:
        self.ended.append(ended)
        self.order.append(("end", ended.counters.update))

    def note(self, message: str, level: str = "info") -> None:
        self.notes.append((level, message))


class After(Callback):
    """Does something after one update, or after each."""

    def __init__(self, do: Callable[[], None], update: int | None = None) -> None:
        self._do, self._update = do, update

    def on_update(self, update: Update) -> None:
        if self._update in (None, update.counters.update):
            self._do()


def raising(error: Exception) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


def checkpoints(run: RunDirectory) -> list[int]:
    """The updates that lie on disk."""
    paths = CheckpointArchive(run.checkpoints, read_only=True).paths()
    return [rank[0] for path in paths if (rank := checkpoint_rank(path.name))]


def curve(run: RunDirectory, name: str) -> list[tuple[int, float]]:
    with RunDatabase(run.database, read_only=True) as database:
        return [(point.update, point.value) for point in database.metric(name)]


def curves(run: RunDirectory) -> dict[str, list[tuple[int, float]]]:
    return {name: curve(run, name) for name in SAME_NUMBERS}


def kill_workers(trainer: Trainer) -> int:
    """SIGKILL for every worker; gives how many there were."""
    workers = [worker.process_id for worker in trainer.parts.manager.get_status().workers]
    for process_id in workers:
        assert process_id is not None
        os.kill(process_id, signal.SIGKILL)
    return len(workers)


def is_running(process_id: int) -> bool:
    """Whether a process is there and not just a zombie."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Sluggish(TicTacToe):
    """Tic-tac-toe in which each move takes as long as this process is told to take for it."""

    name = "sluggish"
    seconds = 0.0

    def play(self, action: int, rng: KeyedRandom) -> None:
        time.sleep(self.seconds)
        super().play(action, rng)


SLUGGISH = "training_for_tests:Sluggish"
