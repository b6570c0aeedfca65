"""Does training end with the same weights, bit for bit, with any backend, any number of workers, and any
interruptions?

``verify_training`` trains one run in several ways, each from nothing in its own directory, and compares.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from keisei.config import parse_settings
from keisei.errors import ConfigError, RunError
from keisei.games.env_config import EnvConfig
from keisei.games.registry import DEFAULT_GAME
from keisei.machine.new_processes import deaf_to_terminal, end_with_parent
from keisei.parallel.config import ParallelConfig
from keisei.parallel.parallel_manager import ParallelManager
from keisei.policies.model_config import ModelConfig
from keisei.proving.disturbance import Disturber
from keisei.proving.same_experience import BACKENDS, QUICK_LEAGUE, Observer
from keisei.runs.directory import RunDirectory
from keisei.runs.state_tensors import weights_digest
from keisei.training.callbacks import Callback
from keisei.training.events import Started, Update
from keisei.training.interruption import Interruption
from keisei.training.regimes.learner_settings import DQNSettings, IndependentSettings, PPOSettings
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import EvaluationSettings, RunSettings, TrainConfig
from keisei.training.trainer import Trainer, TrainResult
from keisei.training.wiring import choose_device

__all__ = ["TrainedRun", "TrainingReport", "small_config", "verify_training"]

TRAINER_KILLS = 3
"""Kills of the trainer. Each needs a new process, which takes some seconds."""
HORIZON = 64
"""The horizon of a small run. An update then lasts long enough to kill workers in it."""


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """One way to train, and its result."""

    name: str
    workers: str
    """The numbers of workers."""
    updates: int
    transitions: int
    seconds: float
    digest: str
    """The digest of the final weights, as ``keisei train --deterministic-digest`` prints it."""
    times: int = 0
    """The number of disturbances, such as stops or kills."""

    @property
    def title(self) -> str:
        return f"{self.name} with {self.workers}"


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """All runs. The first one is undisturbed, and the reference."""

    runs: tuple[TrainedRun, ...]

    @property
    def differences(self) -> list[str]:
        """The runs that ended with other weights."""
        return [run.title for run in self.runs if run.digest != self.runs[0].digest]

    @property
    def same(self) -> bool:
        return not self.differences


def small_config(
    game: str = DEFAULT_GAME, tables: int = 3, games: int = 16, seed: int = 0, league: bool = False
) -> TrainConfig:
    """Makes a run whose updates take a fraction of a second."""
    return TrainConfig(
        env=EnvConfig(game=game),
        model=ModelConfig(network="mlp", hidden_dim=64),
        learner=PPOSettings(epochs=2, minibatch_size=256, parts=2),
        parallel=ParallelConfig(tables=tables, games=games, horizon=HORIZON),
        league=QUICK_LEAGUE.model_copy(update={"enabled": league}),
        run=RunSettings(seed=seed),
    )


def verify_training(
    config: TrainConfig,
    *,
    backends: Sequence[str] = BACKENDS,
    workers: Sequence[int] = (1, 2, 3),
    updates: int = 4,
    kills: int = 4,
    observe: Observer = lambda name, done, total: None,
) -> TrainingReport:
    """Trains for some updates in several ways: with each number of workers in each backend, and as many threads of
    the learner; with ``kills`` workers killed; while workers come and go; stopped after each update and resumed
    with another number of workers; and with the trainer itself killed. The last backend is the one that is disturbed.
    ``observe`` is called after each update. A run that has learned nothing would prove nothing, and is an error."""
    with tempfile.TemporaryDirectory(prefix="keisei-verify-") as root:
        ways = _Ways(_comparable(config, updates), backends[-1], tuple(workers), updates, Path(root), observe)
        runs = [ways.undisturbed(backend, count) for backend in backends for count in workers]
        if runs[0].digest == ways.untrained_digest():
            raise ConfigError(
                f"after {updates} updates the weights are still those of the start, so equal weights would prove "
                f"nothing; let the run learn sooner (learning_starts, n_step, learning_rate), or take more updates"
            )
        runs += [
            ways.with_workers_killed(kills),
            ways.with_changing_crew(),
            ways.stopped_after_each_update(),
            ways.with_trainer_killed(),
        ]
    return TrainingReport(tuple(runs))


def _comparable(config: TrainConfig, updates: int) -> TrainConfig:
    """Makes the settings that all ways to train share: a length, a checkpoint after each update, and no matches, since
    these do not change the weights."""
    if config.asynchronous or config.parallel.scaling == "auto":
        raise ConfigError(
            f"parallel.mode = {config.parallel.mode}, parallel.scaling = {config.parallel.scaling}: a run gives the "
            f"same weights again only with mode sync and scaling fixed; set both"
        )
    run = config.run.model_copy(
        update={
            "steps": updates * config.rollout * _rows_at_once(config),
            "minutes": None,
            "episodes": None,
            "stop_at": {},
            "checkpoint_every": 1,
        }
    )
    evaluation = EvaluationSettings(every=0, opponents=())
    learner = config.learner
    if isinstance(learner, DQNSettings | IndependentSettings):
        # A replay that is not saved fills again, and nothing is learned while it fills.
        starts = min(learner.replay.learning_starts, config.rollout)
        replay = learner.replay.model_copy(update={"save_replay": True, "learning_starts": starts})
        learner = learner.model_copy(update={"replay": replay})
    return config.model_copy(update={"run": run, "evaluation": evaluation, "learner": learner}).resolved()


def _rows_at_once(config: TrainConfig) -> int:
    """Counts the seats of a game that act in one step."""
    spec = config.env.make(batch=1, seed=0).spec
    return spec.seats if spec.simultaneous else 1


class _Ways:
    """The ways to train. Each makes its own run below ``root``."""

    def __init__(
        self,
        config: TrainConfig,
        backend: str,
        workers: tuple[int, ...],
        updates: int,
        root: Path,
        observe: Observer,
    ) -> None:
        self._config, self._backend, self._workers = config, backend, workers
        self._updates, self._root = updates, root
        self._observe = observe
        self._chance = random.Random(config.run.seed)
        self._training_seconds = 0.0
        """Seconds of the last undisturbed run; disturbances of the others come within this time."""

    def untrained_digest(self) -> str:
        """Computes the digest of the weights that every run starts with."""
        config = self._config.placed()
        game = config.env.make(batch=1, seed=0)
        learner = regime_of(config).build_learner(
            config, config.learner, game, choose_device(config.run.device)
        )
        return weights_digest(learner.state().tensors["model"])

    def undisturbed(self, backend: str, workers: int) -> TrainedRun:
        title = f"{backend}, {workers}"
        run, config, began = self._begin(title, workers, backend)
        result = Trainer(run, config, [self._watching(title)]).train()
        self._training_seconds = result.counters.seconds
        return _summary(backend, str(workers), result, began)

    def with_workers_killed(self, kills: int) -> TrainedRun:
        name, every, workers = "workers killed", self._training_seconds / (kills + 1), max(self._workers)
        run, config, began = self._begin(name, workers)
        with ExitStack() as stack:
            disturbing = _Disturbing(stack, lambda: trainer.parts.manager, kills, every, config.run.seed)
            trainer = Trainer(run, config, [disturbing, self._watching(name)])
            result = trainer.train()
        return _summary(name, str(workers), result, began, disturbing.killed)

    def with_changing_crew(self) -> TrainedRun:
        """Adds a worker after the first update, and removes the first one after the second."""
        name = "crew changes"
        run, config, began = self._begin(name, 2)

        def change(update: Update) -> None:
            if update.counters.update == 1:
                trainer.parts.manager.add_workers()
            if update.counters.update == 2:
                trainer.parts.manager.remove_workers([0])

        trainer = Trainer(run, config, [self._watching(name), _Calling(change)])
        return _summary(name, "2, 3, 2", trainer.train(), began)

    def stopped_after_each_update(self) -> TrainedRun:
        """Stops after each update, and resumes with another number of workers."""
        name = "stopped"
        run, config, began = self._begin(name, self._workers[0])
        stops = 0
        while (result := self._train_an_update(run, config, name)).outcome == "interrupted":
            stops += 1
            config = _placed(config, self._workers[stops % len(self._workers)], self._backend)
        return _summary(name, ", ".join(map(str, self._workers)), result, began, stops)

    def _train_an_update(self, run: RunDirectory, config: TrainConfig, name: str) -> TrainResult:
        interruption = Interruption()
        callbacks = [self._watching(name), _Calling(lambda update: interruption.request())]
        return Trainer(run, config, callbacks, interruption).train()

    def with_trainer_killed(self) -> TrainedRun:
        """Kills the trainer at random moments, several times; the last one finishes undisturbed."""
        name, latest, workers = (
            "trainer killed",
            2 * self._training_seconds / self._updates,
            max(self._workers),
        )
        run, config, began = self._begin(name, workers)
        kills = 0
        while kills < TRAINER_KILLS and _killed(run, self._chance.uniform(0, latest)):
            kills += 1
        result = Trainer(run, config, [self._watching(name)]).train()
        return _summary(name, str(workers), result, began, kills)

    def _begin(
        self, name: str, workers: int, backend: str | None = None
    ) -> tuple[RunDirectory, TrainConfig, float]:
        config = _placed(self._config, workers, backend or self._backend)
        self._observe(name, 0, self._updates)
        directory = name.replace(", ", "-").replace(" ", "-")
        return RunDirectory.create(self._root, directory, config), config, time.monotonic()

    def _watching(self, name: str) -> Callback:
        return _Calling(lambda update: self._observe(name, update.counters.update, self._updates))


def _placed(config: TrainConfig, workers: int, backend: str) -> TrainConfig:
    """Makes the same experiment with this many workers, and as many threads of the learner."""
    parallel = config.parallel.model_copy(update={"backend": backend, "num_workers": workers})
    run = config.run.model_copy(update={"learner_threads": workers})
    return config.model_copy(update={"parallel": parallel, "run": run})


class _Calling(Callback):
    """Calls a function after each update."""

    def __init__(self, call: Callable[[Update], None]) -> None:
        self._call = call

    def on_update(self, update: Update) -> None:
        self._call(update)


class _Disturbing(Callback):
    """Kills workers from the start to the last update; ``stack`` ends it if the training fails before."""

    def __init__(
        self, stack: ExitStack, manager: Callable[[], ParallelManager], kills: int, every: float, seed: int
    ) -> None:
        self._stack, self._manager = stack, manager
        self._kills, self._every, self._seed = kills, every, seed
        self.killed = 0

    def on_start(self, started: Started) -> None:
        self._disturber = self._stack.enter_context(
            Disturber(
                self._manager().workers,
                self._manager().tables,
                every=self._every,
                limit=self._kills,
                seed=self._seed,
            )
        )

    def on_update(self, update: Update) -> None:
        self.killed = self._disturber.toll.kills
        if update.progress >= 1:
            self._stack.close()


def _summary(name: str, workers: str, result: TrainResult, began: float, times: int = 0) -> TrainedRun:
    counters, seconds = result.counters, time.monotonic() - began
    return TrainedRun(name, workers, counters.update, counters.transitions, seconds, result.digest, times)


def _killed(run: RunDirectory, seconds: float) -> bool:
    """Lets a process train a run, and kills it some time after it has begun; False if it had finished before."""
    # A new interpreter, since this process has threads, and a fork is not safe.
    context: Any = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_train_apart, args=(run, theirs), name="keisei-trainer")
    with deaf_to_terminal():
        process.start()
    theirs.close()
    try:
        process.join(seconds if _has_begun(ours) else None)
    finally:
        process.kill()
        process.join()
        ours.close()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RunError(
            f"training in a process of its own ended unexpectedly, with exit code {process.exitcode}"
        )
    return bool(process.exitcode)


def _has_begun(connection: Connection) -> bool:
    try:
        return connection.recv_bytes() == b"begun"
    except EOFError:
        return False


def _train_apart(run: RunDirectory, connection: Connection) -> None:
    """The main function of a trainer that is to be killed."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, and with it this process
    Trainer(run, parse_settings(TrainConfig, run.config()), [_Telling(connection)]).train()


class _Telling(Callback):
    """Signals that a trainer in another process has begun."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def on_start(self, started: Started) -> None:
        self._connection.send_bytes(b"begun")
