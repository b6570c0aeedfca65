"""Whether agents of a run could gain by playing otherwise, which in an equilibrium none of them can.

Each agent in turn learns on while all others are held fixed, for a share of the transitions of the whole run and with
its whole schedule of learning rates again. What it earns more in the end is its gain. An agent that finds no gain has
not proved that there is none.

`python -m benchmarks.answers RUN` does it for a run of two or more independent agents.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.measure import plain_table
from benchmarks.worlds_played import play_episodes
from keisei.evaluation.statistics import Interval, mean_interval
from keisei.policies.players.saved_player import find_player
from keisei.runs.archive import CheckpointArchive
from keisei.runs.directory import RunDirectory
from keisei.training.api import length_overrides, plan_run
from keisei.training.presets import run_config
from keisei.training.settings import TrainConfig

SHARE = 1 / 3
"""How long an agent looks for an answer, as a share of the run's transitions."""
TOLERATED = 0.1
"""A gain of this share of what an agent earned counts as none: answers are noisy, and so are episodes."""


@dataclass(frozen=True)
class Answer:
    """What an agent earns in an episode, before and after it has learned on against all others held fixed."""

    agent: int
    before: Interval
    after: Interval

    @property
    def gain(self) -> float:
        """The gain as a share of what the agent earned before."""
        return (self.after.value - self.before.value) / max(abs(self.before.value), 1e-9)


def best_answers(
    run: RunDirectory, games: int, say: Callable[[str], None], share: float = SHARE
) -> list[Answer]:
    """Looks for the answer of each agent, in a copy of the run."""
    config = run_config(run)
    before = _earned(run, config, games)
    answers = []
    for agent in range(before.shape[1]):
        say(f"agent {agent} looks for an answer")
        with tempfile.TemporaryDirectory(prefix="keisei-answers-") as folder:
            copy = Path(folder) / run.name
            shutil.copytree(run.path, copy, symlinks=True)
            others = [other for other in range(before.shape[1]) if other != agent]
            plan = plan_run(str(copy), overrides=_settings(run, config, others, share), root=Path(folder))
            after = _earned(plan.trainer().train().run, config, games)
        answers.append(Answer(agent, _mean(before, agent), _mean(after, agent)))
    return answers


def largest_gain(answers: Sequence[Answer]) -> float:
    return max(answer.gain for answer in answers)


def _settings(run: RunDirectory, config: TrainConfig, others: Sequence[int], share: float) -> list[str]:
    """Fixes the others. Rates fall to their final values at the end of a run, so they are raised to begin anew."""
    newest = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert newest is not None
    transitions = newest.checkpoint.counters["transitions"]
    learner = config.model_dump(mode="json")["learner"]
    algorithm = learner["algorithm"]
    rate = learner[algorithm]["learning_rate"] * (1 + share) / share
    return [
        f"learner.fixed_agents={list(others)}",
        f"learner.{algorithm}.schedule=linear",
        f"learner.{algorithm}.learning_rate={rate}",
        "evaluation.every=0",
        *length_overrides(round(transitions * (1 + share)), None),
    ]


def _earned(run: RunDirectory, config: TrainConfig, games: int) -> NDArray[np.float64]:
    """Gives the returns [games, agents] of whole episodes."""
    spec = config.env.make(batch=1, seed=0).spec
    agents = find_player(f"{run.path}@latest", run.path.parent).policy(spec)
    returns: NDArray[np.float64] = play_episodes(config, agents, games).rewards.sum(axis=0, dtype=np.float64)
    return returns


def _mean(returns: NDArray[np.float64], agent: int) -> Interval:
    return mean_interval(returns[:, agent].tolist())


def main(run: Annotated[Path, typer.Argument(help="The directory of a run.")], games: int = 400) -> None:
    """Let each agent of a run look for a better answer to the others."""
    console = Console()
    with console.status("playing …") as status:
        found = best_answers(RunDirectory.open(run), games, status.update)
    headings = ("Agent", "Return", "95 %", "After", "95 % ", "Gain")
    table = plain_table(f"{run}: what an agent gains while the others are fixed", headings, words=())
    for answer in found:
        table.add_row(str(answer.agent), *_cells(answer.before), *_cells(answer.after), f"{answer.gain:+.0%}")
    console.print(table)


def _cells(interval: Interval) -> tuple[str, str]:
    return f"{interval.value:.1f}", f"{interval.low:.1f} … {interval.high:.1f}"


if __name__ == "__main__":
    typer.run(main)
