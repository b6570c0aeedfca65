"""What a training run tells those who watch it: metrics, displays, callbacks. The loop itself calls none of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keisei.learners.contract import Report
from keisei.runs.rows import EvaluationRow


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a run has come; kept in every checkpoint."""

    update: int = 0
    transitions: int = 0
    games: int = 0
    seconds: float = 0.0
    """Of training, evaluations included, without the time between a stop and a resumption."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run is about to make its next update."""

    run: Path
    parameters: int
    """Of the network."""
    counters: Counters
    """Where it goes on from; all zero for a new run."""


@dataclass(frozen=True, slots=True)
class GameSummary:
    """The games that were finished in one update."""

    games: int
    mean_plies: float
    """Not a number where no game was finished, and so are the rates below."""
    mean_reward: float
    """Of the seat that moves first."""
    first_wins: float
    """Share of the games; likewise below."""
    draws: float
    truncations: float
    endings: dict[str, int]
    """By the game's own names."""


@dataclass(frozen=True, slots=True)
class Collection:
    """How the experience of one update was collected."""

    transitions: int
    seconds: float
    policy_lag: float
    queue_depth: int
    """Slabs that wait for the learner."""
    worker_utilisation: float
    """Share of the workers' time in which they played, while they were collecting."""
    workers: int
    """At work."""
    restarts: int
    """Since the start of this process."""
    dropped: int
    """Transitions that were too old to learn from, since the start of this process."""


@dataclass(frozen=True, slots=True)
class Update:
    """One turn of the loop: experience collected, weights improved and published."""

    counters: Counters
    progress: float
    """Of the whole run, 0 … 1."""
    games: GameSummary
    collection: Collection
    report: Report
    learn_seconds: float
    """All between collecting and the end of the update; the two below are part of it."""
    prepare_seconds: float = 0.0
    """Advantages, and merging what the workers brought."""
    publish_seconds: float = 0.0

    @property
    def transitions_per_second(self) -> float:
        spent = self.collection.seconds + self.learn_seconds
        return self.collection.transitions / spent if spent > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The matches that were played after an update."""

    update: int
    rows: tuple[EvaluationRow, ...]
    """One for each opponent; the best so far is among them once there is one."""
    is_best: bool
    """These weights are now ``best``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written, or could not be."""

    update: int
    path: Path | None
    seconds: float
    problem: str = ""
    """Why it could not be written; empty where it was."""
