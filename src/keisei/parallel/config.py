"""Settings of parallel collection: what belongs to the experiment, and what only says where it runs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from keisei.config import Rule, Settings
from keisei.machine.cores import usable_cores
from keisei.machine.start_method import StartMethod
from keisei.parallel.backend_names import known_backends, runs_elsewhere
from keisei.policies.seating import Seating
from keisei.ranges import Count, CountOrNone, PositiveTemperature, Seconds

MAX_WORKERS = 512
MAX_TABLES = 4096


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
