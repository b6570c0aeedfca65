"""``sweep.json``: what a sweep tries. With it the same command goes on after a stop, or with more seeds.

The folder may be a stranger's. So nothing is trained that the command does not name: the file must have been written
for the same command, and each of its trials must be one of the choices given now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import Field

from keisei.config import Settings, parse_settings
from keisei.errors import ConfigError, RunError
from keisei.runs.directory import run_name
from keisei.runs.durable_files import file_errors, replace_file
from keisei.runs.foreign_documents import json_of
from keisei.runs.foreign_files import read_foreign
from keisei.training.experiments.choices import Choice, Combination

__all__ = ["SWEEP", "Question", "SweepPlan", "Trial", "open_plan"]

SWEEP = "sweep.json"
_LARGEST = 16 << 20
_LONGEST_KEY = 80


@dataclass(frozen=True)
class Question:
    """What is asked. A sweep goes on only with the same question."""

    target: str
    settings: tuple[str, ...]
    """The choices, as they are written."""
    overrides: tuple[str, ...]
    """What all trials share."""
    method: str
    """``grid``, ``random`` or ``optuna``."""
    metric: str
    """The metric that is compared; empty for the score against the last opponent."""
    lower_is_better: bool
    halving: bool


@dataclass(frozen=True)
class Trial:
    """One combination of settings."""

    key: str
    """The name of its folder."""
    settings: Combination

    @property
    def assignments(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.settings.items()]


@dataclass(frozen=True)
class SweepPlan:
    """A question with the trials so far."""

    folder: Path
    question: Question
    trials: tuple[Trial, ...] = ()

    def with_settings(self, settings: Sequence[Combination]) -> SweepPlan:
        """Adds combinations that are not there yet, and writes the plan."""
        known = {tuple(trial.settings.items()) for trial in self.trials}
        trials = list(self.trials)
        for one in settings:
            if tuple(one.items()) not in known:
                known.add(tuple(one.items()))
                trials.append(Trial(_key(one, {trial.key for trial in trials}), one))
        plan = replace(self, trials=tuple(trials))
        plan._write()
        return plan

    def _write(self) -> None:
        trials = [{"key": trial.key, "settings": dict(trial.settings)} for trial in self.trials]
        document = {
            "format": "keisei-sweep",
            "version": 1,
            "question": asdict(self.question),
            "trials": trials,
        }
        with file_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self.folder / SWEEP, (json.dumps(document, indent=1) + "\n").encode())


def open_plan(folder: Path, question: Question, choices: Mapping[str, Choice]) -> SweepPlan:
    """Opens the plan in a folder, or makes a new one. A plan of another question is refused."""
    path = folder / SWEEP
    try:
        document = json_of(read_foreign(folder, SWEEP, _LARGEST))
        written = parse_settings(_Written, document, str(path))
    except FileNotFoundError:
        return SweepPlan(folder, question)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} is not the plan of a sweep: {error}. Move it away, or choose another --name"
        ) from error
    asked = Question(**written.question.model_dump())
    different = [name for name, value in asdict(question).items() if value != getattr(asked, name)]
    if different:
        raise RunError(
            f"{folder} holds a sweep with another question ({', '.join(different)}); repeat its command to go on with "
            f"it, or choose another --name"
        )
    trials = tuple(Trial(trial.key, trial.settings) for trial in written.trials)
    for trial in trials:
        _check(trial, choices, path)
    return SweepPlan(folder, question, trials)


class _WrittenQuestion(Settings):
    target: str
    settings: tuple[str, ...]
    overrides: tuple[str, ...]
    method: str
    metric: str
    lower_is_better: bool
    halving: bool


class _WrittenTrial(Settings):
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    settings: dict[str, str]


class _Written(Settings):
    format: Annotated[str, Field(pattern="^keisei-sweep$")]
    version: Annotated[int, Field(ge=1, le=1)]
    question: _WrittenQuestion
    trials: tuple[_WrittenTrial, ...]


def _check(trial: Trial, choices: Mapping[str, Choice], path: Path) -> None:
    fits = trial.settings.keys() == choices.keys() and all(
        choices[name].allows(value) for name, value in trial.settings.items()
    )
    if not fits:
        raise ConfigError(
            f"{path} names a trial {trial.key!r} whose settings are none of the choices given now; choose another "
            f"--name"
        )


def _key(settings: Combination, taken: set[str]) -> str:
    """Makes the name of a trial's folder, such as ``learning_rate-1e-4_epochs-2``."""
    words = [f"{name.rpartition('.')[2]}-{value}" for name, value in settings.items()]
    key = re.sub(r"-{2,}", "-", run_name("_".join(words))) or "trial"
    if len(key) > _LONGEST_KEY or key in taken:
        digest = sha256(json.dumps(dict(settings)).encode()).hexdigest()[:8]
        key = f"{key[:_LONGEST_KEY]}-{digest}"
    return key
