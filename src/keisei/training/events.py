"""What a training run tells those who watch it: metrics, displays, callbacks. The loop itself calls none of them.

Events are plain numbers and words, so that those who show them need not wait for torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from keisei.learners.contract import Report
from keisei.runs import metric_names as tags
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
    """A run is about to make its next update. This is what the run is."""

    run: Path
    game: str
    network: str
    """The name of its kind, such as ``slim``."""
    parameters: int
    """Of the network."""
    workers: int
    backend: str
    """Where the workers are: ``inline``, ``thread``, ``process``."""
    threads: int
    """Of the learner."""
    steps: int | None
    """Transitions of the whole run; None where only the clock ends it."""
    minutes: float | None
    mode: str
    """``sync`` or ``async``."""
    counters: Counters = Counters()
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
class CollectionSummary:
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
    collection: CollectionSummary
    report: Report
    """What learning did, in numbers, for each owner."""
    learn_seconds: float
    """All between collecting and the end of the update; the two below are part of it."""
    prepare_seconds: float = 0.0
    """Advantages, and merging what the workers brought."""
    publish_seconds: float = 0.0

    @property
    def transitions_per_second(self) -> float:
        spent = self.collection.seconds + self.learn_seconds
        return self.collection.transitions / spent if spent > 0 else 0.0

    @property
    def numbers(self) -> Mapping[str, float]:
        """All numbers of the update under the names of ``runs.metric_names``. What is not known, such as the length of
        games where none was finished, is left out."""
        values = {
            **self.report.numbers,
            **dict(self._numbers_of_owners()),
            **self._numbers_of_the_run(),
            **self._numbers_of_games(),
            **self._numbers_of_work(),
        }
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def _numbers_of_owners(self) -> Iterator[tuple[str, float]]:
        """Where several learn, each has its own curves beside the mean; one alone would have every curve twice."""
        if len(self.report.owners) > 1:
            for owner, numbers in self.report.owners.items():
                yield from ((tags.of_owner(name, owner), value) for name, value in numbers.items())

    def _numbers_of_the_run(self) -> Mapping[str, float]:
        done = self.counters
        return {
            tags.UPDATES: done.update,
            tags.MEAN_SPEED: done.transitions / done.seconds if done.seconds > 0 else math.nan,
            tags.TRANSITIONS: done.transitions,
            tags.ELAPSED: done.seconds,
        }

    def _numbers_of_games(self) -> Mapping[str, float]:
        return {
            tags.GAME_LENGTH: self.games.mean_plies,
            tags.GAME_REWARD: self.games.mean_reward,
            tags.GAMES: self.games.games,
            tags.FIRST_WINS: self.games.first_wins,
            tags.DRAWS: self.games.draws,
            tags.TRUNCATIONS: self.games.truncations,
        }

    def _numbers_of_work(self) -> Mapping[str, float]:
        return {
            tags.SPEED: self.transitions_per_second,
            tags.COLLECT_SECONDS: self.collection.seconds,
            tags.LEARN_SECONDS: self.learn_seconds,
            tags.QUEUE_DEPTH: self.collection.queue_depth,
            tags.POLICY_LAG: self.collection.policy_lag,
            tags.WORKER_UTILISATION: self.collection.worker_utilisation,
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The matches that were played after an update."""

    update: int
    rows: tuple[EvaluationRow, ...]
    """One for each opponent; the best so far is among them once there is one."""
    is_best: bool
    """These weights are now ``best``."""
    seconds: float

    @property
    def numbers(self) -> Mapping[str, float]:
        """The score against each opponent, as metrics."""
        return {tags.EVALUATION + _as_tag(row.opponent): row.score for row in self.rows}


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written, or could not be."""

    update: int
    path: Path | None
    seconds: float
    problem: str = ""
    """Why it could not be written; empty where it was."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run has ended in good order: all is saved, and nothing is left running."""

    outcome: str
    """``finished``, ``interrupted``, or the reason that a callback gave."""
    counters: Counters

    @property
    def reason(self) -> str:
        """Why a callback stopped the run; empty where none did."""
        return "" if self.outcome in ("finished", "interrupted") else self.outcome


def _as_tag(opponent: str) -> str:
    """A player's name as part of a metric's: paths have signs that those may not have."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", opponent)
