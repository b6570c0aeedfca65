"""Training in one call: ``keisei.train("connect-four-ppo", steps=200_000)``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from keisei.config import parse_settings
from keisei.errors import ConfigError, RunError
from keisei.runs.directory import CONFIG, NewRun, RunDirectory, run_name
from keisei.runs.directory import Existing as ExistingOnDisk
from keisei.training.callbacks import Callback
from keisei.training.changes import Change, check_same, differences, shown
from keisei.training.interruption import Interruption
from keisei.training.presets import (
    Source,
    find_source,
    load_preset,
    preset_names,
    run_config,
    run_source,
)
from keisei.training.settings import TrainConfig

if TYPE_CHECKING:
    from keisei.training.trainer import Trainer, TrainResult

__all__ = ["Plan", "plan_run", "train"]

Existing = Literal["resume", "restart", "overwrite"]


@dataclass(frozen=True)
class Plan:
    """A run that is ready to be trained."""

    run: RunDirectory
    config: TrainConfig
    new: NewRun | None = None
    """The new run; None if the run existed before."""
    notes: tuple[str, ...] = ()
    """What a person should know before it starts."""

    @property
    def resumes(self) -> bool:
        return self.new is None

    def trainer(
        self, callbacks: Sequence[Callback] = (), interruption: Interruption | None = None
    ) -> Trainer:
        from keisei.training.trainer import Trainer  # it imports torch, so only when the settings are right

        if self.resumes:
            _check_others(self.config, self.run.path.parent, is_new=False)
        return Trainer(self.run, self.config, callbacks, interruption, new=self.new, notes=self.notes)


def train(
    target: str | Path | Mapping[str, Any] | TrainConfig,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    name: str | None = None,
    root: str | Path = "runs",
    overrides: Iterable[str] = (),
    existing: Existing = "resume",
    callbacks: Sequence[Callback] = (),
    interruption: Interruption | None = None,
) -> TrainResult:
    """Trains a preset, a settings file, settings, or an existing run.

    A run of the same name is resumed with its own settings, changed by ``overrides``, ``steps`` and ``minutes``, and by
    what a file or settings given here write. What its checkpoint depends on cannot change; that is a
    ``RunSettingsError``. ``existing`` may be ``restart`` (start over, and keep the old run under another name) or
    ``overwrite`` (delete it). ``overrides`` are assignments such as ``"learner.learning_rate=1e-3"``.
    """
    assignments = [*as_assignments(overrides), *length_overrides(steps, minutes)]
    plan = plan_run(target, overrides=assignments, name=name, root=Path(root), existing=existing)
    return plan.trainer(callbacks, interruption).train()


def as_assignments(overrides: Iterable[str]) -> list[str]:
    """Gives overrides as a list. A single text is a mistake, since it would be read letter by letter."""
    if isinstance(overrides, str):
        raise ConfigError(f"overrides = {overrides!r}: it is a list of assignments; write [{overrides!r}]")
    return list(overrides)


def length_overrides(steps: int | None, minutes: float | None) -> list[str]:
    """Gives the overrides for a length. Limits that are not given are removed, also that of games."""
    if steps is None and minutes is None:
        return []
    return [
        f"run.steps={'null' if steps is None else steps}",
        f"run.minutes={'null' if minutes is None else minutes}",
        "run.episodes=null",
    ]


def plan_run(
    target: str | Path | Mapping[str, Any] | TrainConfig,
    *,
    overrides: Sequence[str] = (),
    name: str | None = None,
    root: Path = Path("runs"),
    existing: Existing = "resume",
) -> Plan:
    """Finds the settings, and opens or creates the run. No run is overwritten silently."""
    if existing not in get_args(Existing):
        raise ConfigError(
            f"existing = {existing!r}: it is resume, restart (the old run is kept under another name) or overwrite (it "
            f"is deleted)"
        )
    source = _source(target, name, root)
    if existing != "resume":
        return _begin_anew(source, overrides, name, root, existing)
    if source.run is not None and name not in (None, source.run.name):
        raise RunError(
            f"{source.run.path} is a run and keeps its name; leave out --name {name}, or start a new run from its "
            f"settings: keisei train {source.run.path / CONFIG} --name {name}"
        )
    path = root / (name or source.name)
    run = source.run or (RunDirectory.open(path) if (path / CONFIG).is_file() else None)
    if run is not None:
        return _resume(run, source, overrides)
    return _create(source, overrides, root, path.name)


def _check_others(config: TrainConfig, root: Path, *, is_new: bool) -> None:
    """Checks all opponents before anything is written: those of evaluations, and the league of a new run."""
    # These import torch, so only when the settings are right.
    from keisei.training.league.fixed_members import check_members
    from keisei.training.opponents import check_opponents

    check_opponents(config, root)
    if is_new:
        check_members(config.league, config.env.make(batch=1, seed=0).spec, root)


def _source(target: str | Path | Mapping[str, Any] | TrainConfig, name: str | None, root: Path) -> Source:
    if isinstance(target, str | Path):
        if name not in (None, str(target)) and str(target) in preset_names():
            return load_preset(str(target))  # even if a run has the preset's name
        return find_source(str(target), root)
    config = target if isinstance(target, TrainConfig) else parse_settings(TrainConfig, target)
    settings = config.model_dump(mode="json", exclude_unset=True)
    return Source(name or run_name(f"{config.env.game}-{config.learner.algorithm}"), settings, "settings")


def _begin_anew(
    source: Source, overrides: Sequence[str], name: str | None, root: Path, existing: Existing
) -> Plan:
    """Starts a run over: with the preset if it has a preset's name, else with its own settings."""
    name = name or source.name
    if source.run is not None:
        root = source.run.path.parent
        if source.name in preset_names():
            source = load_preset(source.name)
    return _create(source, overrides, root, name, "restart" if existing == "restart" else "overwrite")


def _create(
    source: Source, overrides: Sequence[str], root: Path, name: str, existing: ExistingOnDisk = "refuse"
) -> Plan:
    config = source.config(overrides).resolved()
    _check_others(config, root, is_new=True)
    new = NewRun.create(root, name, config, existing)
    return Plan(new.run, config, new)


def _resume(run: RunDirectory, source: Source, overrides: Sequence[str]) -> Plan:
    """Resumes a run. The trainer checks what has changed, and keeps it when all parts are started."""
    config, unlike = _resumed(run, source, overrides)
    listed = ", ".join(f"{change.setting} {shown(change.old)} ({shown(change.new)})" for change in unlike)
    note = f"the run keeps its own settings; the preset has others (in brackets): {listed}"
    return Plan(run, config, notes=(note,) if unlike else ())


def _resumed(run: RunDirectory, source: Source, overrides: Sequence[str]) -> tuple[TrainConfig, list[Change]]:
    """Gives the settings that a run goes on with, and those in which it is unlike its preset."""
    if source.run is None and not source.is_preset:
        return source.config_over(run_config(run), overrides).resolved(), []
    config = run_source(run).config(overrides).resolved()
    if source.is_preset:
        unlike = _unlike(source, config, overrides)
        check_same(run, unlike)  # it may be another experiment, which has this name by mistake
        return config, unlike
    return config, _unlike(load_preset(run.name), config, overrides) if run.name in preset_names() else []


def _unlike(preset: Source, config: TrainConfig, overrides: Sequence[str]) -> list[Change]:
    """Gives the settings in which a run is unlike a preset, without those that are given now."""
    given = tuple(f"{override.partition('=')[0].strip()}." for override in overrides)
    unlike = differences(config.model_dump(mode="json"), preset.written())
    return [change for change in unlike if not f"{change.setting}.".startswith(given)]
