"""``keisei sweep``: trains a preset with several settings and seeds. Every run stays, as an ordinary one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer
from rich.console import Console

from keisei.cli.numbers import MAX_COUNT, MAX_FEW, MAX_MINUTES
from keisei.cli.seeds import checked_source, exit_code, job_for, train_together
from keisei.cli.side_by_side import own_cores
from keisei.cli.train import Root, Target
from keisei.cli.views.sweep_table import print_best, print_trials
from keisei.cli.views.terminal import Terminal
from keisei.errors import ConfigError
from keisei.runs.directory import RunDirectory
from keisei.training.experiments.choices import (
    Choice,
    Combination,
    Values,
    grid,
    parse_choices,
    random_settings,
)
from keisei.training.experiments.proposals import propose
from keisei.training.experiments.scores import Objective, Result, result_of
from keisei.training.experiments.seeds import check_folder, parse_seeds, seed_name
from keisei.training.experiments.sweep_plan import Question, SweepPlan, Trial, open_plan

if TYPE_CHECKING:
    from keisei.training.settings import TrainConfig

RUNGS = (0.25, 0.5, 1.0)
"""Shares of the length at which successive halving looks; at each but the last the worse half stops."""
EVALUATIONS = 8
"""Evaluations in the length of a run that may be stopped early."""
INTERRUPTED = 130


def sweep(
    target: Target,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set", help="A setting and its values: a=1,2, or a range for --random and --optuna: a=1..9."
        ),
    ],
    seeds: Annotated[str, typer.Option(help="Each combination is trained with each of these seeds.")] = "0",
    name: Annotated[str | None, typer.Option(help="The folder of the runs; by default PRESET-sweep.")] = None,
    root: Root = Path("runs"),
    random: Annotated[int | None, typer.Option(min=1, max=MAX_FEW, help="Draw so many combinations.")] = None,
    optuna: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_FEW, help="Let Optuna propose so many combinations, one after another."),
    ] = None,
    halving: Annotated[
        bool,
        typer.Option("--halving", help="Stop the worse half after a quarter of the length, and after half."),
    ] = False,
    metric: Annotated[
        str | None, typer.Option(help="What is compared; by default the score against the last opponent.")
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="Look for the lowest number, as with a loss.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, max=MAX_COUNT, help="Transitions of each run.")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.001, max=MAX_MINUTES, help="Minutes of each run.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, max=MAX_FEW, help="Runs side by side; by default one for each core.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines, also on a terminal.")] = False,
) -> None:
    """Train a preset with several settings and seeds, and tell which settings are best. Ctrl-C ends it, and the same
    command goes on, also with more seeds or trials."""
    from keisei.training.api import length_overrides

    if random is not None and optuna is not None:
        raise ConfigError("--random and --optuna are two ways to choose; give only one of them")
    if optuna is not None and halving:
        raise ConfigError(
            "--halving compares trials that begin together, and --optuna makes one after another"
        )
    choices = parse_choices(set_)
    fixed = [f"{setting}={choice.texts[0]}" for setting, choice in choices.items() if _is_fixed(choice)]
    varied = {setting: choice for setting, choice in choices.items() if not _is_fixed(choice)}
    if not varied:
        raise ConfigError("--set names one value for each setting; give one of them several: a=1,2")
    length = length_overrides(steps, minutes)
    overrides = [*fixed, *length]
    own, config = checked_source(target, overrides, root)
    if halving:
        overrides += _evaluated_often(config, choices)
    folder = name or f"{own}-sweep"
    check_folder(root, folder, below=2)
    method = "random" if random is not None else "optuna" if optuna is not None else "grid"
    question = Question(target, tuple(set_), tuple(overrides), method, metric or "", lower_is_better, halving)
    running = _Sweep(
        plan=open_plan(root / folder, question, varied),
        folder=folder,
        root=root,
        seeds=parse_seeds(seeds),
        steps=config.run.steps or 0,
        objective=_objective(config, metric, lower_is_better),
        console=Terminal(highlight=False),
        at_once=at_once,
        plain=plain,
        best_with=[*_in_words(fixed), *_length_in_words(steps, minutes)],
    )
    if optuna is not None:
        code = running.proposed(varied, optuna)
    else:
        code = running.all_of(list(grid(varied) if random is None else random_settings(varied, random)))
    raise typer.Exit(code)


@dataclass
class _Sweep:
    """A sweep in progress."""

    plan: SweepPlan
    folder: str
    root: Path
    seeds: Sequence[int]
    steps: int
    """Transitions of each run; 0 if its length is another."""
    objective: Objective
    console: Console
    at_once: int | None
    plain: bool
    best_with: Sequence[str]
    """The options of ``keisei train`` that all trials share."""
    stopped: set[str] = field(default_factory=set)
    """The trials that were stopped early, by their keys."""

    def all_of(self, combinations: Sequence[Combination]) -> int:
        """Trains all combinations, or with halving fewer and fewer of them. Returns the exit code."""
        question = self.plan.question
        for one in combinations:  # a wrong value is told before anything is trained
            checked_source(question.target, [*question.overrides, *_assignments(one)], self.root)
        self.plan = self.plan.with_settings(combinations)
        trials, codes = list(self.plan.trials), [0]
        for rung in RUNGS if question.halving else RUNGS[-1:]:
            codes.append(self._train(trials, rung))
            if codes[-1] == INTERRUPTED:
                break
            if rung < 1:
                trials = self._better_half(trials, rung)
        return self._end(max(codes))

    def proposed(self, choices: Mapping[str, Choice], count: int) -> int:
        """Trains what Optuna proposes, as many trials at once as cores allow."""
        codes = [self._train(self.plan.trials)]
        while codes[-1] != INTERRUPTED and len(self.plan.trials) < count:
            before = len(self.plan.trials)
            side_by_side = max(1, (self.at_once or len(own_cores())) // len(self.seeds))
            told = [(trial.settings, self._told(trial)) for trial in self.plan.trials]
            asked = propose(choices, told, min(side_by_side, count - before))
            self.plan = self.plan.with_settings(asked)
            if len(self.plan.trials) == before:
                self.console.print("Optuna proposes nothing that was not tried already", soft_wrap=True)
                break
            codes.append(self._train(self.plan.trials[before:]))
        return self._end(max(codes))

    def _train(self, trials: Sequence[Trial], rung: float = 1.0) -> int:
        if not trials:
            return 0
        question = self.plan.question
        jobs = [
            job_for(
                question.target,
                [*question.overrides, *trial.assignments, f"run.seed={seed}"],
                self._name(trial, seed),
                self.root,
                until=rung,
            )
            for seed in self.seeds
            for trial in trials
        ]
        if all(job.done for job in jobs):
            return 0
        return exit_code(train_together(jobs, self.console, self.at_once, plain=self.plain, quiet=False))

    def _better_half(self, trials: Sequence[Trial], rung: float) -> list[Trial]:
        """Picks the better half of the trials by their scores at this share of their length, which all have reached."""
        ranked = self._ranked(trials, rung * self.steps)
        kept = ranked[: -(-len(ranked) // 2)]
        self.stopped |= {trial.key for trial in trials if trial not in kept}
        if self.stopped:
            self.console.print(
                f"after {rung:.0%} of the length, {len(kept)} of {len(trials)} go on", soft_wrap=True
            )
        return kept

    def _ranked(self, trials: Sequence[Trial], most_steps: float = math.inf) -> list[Trial]:
        return sorted(
            trials, key=lambda trial: self._result(trial, most_steps).rank(self.objective), reverse=True
        )

    def _result(self, trial: Trial, most_steps: float = math.inf) -> Result:
        runs = [RunDirectory(self.root / self._name(trial, seed), self.root) for seed in self.seeds]
        return result_of(runs, self.objective, most_steps)

    def _told(self, trial: Trial) -> float | None:
        mean = self._result(trial).mean
        return None if mean is None else self.objective.better(mean.value)

    def _name(self, trial: Trial, seed: int) -> str:
        return seed_name(f"{self.folder}/{trial.key}", seed)

    def _end(self, code: int) -> int:
        """Prints all trials, and the best settings unless the sweep was interrupted."""
        ranked = sorted(self._ranked(self.plan.trials), key=lambda trial: trial.key in self.stopped)
        rows = [(trial, self._result(trial), trial.key in self.stopped) for trial in ranked]
        self.console.print()
        print_trials(self.console, rows, self.objective)
        if code == INTERRUPTED:
            self.console.print("Continue it: the same command", soft_wrap=True)
            return code
        command = ["keisei", "train", self.plan.question.target, *self.best_with]
        print_best(self.console, rows, self.objective, command)
        self.console.print(
            f"Compare them: keisei plot {self.root / self.folder} --mean", markup=False, soft_wrap=True
        )
        return code


def _is_fixed(choice: Choice) -> TypeGuard[Values]:
    return isinstance(choice, Values) and len(choice.texts) == 1


def _in_words(assignments: Sequence[str]) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


def _length_in_words(steps: int | None, minutes: float | None) -> list[str]:
    given = {"--steps": steps, "--minutes": minutes}
    return [word for option, value in given.items() if value is not None for word in (option, str(value))]


def _assignments(settings: Combination) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


def _objective(config: TrainConfig, metric: str | None, lower_is_better: bool) -> Objective:
    opponents = config.evaluation.opponents
    if metric is None and not opponents:
        raise ConfigError(
            "these runs play no evaluations, so there is no score to compare; name a number with --metric, such as "
            "train/value_loss, or an opponent with --set evaluation.opponents=[random]"
        )
    return Objective(opponents[-1] if opponents else "", metric or "", lower_is_better)


def _evaluated_often(config: TrainConfig, given: Mapping[str, Choice]) -> list[str]:
    """Writes the overrides that let runs be compared before they end."""
    if config.run.steps is None or config.run.minutes is not None:
        raise ConfigError(
            "--halving compares runs after equal transitions; give their length with --steps alone"
        )
    often = f"evaluation.every={max(1, config.run.steps // EVALUATIONS)}"
    return [] if "evaluation.every" in given else [often]
