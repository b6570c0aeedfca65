"""Accepts settings under the names that other parallel collectors use, and translates them.

In those collectors, a worker owns its games. Here, tables own the games and workers only play them. So W workers with
n games each become W tables of n games.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.games.env_config import EnvConfig
from keisei.parallel.config import ParallelConfig, TableOverride

_TWICE = "{0} and {1} are two ways to say one thing; leave out {0}"


class _GivenEnv(EnvConfig):
    max_moves: Annotated[int, Field(ge=1)] | None = None
    """In Keisei: ``options.max_plies``."""

    @model_validator(mode="after")
    def _said_once(self) -> _GivenEnv:
        if self.max_moves is not None and "max_plies" in self.options:
            raise ValueError(_TWICE.format("max_moves", "options.max_plies"))
        return self


class _GivenParallel(ParallelConfig):
    enabled: bool = True
    """In Keisei, False is ``backend: inline``."""
    use_threads: bool = False
    """In Keisei: ``backend: thread``."""
    games_per_worker: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    """In Keisei: ``games``, with one table for each worker."""
    experience_batch_size: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """In Keisei: ``horizon`` times ``games``."""
    worker_timeout: Annotated[float, Field(gt=0)] | None = None
    """In Keisei: ``hang_timeout``."""
    max_game_length: Annotated[int, Field(ge=1)] | None = None
    """In Keisei: ``options.max_plies`` of the game."""
    worker_overrides: dict[int, TableOverride] = Field(default_factory=dict)
    """In Keisei: ``table_overrides``."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """In Keisei: an argument of the manager."""

    @model_validator(mode="after")
    def _said_once(self) -> _GivenParallel:
        given = set(self.model_fields_set)
        if not self.use_threads or self.backend == "thread":
            given.discard("use_threads")
        twice = [
            _TWICE.format(theirs, ours)
            for theirs, ours in (
                ("games_per_worker", "tables"),
                ("games_per_worker", "games"),
                ("experience_batch_size", "horizon"),
                ("worker_overrides", "table_overrides"),
                ("worker_timeout", "hang_timeout"),
                ("use_threads", "backend"),
            )
            if theirs in given and ours in given
        ]
        if twice:
            raise ValueError("; ".join(twice))
        return self

    def translated(self) -> ParallelConfig:
        ours = {
            name: getattr(self, name) for name in ParallelConfig.model_fields if name in self.model_fields_set
        }
        if not self.enabled:
            ours["backend"] = "inline"
        elif self.use_threads:
            ours["backend"] = "thread"
        if self.games_per_worker is not None:
            ours["games"] = self.games_per_worker
        if self.experience_batch_size is not None:
            ours["horizon"] = -(-self.experience_batch_size // ours.get("games", self.games))
        if self.worker_timeout is not None:
            ours["hang_timeout"] = self.worker_timeout
        if self.worker_overrides:
            ours["table_overrides"] = self.worker_overrides
        return parse_settings(ParallelConfig, ours, "parallel_config")


def read_settings(
    env: EnvConfig | Mapping[str, Any], parallel: ParallelConfig | Mapping[str, Any], seed: int
) -> tuple[EnvConfig, ParallelConfig, int]:
    """Reads typed settings and the seed. It accepts typed or plain settings, under Keisei's names or the other ones."""
    longest = None
    if not isinstance(parallel, ParallelConfig):
        given = parse_settings(_GivenParallel, parallel, "parallel_config")
        parallel, longest = given.translated(), given.max_game_length
        seed = _one_seed(given, seed)
    if not isinstance(env, EnvConfig):
        given_env = parse_settings(_GivenEnv, env, "env_config")
        longest = given_env.max_moves or longest
        names = EnvConfig.model_fields.keys() & given_env.model_fields_set
        env = EnvConfig(**{name: getattr(given_env, name) for name in names})
    if longest is not None:
        env = env.model_copy(update={"options": {"max_plies": longest} | env.options})
    return env, parallel, seed


def _one_seed(given: _GivenParallel, seed: int) -> int:
    if "seed" not in given.model_fields_set:
        return seed
    if seed not in (0, given.seed):
        raise ConfigError(
            f"parallel_config: seed = {given.seed}, but the manager was given {seed}; leave out the setting"
        )
    return given.seed
