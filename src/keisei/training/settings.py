"""The settings of a whole run, as one tree: what is played, who learns, how, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.errors import ConfigError
from keisei.games.contract import GameSpec
from keisei.learners.parts import fitting_parts
from keisei.learners.ppo_config import PPOConfig
from keisei.machine.cores import usable_cores
from keisei.parallel.config import PLACEMENT as PLAY_PLACEMENT
from keisei.parallel.config import EnvConfig, ParallelConfig
from keisei.policies.networks import ModelConfig


class EvaluationSettings(Settings):
    """Matches that are played while training goes on."""

    every: Annotated[int, Field(ge=0)] = 200_000
    """Play them after so many transitions; 0 plays none but the last."""
    games: Annotated[int, Field(ge=2, multiple_of=2)] = 40
    """Games in each match."""
    opponents: tuple[str, ...] = ("random",)
    """Players that the learner meets: random, greedy, search:DEPTH, a run or a checkpoint."""
    gate: Annotated[float, Field(ge=0.5, le=1)] = 0.55
    """The newest weights become ``best`` where they score so much against the best so far."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """How freely the learner plays there; 0 takes the best action."""
    opening_plies: Annotated[int, Field(ge=0)] | None = None
    """Random plies before each pair of games; None takes what suits the game."""
    records: Annotated[int, Field(ge=0)] = 2
    """Games of each match that are kept as records, where the game has a format for them (Shogi: KIF)."""


class RunSettings(Settings):
    """How long a run lasts and what it leaves behind."""

    steps: Annotated[int, Field(ge=1)] | None = 1_000_000
    """Transitions to learn from. Schedules run over them."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Stop after so many minutes of training. Schedules follow whichever is further along, the clock or the
    transitions; a run that the clock ends is not the same twice."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    learner_threads: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """Threads of the learner; more than ``learner.parts`` have nothing to do. ``auto`` takes every core while workers
    wait, and what they leave otherwise."""
    device: str = "auto"
    """Where the learner runs: cpu, cuda, cuda:1, mps; ``auto`` takes CUDA where there is one."""
    mixed_precision: bool = False
    """Learn in half precision where that is safe. Needs CUDA with bfloat16; elsewhere it changes nothing."""
    compile: bool = False
    """Let ``torch.compile`` make the learner's network faster, where it works."""
    sync: Literal["every", "adaptive"] = "every"
    """Publish weights after every update, or (asynchronous runs) when the policy has moved far enough."""
    checkpoint_minutes: Annotated[float, Field(ge=0)] = 5.0
    """Write a checkpoint at least so often, by the clock; 0 after every update."""
    checkpoint_every: Annotated[int, Field(ge=1)] | None = None
    """Also write one after each so many updates."""
    keep: Annotated[int, Field(ge=1)] = 3
    """How many checkpoints are kept beside milestones and the best."""
    milestone_every: Annotated[int, Field(ge=1)] | None = None
    """Keep the checkpoint of each so many updates for good."""
    stop_at: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    """Stop when an evaluation against this opponent scores so much, such as ``{random: 0.99}``."""


class SelfPlaySettings(PPOConfig):
    """The self-play regime: the learner in every seat, and PPO."""

    regime: Literal["self-play"] = "self-play"
    """Which regime it is. Each has settings of its own."""


PLACEMENT = {"parallel": PLAY_PLACEMENT, "run": frozenset({"learner_threads", "device"})}
"""By section: the settings that say where a run is trained, and not what it learns. They may change whenever it is
resumed, and ``auto`` is worked out anew at each start."""
USUAL_TABLES = 4
BUSY_ENOUGH = 0.95


class TrainConfig(Settings):
    """Everything about a run. ``keisei config PRESET`` prints it."""

    env: EnvConfig = EnvConfig()
    model: ModelConfig = ModelConfig()
    learner: SelfPlaySettings = SelfPlaySettings()
    parallel: ParallelConfig = ParallelConfig()
    evaluation: EvaluationSettings = EvaluationSettings()
    run: RunSettings = RunSettings()

    @model_validator(mode="before")
    @classmethod
    def _names_one_seed(cls, given: Any) -> Any:
        parallel = given.get("parallel") if isinstance(given, Mapping) else None
        if isinstance(parallel, Mapping) and "seed" in parallel:
            raise ValueError("parallel.seed: a run has one seed, and its place is run.seed; set that")
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> TrainConfig:
        if self.run.steps is None and self.run.minutes is None:
            raise ValueError("run.steps and run.minutes are both null: say how long the run is to last")
        if self.learner.minibatch_size > self.rollout:
            raise ValueError(
                f"learner.minibatch_size = {self.learner.minibatch_size} is more than the {self.rollout} decisions of "
                f"an update (parallel.tables x games x horizon = {self._tables} x {self.parallel.games} x "
                f"{self.parallel.horizon}); make it smaller"
            )
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
        """Decisions that an update learns from, where one seat acts at a time. It never follows from the cores."""
        return self._tables * self.parallel.games * self.parallel.horizon

    def resolved(self) -> TrainConfig:
        """With numbers in place of all that the experiment leaves open. They depend on the settings alone, so they
        are the same on every machine."""
        spec = self.env.make(batch=1, seed=0).spec
        self._check_exam(spec)
        model = self.model.resolved(spec)
        parts = self.learner.parts
        if parts == "auto":
            parts = fitting_parts(model, spec, self.learner.minibatch_size)
        return self.model_copy(
            update={
                "model": model,
                "learner": self.learner.model_copy(update={"parts": parts}),
                "parallel": self.parallel.model_copy(update={"tables": self._tables}),
            }
        )

    def _check_exam(self, spec: GameSpec) -> None:
        """Evaluations are matches, and those need two seats: better to say so now than at the first one."""
        if self.evaluation.opponents and spec.seats != 2:
            raise ConfigError(
                f"evaluation.opponents = {list(self.evaluation.opponents)}: matches have two players, and {spec.name} "
                f"has {spec.seats} seat{'s' if spec.seats != 1 else ''}; train it without them: "
                f"evaluation.opponents=[]"
            )

    def placed(self) -> TrainConfig:
        """With this machine's numbers in place of ``auto``: a worker for each core, as far as there are tables for
        them, and one core less where the learner learns meanwhile."""
        cores, asked = usable_cores(), self.parallel.num_workers
        hands = max(1, cores - 1) if self.asynchronous else cores
        workers = min(self._tables, hands) if asked == "auto" else asked
        free = max(1, cores - workers) if self.asynchronous else cores
        parts = 1 if self.learner.parts == "auto" else self.learner.parts
        threads = min(parts, free) if self.run.learner_threads == "auto" else self.run.learner_threads
        return self.model_copy(
            update={
                "parallel": self.parallel.model_copy(update={"num_workers": workers}),
                "run": self.run.model_copy(update={"learner_threads": threads}),
            }
        )

    def is_same_experiment(self, other: TrainConfig) -> bool:
        """Whether two configurations differ in nothing but where they are trained."""
        return _without_placement(self) == _without_placement(other)

    def idle_hands(self) -> str:
        """What the number of tables leaves idle on the workers of a placed configuration; empty where it is little."""
        tables, workers = self._tables, self.parallel.workers
        rounds = -(-tables // workers)
        busy = tables / (workers * rounds)
        if self.asynchronous or busy > BUSY_ENOUGH:
            return ""
        more = workers * rounds
        return (
            f"{tables} tables keep {workers} workers busy for {busy:.0%} of a round. parallel.tables={more} would use "
            f"them all (an update then learns from {more * self.parallel.games * self.parallel.horizon:,} decisions)"
        )


def _without_placement(config: TrainConfig) -> dict[str, Any]:
    plain = config.model_dump(mode="json")
    return {
        section: {name: value for name, value in settings.items() if name not in PLACEMENT.get(section, ())}
        for section, settings in plain.items()
    }
