"""Events of a training run, for metrics, displays and callbacks. The loop itself calls none of them.

Events are plain numbers and texts, so displays need not import torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keisei.learners.contract import Report
from keisei.runs import metric_names as tags
from keisei.runs.live import Glimpse
from keisei.runs.rows import EvaluationRow


@dataclass(frozen=True, slots=True)
class Counters:
    """The progress of a run; every checkpoint has it."""

    update: int = 0
    transitions: int = 0
    games: int = 0
    seconds: float = 0.0
    """Seconds of training, evaluations included, without the time between a stop and a resumption."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run is about to start. This describes the run."""

    run: Path
    game: str
    network: str
    """The kind of network, such as ``slim``."""
    parameters: int
    """Parameters of the network."""
    workers: int
    backend: str
    """Where workers run: ``inline``, ``thread``, ``process``, or a registered backend."""
    threads: int
    """Threads of the learner."""
    steps: int | None
    """Transitions of the whole run; None if only the clock ends it."""
    minutes: float | None
    mode: str
    """``sync`` or ``async``."""
    counters: Counters = Counters()
    """Where it continues from; all zero for a new run."""
    episodes: int | None = None
    """Games of the whole run; None if their number does not end it."""

    @property
    def length(self) -> str:
        """The length of the run in words."""
        steps = "" if self.steps is None else f"{self.steps:,} steps"
        minutes = "" if self.minutes is None else f"{self.minutes:g} minute{'' if self.minutes == 1 else 's'}"
        games = "" if self.episodes is None else f"{self.episodes:,} games"
        return " or ".join(filter(None, [steps, minutes, games]))


@dataclass(frozen=True, slots=True)
class GameSummary:
    """The games that were finished in one update."""

    games: int
    mean_plies: float
    """NaN if no game was finished, as are the rates below."""
    mean_reward: float
    """Mean reward of the seat that moves first."""
    first_wins: float
    """Share of the games, as are draws and truncations."""
    draws: float
    truncations: float
    endings: dict[str, int]
    """Number of games for each ending, by its name."""


@dataclass(frozen=True, slots=True)
class LeagueSummary:
    """The league after one update. Scores are those of the learner."""

    members: int
    """Members that may be drawn."""
    games: int
    """Games against members that were finished in the update."""
    score: float
    """The score in these games; NaN if there were none."""
    worst: str
    """The member with the lowest score in its last games; empty if none has enough games."""
    worst_score: float
    forgotten: int
    """Members that the learner once beat and now loses to."""


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """How the experience of one update was collected."""

    transitions: int
    seconds: float
    policy_lag: float
    queue_depth: int
    """Slabs that wait for the learner."""
    worker_utilisation: float
    """Share of the collecting time in which workers played."""
    workers: int
    """Active workers."""
    restarts: int
    """Restarts of workers since the start of this process."""
    dropped: int
    """Transitions that were too old to learn from, since the start of this process."""
    league: LeagueSummary | None = None
    """None if the learner meets no league."""
    glimpse: Glimpse | None = None
    """The plies of one game, for those who watch; None if its positions are large."""


@dataclass(frozen=True, slots=True)
class Update:
    """One turn of the loop: experience collected, weights improved and published."""

    counters: Counters
    progress: float
    """Share of the whole run that is done, 0 … 1."""
    games: GameSummary
    collection: CollectionSummary
    report: Report
    """The numbers of learning, for each owner."""
    learn_seconds: float
    """Time from the end of collecting to the end of the update; it includes the two below."""
    prepare_seconds: float = 0.0
    """Time to compute advantages and to merge slabs."""
    publish_seconds: float = 0.0
    buffer: Mapping[str, float] = field(default_factory=dict)
    """The numbers of the buffer, by name."""

    @property
    def transitions_per_second(self) -> float:
        spent = self.collection.seconds + self.learn_seconds
        return self.collection.transitions / spent if spent > 0 else 0.0

    @property
    def numbers(self) -> Mapping[str, float]:
        """All numbers of the update under the names of ``runs.metric_names``. Unknown numbers are left out, such as
        the length of games if none was finished."""
        values = {
            **self.report.numbers,
            **dict(self._numbers_of_owners()),
            **self.buffer,
            **self._numbers_of_the_run(),
            **self._numbers_of_games(),
            **self._numbers_of_the_league(),
            **self._numbers_of_work(),
        }
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def _numbers_of_owners(self) -> Iterator[tuple[str, float]]:
        """Yields the numbers of each owner if there are several. A single owner's numbers are the means already."""
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

    def _numbers_of_the_league(self) -> Mapping[str, float]:
        league = self.collection.league
        if league is None:
            return {}
        return {
            tags.LEAGUE_MEMBERS: league.members,
            tags.LEAGUE_GAMES: league.games,
            tags.LEAGUE_SCORE: league.score,
            tags.LEAGUE_WORST_SCORE: league.worst_score,
            tags.LEAGUE_FORGOTTEN: league.forgotten,
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
    """One match for each opponent, and one against the best checkpoint if there is one."""
    is_best: bool
    """True if these weights are now ``best``."""
    seconds: float

    @property
    def numbers(self) -> Mapping[str, float]:
        """The score against each opponent, and the mean return where there is one, as metrics. The best checkpoint
        changes; its matches share one name."""
        scores = {tags.EVALUATION + _as_tag(row): row.score for row in self.rows}
        returns = {tags.RETURN + _as_tag(row): row.mean_return for row in self.rows}
        return scores | {name: value for name, value in returns.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written, or could not be written."""

    update: int
    path: Path | None
    seconds: float
    problem: str = ""
    """Why it could not be written; empty if it was written."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run has ended normally: all is saved, and nothing is left running."""

    outcome: str
    """``finished``, ``interrupted``, or the reason that a callback gave."""
    counters: Counters

    @property
    def reason(self) -> str:
        """Why a callback stopped the run; empty if none did."""
        return "" if self.outcome in ("finished", "interrupted") else self.outcome


def _as_tag(row: EvaluationRow) -> str:
    """Writes the opponent as part of a metric name, without characters that are not allowed there."""
    return "best" if row.against_checkpoint else re.sub(r"[^A-Za-z0-9_.:-]", "_", row.opponent)
