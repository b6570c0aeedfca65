"""DQN in one call: ``agent = keisei.train_dqn(n_episodes=20_000, game="connect-four")``.

The call makes an ordinary run of the regime ``dqn``. Only its arguments are those of scripts in which a main process
learns and N workers play episodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from torch import Tensor

from keisei.config import Settings, apply_overrides, parse_settings
from keisei.errors import CheckpointError, ConfigError, RunExistsError
from keisei.evaluation.matches import Player, PlayerLike, play_match
from keisei.evaluation.results import MatchResult
from keisei.experience.collected import CollectedSlab, Experiences
from keisei.experience.replay import ReplayBuffer
from keisei.experience.replayed import ReplaySample, ReplayView
from keisei.games.contract import FloatArray
from keisei.learners.contract import Report
from keisei.machine.cores import usable_cores
from keisei.parallel.config import MAX_WORKERS
from keisei.parallel.deliveries import copy_slab
from keisei.policies.players.finding import RUNS
from keisei.policies.players.inference_policy import InferencePolicy, load_weights
from keisei.policies.trust import trust_settings
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import Checkpoint, check_game, restoring, save_checkpoint
from keisei.runs.directory import RunDirectory, config_digest, run_name
from keisei.runs.state import State
from keisei.runs.state_tensors import model_tensors
from keisei.training.api import Existing, as_assignments, plan_run
from keisei.training.callbacks import Callback
from keisei.training.presets import load_preset, preset_names, run_config
from keisei.training.regimes.dqn import build_buffer, build_learner
from keisei.training.regimes.learner_settings import DQNSettings
from keisei.training.settings import TrainConfig
from keisei.training.wiring import choose_device

__all__ = ["DQNAgent", "train_dqn"]

SPARE_CORES = 2
"""Cores that workers leave to the learner and the system."""
HORIZON = 16
"""Steps of a slab. A table plays whole slabs until it has finished its episodes."""


def train_dqn(
    n_episodes: int = 100_000,
    num_workers: int | None = None,
    episodes_per_batch: int = 4,
    learning_steps_per_batch: int | None = None,
    batch_size: int = 128,
    device: str = "auto",
    game: str = "ludo",
    *,
    buffer_size: int = 100_000,
    seed: int = 0,
    name: str | None = None,
    root: str | Path = "runs",
    existing: Existing = "restart",
    overrides: Iterable[str] = (),
    callbacks: Sequence[Callback] = (),
) -> DQNAgent:
    """Trains an agent by DQN and returns it.

    Each of ``num_workers`` workers (by default all cores but two) finishes ``episodes_per_batch`` episodes. Then the
    learner makes ``learning_steps_per_batch`` gradient steps (by default one for each episode), epsilon falls, and
    workers get the new weights. This is repeated until ``n_episodes`` are finished.

    Other settings are those of the preset of the game, if it has one. ``overrides`` changes them, as in
    ``keisei train --set``. The run is saved in ``root``; a run of the same name is kept under another one.
    """
    given = {
        "n_episodes": n_episodes,
        "num_workers": num_workers,
        "episodes_per_batch": episodes_per_batch,
        "learning_steps_per_batch": learning_steps_per_batch,
        "batch_size": batch_size,
        "buffer_size": buffer_size,
    }
    parse_settings(_Arguments, given, "the arguments of train_dqn")
    workers = max(1, usable_cores() - SPARE_CORES) if num_workers is None else num_workers
    values = {
        "learner.minibatch_size": batch_size,
        "learner.parts": "auto",  # those of a preset are for its own minibatches
        "learner.replay.capacity": buffer_size,
        "learner.replay.learning_steps": "auto"
        if learning_steps_per_batch is None
        else learning_steps_per_batch,
        "learner.replay.learning_starts": batch_size,
        "run.episodes": n_episodes,
        "run.device": device,
        "run.seed": seed,
    }
    settings = _with(_settings_for(game), values | _play_by_episodes(workers, episodes_per_batch))
    settings = apply_overrides(settings, as_assignments(overrides))
    parse_settings(TrainConfig, settings, "the arguments of train_dqn")
    name = name or run_name(f"{game}-train-dqn")
    plan = plan_run(settings, name=name, root=Path(root), existing=existing)
    plan.trainer(callbacks).train()
    return DQNAgent.load(plan.run.path)


_Count = Annotated[int, Field(ge=1)]


class _Arguments(Settings):
    """The numbers that ``train_dqn`` is given, so that a wrong one is named as its caller wrote it."""

    n_episodes: _Count
    num_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None
    episodes_per_batch: _Count
    learning_steps_per_batch: _Count | None
    batch_size: _Count
    buffer_size: _Count

    @model_validator(mode="after")
    def _a_sample_fits(self) -> Self:
        if self.batch_size > self.buffer_size:
            raise ValueError(
                f"batch_size = {self.batch_size} is more than buffer_size = {self.buffer_size}: a sample is drawn from "
                f"the buffer; make the buffer larger or the sample smaller"
            )
        return self


def _settings_for(game: str) -> dict[str, Any]:
    """Gets the settings of the game's preset, or the usual ones, with neither a length nor matches."""
    preset = f"{game}-dqn"
    settings = load_preset(preset).settings if preset in preset_names() else {"learner": {"regime": "dqn"}}
    open_ended: dict[str, Any] = {
        "env.game": game,
        "learner.replay.megabytes": None,
        "evaluation.every": 0,
        "evaluation.opponents": [],
        "run.steps": None,
        "run.minutes": None,
    }
    return _with(settings, open_ended)


def _play_by_episodes(workers: int, episodes: int) -> dict[str, Any]:
    """Makes the settings with which each worker finishes this many episodes in a batch, side by side."""
    return {
        "parallel.num_workers": workers,
        "parallel.tables": workers,
        "parallel.games": episodes,
        "parallel.horizon": HORIZON,
        "parallel.episodes_per_worker": episodes,
    }


def _with(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Sets values by their path, such as ``run.seed``, in a copy of settings."""
    changed = apply_overrides(settings, ())
    for path, value in values.items():
        *sections, last = path.split(".")
        table = changed
        for section in sections:
            table = table.setdefault(section, {})
        table[last] = value
    return changed


class DQNAgent:
    """A network with its target network, its optimiser and a replay of its own."""

    def __init__(self, config: TrainConfig) -> None:
        """``config`` is a configuration of the regime ``dqn``. The weights are new."""
        if not isinstance(config.learner, DQNSettings):
            raise ConfigError(
                f"learner.regime = {config.learner.regime}: a DQN agent learns in regime dqn; take a run of that"
            )
        self.config, self._settings = config.resolved().placed(), config.learner
        self._game = self.config.env.make(batch=1, seed=0)
        self.spec = self._game.spec
        self.learner = build_learner(
            self.config, self._settings, self._game, choose_device(self.config.run.device)
        )
        self.run: RunDirectory | None = None
        """The run that it was loaded from."""
        self._buffer: ReplayBuffer | None = None
        self._update = 0

    @classmethod
    def load(cls, path: str | Path, device: str | None = None) -> DQNAgent:
        """Loads the agent of a run, or one that ``save`` has written. ``device`` replaces the one that it was trained
        on, which this machine may not have."""
        run = RunDirectory.open(Path(path))
        config = run_config(run)
        if device is not None:
            config = config.model_copy(update={"run": config.run.model_copy(update={"device": device})})
        agent = cls(config)
        found = CheckpointArchive(run.checkpoints, read_only=True).latest()
        if found is None:
            raise CheckpointError(f"{run.path} has no checkpoint yet; train it first")
        checkpoint = found.checkpoint
        check_game(checkpoint, agent.spec.name)
        with restoring(checkpoint, "its learner"):
            agent.learner.restore(State(checkpoint.tensors, checkpoint.documents.get("learner")))
        agent.run, agent._update = run, checkpoint.update
        return agent

    def save(self, path: str | Path) -> Path:
        """Writes the agent to a new directory, as a run with one checkpoint: ``keisei play``, ``evaluate`` and
        ``tournament`` take its path."""
        if Path(path).exists():
            raise RunExistsError(
                f"{path} exists; save the agent under another path, or remove that one first"
            )
        run = RunDirectory.create(Path(path).parent, Path(path).name, self.config)
        trust_settings(run, self.config)
        state = self.learner.state()
        checkpoint = Checkpoint(
            game=self.spec.name,
            counters={"update": self._update},
            tensors=state.tensors,
            documents={"learner": state.document},
            config_digest=config_digest(self.config),
        )
        save_checkpoint(run.checkpoints, checkpoint)
        return run.path

    def get_weights(self) -> dict[str, Tensor]:
        """Copies the network's weights, by name."""
        return model_tensors(self.learner.network)

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Takes other weights, for the target network too. If they belong to another network or are not finite, that
        is an error, and nothing changes."""
        for network in (self.learner.network, self.learner.target):
            load_weights(network, weights)

    def policy(self, temperature: float = 0.0, epsilon: float = 0.0) -> InferencePolicy:
        """Makes a policy with copies of the weights. By default it plays the action with the highest value."""
        return InferencePolicy(
            self.spec, self.config.model, self.get_weights(), temperature=temperature, epsilon=epsilon
        )

    def play(
        self, opponent: PlayerLike = "random", games: int = 100, seed: int = 0, temperature: float = 0.0
    ) -> MatchResult:
        """Plays a match. The opponent is a player by name, a run, a checkpoint, or a policy. Runs are looked for
        beside the agent's own."""
        env = self.config.env
        player = Player("agent", self.policy(temperature))
        runs = RUNS if self.run is None else self.run.root
        return play_match(env.game, env.game_options(), player, opponent, games, seed, root=runs)

    def add_trajectory_to_buffer(self, trajectory: Experiences) -> int:
        """Copies collected experience into the agent's replay. Returns the number of decisions that it has now.

        A ``ParallelManager`` with ``agent.config.parallel`` collects it.
        """
        buffer = self._replay()
        buffer.take([_copied(item) for item in trajectory])
        return len(buffer)

    def learn(self, steps: int = 1, progress: float = 0.0) -> Report:
        """Makes gradient steps on samples of the agent's replay."""
        return self.learner.learn(_SomeSteps(self._replay().view(), steps), progress)

    def _replay(self) -> ReplayBuffer:
        """Makes the replay when it is first needed, since it takes much memory."""
        if self._buffer is None:
            self._buffer = build_buffer(self.config, self._settings, self.spec, self.learner)
        return self._buffer


def _copied(item: CollectedSlab) -> CollectedSlab:
    """Copies a slab, whose memory workers will use again."""
    return CollectedSlab(item.record.without_slab(), item.first_game, copy_slab(item.slab))


@dataclass(frozen=True)
class _SomeSteps:
    """A view of a replay on which a given number of steps is due."""

    view: ReplayView
    count: int

    def steps(self) -> int:
        return self.count

    def sample(self, size: int, seed: int, key: int, progress: float = 1.0) -> ReplaySample:
        return self.view.sample(size, seed, key, progress)

    def update_priorities(self, sample: ReplaySample, errors: FloatArray) -> None:
        self.view.update_priorities(sample, errors)
