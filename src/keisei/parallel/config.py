"""Settings of parallel collection. ``docs/parallel.md`` has a table from other systems' names to these."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.errors import ConfigError
from keisei.games import Game, GameSpec, make_game
from keisei.games.registry import DEFAULT_GAME, takes_option
from keisei.policies.seating import Seating

MAX_WORKERS = 512


def usable_cores() -> int:
    """Cores that this process may use, which in a container are often fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class EnvConfig(Settings):
    """What is played."""

    game: str = DEFAULT_GAME
    """A name that ``make_game`` knows."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further options of the game."""
    board_size: Annotated[int, Field(ge=1)] | None = None
    """The size of the board, for those who like to say it; it must be the game's own."""
    max_moves: Annotated[int, Field(ge=1)] | None = None
    """Truncate games after so many plies."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.99
    """What a reward is worth one ply earlier. Learners use it, and so do games whose rewards depend on it."""
    reward_structure: dict[str, float] = Field(default_factory=dict)
    """Rewards by name, as options of the game: for Shogi win, loss, draw, ply_cost, material."""

    @model_validator(mode="after")
    def _one_discount(self) -> EnvConfig:
        if "discount" in self.reward_structure or "discount" in self.options:
            raise ValueError("discount has one place for games and learners: write env.discount")
        return self

    def game_options(self, max_game_length: int | None = None) -> dict[str, Any]:
        limits = {"max_plies": self.max_moves or max_game_length}
        known: dict[str, Any] = {name: value for name, value in limits.items() if value}
        if takes_option(self.game, "discount"):
            known["discount"] = self.discount
        return known | self.reward_structure | self.options

    def make(self, *, batch: int, seed: int, first_game: int = 0, max_game_length: int | None = None) -> Game:
        options = self.game_options(max_game_length)
        game = make_game(self.game, batch=batch, seed=seed, first_game=first_game, **options)
        self._check_board(game.spec)
        return game

    def _check_board(self, spec: GameSpec) -> None:
        """A board's size is the last axis of its planes; other observations have no board to speak of."""
        if self.board_size is None:
            return
        shape = spec.observation.shape
        if len(shape) != 3:
            raise ConfigError(
                f"env_config: board_size = {self.board_size}, but {spec.name} has no board (its observations have "
                f"shape {shape}); leave it out"
            )
        if self.board_size != shape[-1]:
            raise ConfigError(
                f"env_config: board_size = {self.board_size}, but the board of {spec.name} has size {shape[-1]}; "
                f"write that, or leave it out"
            )


class WorkerOverride(Settings):
    """What one worker does otherwise than the others."""

    temperature: Annotated[float, Field(gt=0)] | None = None
    epsilon: Annotated[float, Field(ge=0, le=1)] | None = None
    seating: Seating | None = None


class ParallelConfig(Settings):
    """How games are played at once."""

    enabled: bool = True
    """False plays everything in this process, by the same code (the inline backend)."""
    backend: Literal["inline", "thread", "process"] = "process"
    use_threads: bool = False
    """A short way to say ``backend: thread``."""
    num_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | Literal["auto"] = "auto"
    """How many workers; ``auto`` takes one for each core."""
    games_per_worker: Annotated[int, Field(ge=1, le=1 << 16)] = 64
    """Games that a worker plays side by side."""
    max_game_length: Annotated[int, Field(ge=1)] | None = None
    """Truncate games after so many plies, where the game's own settings say nothing."""
    experience_batch_size: Annotated[int, Field(ge=1, le=1 << 24)] = 4096
    """Transitions that a worker hands over at once: the size of a slab."""
    episodes_per_worker: Annotated[int, Field(ge=0)] = 0
    """Collect until each worker has finished so many games, whatever the number of steps; 0 counts steps."""
    model_sync_interval: Annotated[int, Field(ge=1)] = 1
    """``sync_model_to_workers(step=…)`` publishes the weights at every so many steps."""
    worker_reset_interval: Annotated[int, Field(ge=0)] = 0
    """Start all games anew after so many collected transitions; 0 never does."""
    timeout: Annotated[float, Field(gt=0)] = 30.0
    """Seconds without any progress after which ``collect_experiences`` gives up."""
    hang_timeout: Annotated[float, Field(gt=0)] = 30.0
    """Seconds without a step after which a worker counts as hung and is replaced."""
    queue_maxsize: Annotated[int, Field(ge=1, le=4096)] = 4
    """Slabs of each worker: what it may be ahead of the learner. A full queue makes it wait."""
    use_shared_memory: bool = True
    """Hand out views of the slabs, valid until the next collection. False hands out copies that stay."""
    compression_enabled: bool = False
    compression: Literal["half", "lossless"] = "lossless"
    """How weights are compressed where ``compression_enabled``."""
    mode: Literal["sync", "async"] = "sync"
    """In lock-step with the learner, or without ever waiting for it."""
    max_policy_lag: Annotated[int, Field(ge=0)] | None = None
    """Drop (and count) experience whose weights are more versions old than this."""
    inference: Literal["worker", "central"] = "worker"
    """Where policies run: in each worker, or batched in the learner's process."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Of the distribution that actions are drawn from."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of decisions that are random."""
    seating: Seating = Seating()
    """Who plays against the learner, and how often; by default the learner sits in every seat."""
    worker_overrides: dict[int, WorkerOverride] = Field(default_factory=dict)
    """By worker id: what that worker does otherwise."""
    scaling: Literal["fixed", "auto"] = "fixed"
    """``auto`` adds and removes workers by load, within min_workers and max_workers."""
    min_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] = 1
    max_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None = None
    """None stands for one for each core."""
    start_method: Literal["auto", "forkserver", "spawn"] = "auto"
    max_failures: Annotated[int, Field(ge=1)] = 5
    """A worker that fails so often in a minute on the same slab is quarantined."""
    verify_checksums: bool = True
    """Check each slab when it arrives."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0

    @model_validator(mode="after")
    def _consistent(self) -> ParallelConfig:
        if self.max_workers is not None and self.max_workers < self.min_workers:
            raise ValueError(f"max_workers = {self.max_workers} is below min_workers = {self.min_workers}")
        return self

    @property
    def placement(self) -> Literal["inline", "thread", "process"]:
        if not self.enabled:
            return "inline"
        return "thread" if self.use_threads else self.backend

    @property
    def workers(self) -> int:
        return usable_cores() if self.num_workers == "auto" else self.num_workers

    @property
    def most_workers(self) -> int:
        """The highest number of workers that scaling by load may reach."""
        return max(self.workers, self.max_workers or usable_cores())

    @property
    def slab_steps(self) -> int:
        return max(1, -(-self.experience_batch_size // self.games_per_worker))

    def override_of(self, worker: int) -> WorkerOverride:
        return self.worker_overrides.get(worker, WorkerOverride())
