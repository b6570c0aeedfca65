"""The settings of a whole run, as one tree: the game, the network, the learner, and the length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from keisei.config import Rule, Settings
from keisei.errors import ConfigError
from keisei.games.contract import GameSpec
from keisei.games.env_config import EnvConfig
from keisei.learners.parts import fitting_parts
from keisei.machine.cores import usable_cores
from keisei.parallel.backend_names import runs_elsewhere
from keisei.parallel.config import ParallelConfig
from keisei.policies.model_config import ModelConfig
from keisei.ranges import (
    MAX_GAMES,
    MAX_MINUTES,
    MAX_OPENING,
    MAX_SEED,
    Count,
    CountOrNone,
    PositiveShare,
    Temperature,
)
from keisei.training.league.settings import LeagueSettings
from keisei.training.regimes.learner_settings import LearnerSettings, PPOSettings

MAX_THREADS = 1024


class EvaluationSettings(Settings):
    """Matches that are played during training."""

    on_change: ClassVar[Rule] = Rule.FREE

    every: CountOrNone = 200_000
    """Transitions between two evaluations; 0 evaluates only at the end. A run that is too short for two of them is
    evaluated after a tenth, a quarter, half and three quarters of it too."""
    games: Annotated[int, Field(ge=2, le=MAX_GAMES, multiple_of=2)] = 40
    """Games in each match; an even number, since players change seats. In games of three seats and more it is rounded
    up, so that the learner has each seat equally often."""
    opponents: tuple[str, ...] = ("random",)
    """Players that the learner plays against: random, greedy, heuristic, search:DEPTH, a run or a checkpoint."""
    gate: Annotated[float, Field(ge=0.5, le=1)] = 0.55
    """The newest weights become ``best`` if they score at least this, and more than half, against the best so far. The
    score is the share of comparisons won: with the opponent in a game of two, with each seat of the opponent in
    others. In 40 games, weights that are as good pass 0.55 in 32 of 100 cases, and 0.65 in 4; more games err less."""
    temperature: Temperature = 0.0
    """Temperature of the learner in these matches; 0 takes the best action."""
    opening_plies: Annotated[int, Field(ge=0, le=MAX_OPENING)] | None = None
    """Random plies at the start of games, the same in each seat of the learner; null takes a number that suits the
    game."""
    records: Annotated[int, Field(ge=0, le=MAX_GAMES)] = 2
    """Games of each match that are kept, to be replayed; as records too if the game has a format (Shogi: KIF)."""


class RunSettings(Settings):
    """How long a run lasts, where it learns, and what it saves."""

    on_change: ClassVar[Rule] = Rule.FREE

    steps: Count | None = 1_000_000
    """Transitions to learn from; null sets no limit. Schedules run over them."""
    minutes: Annotated[float, Field(ge=1e-6, le=MAX_MINUTES)] | None = None
    """Minutes of training after which the run stops; null sets no limit. Schedules follow the clock or the
    transitions, whichever is further along. A run that the clock ends cannot be repeated exactly."""
    episodes: Count | None = None
    """Games to finish, after which the run stops; null sets no limit. Schedules follow what is furthest along."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED), Rule.NEVER] = 0
    """The seed of all randomness: games, actions, first weights and the order of minibatches."""
    learner_threads: Annotated[int, Field(ge=1, le=MAX_THREADS)] | Literal["auto"] = "auto"
    """Threads of the learner. They change no result, and more than ``learner.parts`` are not used. ``auto`` takes all
    cores, or in asynchronous mode those that the workers leave free."""
    device: Annotated[str, Field(max_length=64)] = "auto"
    """Where the learner runs: cpu, cuda, cuda:1, mps. ``auto`` takes CUDA if it is available, else the CPU."""
    mixed_precision: Annotated[bool, Rule.ANNOUNCED] = False
    """Learn in half precision where that is safe. Needs CUDA with bfloat16; elsewhere a warning says
    that the learner keeps full precision."""
    compile: Annotated[bool, Rule.ANNOUNCED] = False
    """Compile the learner's network with ``torch.compile``, if that works here."""
    sync: Annotated[Literal["every", "adaptive"], Rule.ANNOUNCED] = "every"
    """When workers get new weights: after every update, or, in asynchronous runs, when the policy has changed
    enough (adaptive)."""
    checkpoint_minutes: Annotated[float, Field(ge=0, le=MAX_MINUTES)] = 5.0
    """Minutes between two checkpoints, at most; 0 writes one after every update. A young run is saved more often: after
    10 and 30 seconds, and after 1, 2 and 5 minutes."""
    checkpoint_every: Count | None = None
    """Updates between two checkpoints, at most; null counts only minutes."""
    keep: Count = 3
    """Number of recent checkpoints to keep, besides milestones and the best."""
    milestone_every: Count | None = None
    """Every checkpoint whose update is a multiple of this is kept; null keeps no milestones."""
    stop_at: dict[str, PositiveShare] = Field(default_factory=dict)
    """Stop when an evaluation against an opponent reaches this score, such as ``{random: 0.99}``."""


LENGTH = ("steps", "minutes", "episodes")
"""The settings of ``run`` that limit its length. A file that sets one of them decides all three."""
USUAL_TABLES = 4
BUSY_ENOUGH = 0.95


class TrainConfig(Settings):
    """All settings of a run. ``keisei config PRESET`` prints them."""

    elsewhere: ClassVar[Mapping[str, str]] = {"parallel.seed": "run.seed"}

    env: EnvConfig = EnvConfig()
    model: ModelConfig = ModelConfig()
    learner: LearnerSettings = PPOSettings()
    parallel: ParallelConfig = ParallelConfig()
    league: LeagueSettings = LeagueSettings(enabled=False)
    evaluation: EvaluationSettings = EvaluationSettings()
    run: RunSettings = RunSettings()

    @field_validator("league", mode="before")
    @classmethod
    def _plays_without_a_league(cls, given: object) -> object:
        return {"enabled": False} if given is None else given

    @model_validator(mode="after")
    def _fits_together(self) -> TrainConfig:
        if self.run.steps is None and self.run.minutes is None and self.run.episodes is None:
            raise ValueError(
                "run.steps, run.minutes and run.episodes are all null: set one of them, so that the run has an end"
            )
        self.learner.outputs(self.model)
        self.learner.check(self.parallel, self.rollout)
        unmet = set(self.run.stop_at) - set(self.evaluation.opponents)
        if unmet:
            raise ValueError(
                f"run.stop_at names {', '.join(sorted(unmet))}, which evaluation.opponents does not: it would never "
                f"be met"
            )
        return self

    @property
    def asynchronous(self) -> bool:
        return self.parallel.mode == "async"

    @property
    def _tables(self) -> int:
        return self.parallel.tables or USUAL_TABLES

    @property
    def rollout(self) -> int:
        """Decisions that an update learns from, if one seat acts at a time. It does not depend on the cores."""
        return self._tables * self.parallel.games * self.parallel.horizon

    def resolved(self) -> TrainConfig:
        """Makes the same settings with values for all that the experiment leaves open. The values depend only on the
        settings, so they are the same on every machine."""
        spec = self.env.make(batch=1, seed=0).spec
        self._check_league(spec)
        self.learner.check_game(self.model, spec)
        outputs = self.learner.outputs(self.model)
        model = self.model.model_copy(update={"outputs": outputs}).resolved(spec)
        learner = self.learner
        if learner.parts == "auto":
            parts = fitting_parts(model, spec, learner.minibatch_size)
            learner = learner.model_copy(update={"parts": parts})
        return self.model_copy(
            update={
                "env": self.env.located(),
                "model": model,
                "learner": learner,
                "parallel": self.parallel.model_copy(update={"tables": self._tables}),
            }
        )

    def _check_league(self, spec: GameSpec) -> None:
        if self.league.enabled and not self.learner.meets_league:
            raise ConfigError(
                f"league: regime {self.learner.regime} has an agent in every seat, and meets nobody else; leave it out"
            )
        if self.league.enabled and spec.seats < 2:
            raise ConfigError(f"league: {spec.name} has one seat, and nobody to meet there; leave it out")

    def placed(self) -> TrainConfig:
        """Makes the same settings with this machine's numbers in place of ``auto``: one worker for each core, at most
        one for each table. In asynchronous mode one core is left to the learner. Where workers run on other machines,
        their number stays ``auto``, since only the cluster knows it."""
        cores, workers = usable_cores(), self.parallel.num_workers
        elsewhere = runs_elsewhere(self.parallel.backend)
        if workers == "auto" and not elsewhere:
            workers = min(self._tables, max(1, cores - 1) if self.asynchronous else cores)
        beside = 0 if elsewhere or workers == "auto" else workers
        free = max(1, cores - beside) if self.asynchronous else cores
        useful = min(self.learner.useful_threads(), free)
        threads = useful if self.run.learner_threads == "auto" else self.run.learner_threads
        return self.model_copy(
            update={
                "parallel": self.parallel.model_copy(update={"num_workers": workers}),
                "run": self.run.model_copy(update={"learner_threads": threads}),
            }
        )

    def idle_hands(self, workers: int) -> str:
        """Makes a note if workers are idle for part of a round because of the number of tables; else empty."""
        tables = self._tables
        rounds = -(-tables // workers)
        busy = tables / (workers * rounds)
        if self.asynchronous or busy > BUSY_ENOUGH:
            return ""
        more = workers * rounds
        return (
            f"{tables} tables keep {workers} workers busy for {busy:.0%} of a round. parallel.tables={more} would use "
            f"them all (an update then learns from {more * self.parallel.games * self.parallel.horizon:,} decisions)"
        )
