"""Settings of parallel collection: what belongs to the experiment, and what only says where it runs."""

from __future__ import annotations

import platform
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from keisei.config import Rule, Settings
from keisei.errors import ConfigError
from keisei.games import Game, GameSpec, make_game
from keisei.games.own_files import absolute_name
from keisei.games.registry import DEFAULT_GAME, source_digest, takes_option
from keisei.machine.cores import usable_cores
from keisei.machine.start_method import StartMethod
from keisei.parallel.backends.registry import known_backends, runs_elsewhere
from keisei.policies.seating import Seating
from keisei.ranges import Count, CountOrNone, PositiveShare, PositiveTemperature, Seconds

MAX_WORKERS = 512
MAX_TABLES = 4096
Reward: TypeAlias = Annotated[float, Field(ge=-1e9, le=1e9)]
"""Rewards, returns and their squares are numbers of 32 bits."""


class EnvConfig(Settings):
    """What is played."""

    game: str = DEFAULT_GAME
    """A name that ``make_game`` knows, such as shogi, module:Class or path.py:Class."""
    source_digest: Annotated[str | None, Rule.ANNOUNCED] = None
    """The digest of the game's file, if it is named as path.py:Class. Keisei fills it in, to notice
    when the file changes."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further options of the game, such as ``max_plies``, where games are cut off."""
    board_size: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    """The size of the board. It may be left out; if it is given, it must be the size that the game has."""
    discount: Annotated[PositiveShare, Rule.ANNOUNCED] = 0.99
    """What a reward is worth one ply earlier. Learners use it, and so do games whose rewards depend on it."""
    reward_structure: Annotated[dict[str, Reward], Rule.ANNOUNCED] = Field(default_factory=dict)
    """Rewards by name, as options of the game: win, loss, draw and others."""

    @model_validator(mode="after")
    def _one_discount(self) -> EnvConfig:
        if "discount" in self.reward_structure or "discount" in self.options:
            raise ValueError("discount has one place for games and learners: write env.discount")
        return self

    def game_options(self) -> dict[str, Any]:
        """What ``make_game`` is given."""
        known = {"discount": self.discount} if takes_option(self.game, "discount") else {}
        return known | self.reward_structure | self.options

    def make(self, *, batch: int, seed: int, first_game: int = 0) -> Game:
        game = make_game(self.game, batch=batch, seed=seed, first_game=first_game, **self.game_options())
        self._check_board(game.spec)
        return game

    def located(self) -> EnvConfig:
        """The same settings, with the whole path of the game's file and the digest of its content."""
        name = absolute_name(self.game)
        return self.model_copy(update={"game": name, "source_digest": source_digest(name)})

    def check_source(self) -> None:
        """Refuses to play by a file that is not the one by which the run was started."""
        found = source_digest(self.game) if self.source_digest is not None else None
        if found != self.source_digest:
            raise ConfigError(
                f"{self.game.rpartition(':')[0]} on {platform.node()} is not the file that this run plays by (its "
                f"digest is {found}, not {self.source_digest}). Every machine needs the same file. If you have changed "
                f"it, end the program that has imported the old one, and resume the run"
            )

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


class TableOverride(Settings):
    """Settings of one table that differ from those of the others."""

    temperature: PositiveTemperature | None = None
    """The temperature of this table; null takes the one of all tables."""
    epsilon: Annotated[float, Field(ge=0, le=1)] | None = None
    """The share of random decisions at this table; null takes the one of all tables."""
    seating: Seating | None = None
    """Who plays at this table; null takes the seating of all tables."""


class ParallelConfig(Settings):
    """How games are played at once. A table is a fixed number of games. Workers play the tables. Settings that are free
    say where and how that happens: they change no bit of a synchronous run."""

    on_change: ClassVar[Rule] = Rule.ANNOUNCED

    tables: Annotated[Annotated[int, Field(ge=1, le=MAX_TABLES)] | None, Rule.NEVER] = None
    """The number of tables. Null takes one table for each worker; a run takes 4."""
    games: Annotated[int, Field(ge=1, le=1 << 16), Rule.NEVER] = 64
    """Games of one table, which are played side by side. More games make larger batches for the network."""
    horizon: Annotated[int, Field(ge=1, le=1 << 20), Rule.NEVER] = 64
    """Steps of a table that make up one slab. An update looks this far ahead."""
    episodes_per_worker: CountOrNone = 0
    """Collect until each table has finished this many games. 0 collects by steps instead."""
    model_sync_interval: Count = 1
    """``sync_model_to_workers(step=…)`` publishes the weights once in this many steps."""
    worker_reset_interval: CountOrNone = 0
    """Restart all games after this many collected transitions. 0 never restarts them."""
    compression_enabled: bool = False
    """Compress the weights on their way to the workers."""
    compression: Literal["half", "lossless"] = "lossless"
    """The kind of compression: half precision, or without loss."""
    mode: Literal["sync", "async"] = "sync"
    """sync: workers wait while the learner learns. async: workers never wait."""
    max_policy_lag: CountOrNone | None = None
    """Drop experience whose weights are more than this many versions old, and count it. Null keeps all."""
    inference: Literal["worker", "central"] = "worker"
    """Where the network runs: in each worker, or in the process of the learner (central)."""
    inference_places: Annotated[int, Field(ge=1, le=1024)] = 1
    """Tables that share one forward pass of central inference. More than one is for graphics cards."""
    temperature: PositiveTemperature = 1.0
    """The temperature of the distribution that actions are drawn from."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of decisions that are random."""
    seating: Seating = Seating()
    """Who plays against the learner, and how often. By default the learner plays in every seat."""
    table_overrides: dict[Annotated[int, Field(ge=0, lt=MAX_TABLES)], TableOverride] = Field(
        default_factory=dict
    )
    """Settings of single tables, by the number of the table."""

    backend: Annotated[str, Rule.FREE] = "process"
    """Where workers run: inline (in this very thread), thread, process, ray (several machines), or a backend of your
    own."""
    address: Annotated[str, Rule.FREE] = "local"
    """The Ray cluster: ``local`` starts one on this machine for this run, ``auto`` finds the one that runs here, and
    ``host:port`` names one. Other backends do not use it."""
    worker_cpus: Annotated[float, Field(ge=1e-4, le=1e6), Rule.FREE] = 1.0
    """Processors that Ray reserves for a worker."""
    worker_gpus: Annotated[float, Field(ge=0, le=1e6), Rule.FREE] = 0.0
    """Graphics cards that Ray reserves for a worker, or a share of one, such as 0.25."""
    compress_slabs: Annotated[bool, Rule.FREE] = False
    """Compress slabs on their way from a Ray worker, without loss. It pays on networks below 1 Gbit/s."""
    num_workers: Annotated[Annotated[int, Field(ge=1, le=MAX_WORKERS)] | Literal["auto"], Rule.FREE] = "auto"
    """How many workers play. ``auto`` takes one for each core, with Ray for each core of the cluster. The number
    changes no result."""
    queue_maxsize: Annotated[int, Field(ge=1, le=4096), Rule.FREE] = 4
    """Slabs of each table: how far it may be ahead of the learner. A table with a full queue waits."""
    timeout: Annotated[Seconds, Rule.FREE] = 30.0
    """``collect_experiences`` raises an error after this many seconds without progress."""
    hang_timeout: Annotated[Seconds, Rule.FREE] = 30.0
    """A worker that makes no step for this many seconds counts as hung and is replaced."""
    use_shared_memory: Annotated[bool, Rule.FREE] = True
    """Hand out views of the slabs, which are valid until the next collection. False hands out copies."""
    scaling: Annotated[Literal["fixed", "auto"], Rule.FREE] = "fixed"
    """``auto`` adds and removes workers by load, within min_workers and max_workers."""
    min_workers: Annotated[int, Field(ge=1, le=MAX_WORKERS), Rule.FREE] = 1
    """The fewest workers with ``scaling: auto``."""
    max_workers: Annotated[Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None, Rule.FREE] = None
    """The most workers with ``scaling: auto``. Null means one for each core."""
    start_method: Annotated[StartMethod, Rule.FREE] = "auto"
    """How processes start."""
    max_failures: Annotated[Count, Rule.FREE] = 5
    """A worker that fails this often within a minute, without finishing a slab, gets no successor."""
    verify_checksums: Annotated[bool, Rule.FREE] = True
    """Check the checksum of each slab when it arrives."""

    @field_validator("backend")
    @classmethod
    def _is_known(cls, backend: str) -> str:
        if backend not in known_backends():
            raise ValueError(f"must be one of {', '.join(known_backends())}")
        return backend

    @model_validator(mode="after")
    def _consistent(self) -> ParallelConfig:
        if self.max_workers is not None and self.max_workers < self.min_workers:
            raise ValueError(f"max_workers = {self.max_workers} is below min_workers = {self.min_workers}")
        if self.inference == "central" and runs_elsewhere(self.backend):
            raise ValueError(
                f"inference = central asks the learner's machine in every step, and workers of backend = "
                f"{self.backend} may run on others; take inference = worker"
            )
        return self

    @property
    def workers(self) -> int:
        return usable_cores() if self.num_workers == "auto" else self.num_workers

    @property
    def most_workers(self) -> int:
        """The highest number of workers that scaling by load may reach."""
        return max(self.workers, self.max_workers or usable_cores())

    @property
    def table_count(self) -> int:
        """The tables of a manager with these settings."""
        return self.workers if self.tables is None else self.tables

    def override_of(self, table: int) -> TableOverride:
        return self.table_overrides.get(table, TableOverride())
