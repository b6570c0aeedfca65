"""The settings of a whole run, as one tree: what is played, who learns, how, and for how long."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from keisei.config import Settings
from keisei.learners.ppo import PPOConfig
from keisei.machine.cores import usable_cores
from keisei.parallel.config import EnvConfig, ParallelConfig
from keisei.policies.networks import ModelConfig
from keisei.training.threads import fitting_threads


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
    rollout: Annotated[int, Field(ge=1)] = 16_384
    """Transitions that an update learns from."""
    learner_threads: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """Threads of the learner; ``auto`` takes every core while workers wait, and what they leave otherwise."""
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


class LearnerModel(ModelConfig):
    """The learner's network. By default the one that learned most in equal minutes on processors (``keisei bench
    learning-networks``); games whose observations are no planes take ``mlp``."""

    network: str = "slim"
    """slim, residual, gather, mlp, or the class of a network of your own as module:Class."""
    channels: Annotated[int, Field(ge=1, le=4096)] = 32
    """Width of slim and residual."""
    blocks: Annotated[int, Field(ge=1, le=256)] = 2
    """Depth of slim and residual: blocks of two convolutions each."""


class TrainConfig(Settings):
    """Everything about a run. ``keisei config PRESET`` prints it."""

    env: EnvConfig = EnvConfig()
    model: LearnerModel = LearnerModel()
    ppo: PPOConfig = PPOConfig()
    parallel: ParallelConfig = ParallelConfig()
    evaluation: EvaluationSettings = EvaluationSettings()
    run: RunSettings = RunSettings()

    @model_validator(mode="after")
    def _fits_together(self) -> TrainConfig:
        if self.run.steps is None and self.run.minutes is None:
            raise ValueError("run.steps and run.minutes are both null: say how long the run is to last")
        if self.ppo.minibatch_size > self.run.rollout:
            raise ValueError(
                f"ppo.minibatch_size = {self.ppo.minibatch_size} is more than run.rollout = {self.run.rollout}, "
                f"the transitions of an update; make it smaller"
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

    def resolved(self) -> TrainConfig:
        """With this machine's numbers in place of every ``auto``, so that the run goes on as it began, wherever
        it is resumed. Each worker's share of an update is one slab, where it is synchronous."""
        cores = usable_cores()
        workers = _number_or(self.parallel.num_workers, max(1, cores - 1) if self.asynchronous else cores)
        threads = self._threads(max(1, cores - workers) if self.asynchronous else cores)
        changes: dict[str, Any] = {"num_workers": workers, "seed": self.run.seed}
        if "experience_batch_size" not in self.parallel.model_fields_set and not self.asynchronous:
            changes["experience_batch_size"] = -(-self.run.rollout // workers)
        return self.model_copy(
            update={
                "parallel": self.parallel.model_copy(update=changes),
                "run": self.run.model_copy(update={"learner_threads": threads}),
            }
        )

    def _threads(self, free: int) -> int:
        """Of the learner: as many as its network can use, of the cores that it may have."""
        if self.run.learner_threads != "auto":
            return self.run.learner_threads
        spec = self.env.make(batch=1, seed=0).spec
        return fitting_threads(self.model, spec, self.ppo.minibatch_size, free)


def _number_or(number: int | Literal["auto"], automatic: int) -> int:
    return automatic if number == "auto" else number
