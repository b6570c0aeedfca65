"""Training in one call: ``keisei.train("connect-four-ppo", steps=200_000)``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keisei.config import parse_settings
from keisei.errors import RunError
from keisei.runs.directory import CONFIG, RunDirectory
from keisei.training.callbacks import Callback
from keisei.training.interruption import Interruption
from keisei.training.presets import Source, find_source, load_preset, preset_names, run_config
from keisei.training.settings import TrainConfig

if TYPE_CHECKING:
    from keisei.training.trainer import TrainResult

__all__ = ["Plan", "plan_run", "train"]

Existing = Literal["resume", "restart", "overwrite"]


@dataclass(frozen=True)
class Plan:
    """A run that is ready to be trained."""

    run: RunDirectory
    config: TrainConfig
    resumes: bool
    """True if the run existed before."""


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

    A run of the same name and settings is resumed; its placement may differ. With other settings it is an error,
    unless ``existing`` is ``restart`` (keep the old run under another name) or ``overwrite`` (delete it).
    ``overrides`` are assignments such as ``"learner.learning_rate=1e-3"``.
    """
    assignments = [*overrides, *length_overrides(steps, minutes)]
    plan = plan_run(target, overrides=assignments, name=name, root=Path(root), existing=existing)
    from keisei.training.trainer import Trainer  # it imports torch, so only when the settings are right

    return Trainer(plan.run, plan.config, callbacks, interruption).train()


def length_overrides(steps: int | None, minutes: float | None) -> list[str]:
    """Gives the overrides for a length. ``minutes`` alone removes the limit of transitions, and the reverse."""
    if steps is None and minutes is None:
        return []
    return [
        f"run.steps={'null' if steps is None else steps}",
        f"run.minutes={'null' if minutes is None else minutes}",
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
    source = _source(target, name, root)
    if existing != "resume":
        return _begin_anew(source, overrides, name, root, existing)
    if source.run is not None:
        if name not in (None, source.run.name):
            raise RunError(
                f"{source.run.path} is a run and keeps its name; leave out --name {name}, or start a new run from its "
                f"settings: keisei train {source.run.path / CONFIG} --name {name}"
            )
        return _resume(source.run, source.config(overrides))
    config = source.config(overrides).resolved()
    path = root / (name or source.name)
    if (path / CONFIG).is_file():
        run = RunDirectory.open(path)
        if run_config(run).is_same_experiment(config):
            return _resume(run, config)
    return Plan(RunDirectory.create(root, name or source.name, config), config, resumes=False)


def _source(target: str | Path | Mapping[str, Any] | TrainConfig, name: str | None, root: Path) -> Source:
    if isinstance(target, str | Path):
        if name not in (None, str(target)) and str(target) in preset_names():
            return load_preset(str(target))  # even if a run has the preset's name
        return find_source(str(target), root)
    settings = (
        target.model_dump(mode="json", exclude_unset=True) if isinstance(target, TrainConfig) else target
    )
    config = parse_settings(TrainConfig, settings)
    return Source(name or f"{config.env.game}-ppo", settings, "settings")


def _begin_anew(
    source: Source, overrides: Sequence[str], name: str | None, root: Path, existing: Existing
) -> Plan:
    """Starts a run over: with the preset if it has a preset's name, else with its own settings."""
    name = name or source.name
    if source.run is not None:
        root = source.run.path.parent
        if source.name in preset_names():
            source = load_preset(source.name)
    config = source.config(overrides).resolved()
    choice: Literal["restart", "overwrite"] = "restart" if existing == "restart" else "overwrite"
    return Plan(RunDirectory.create(root, name, config, choice), config, resumes=False)


def _resume(run: RunDirectory, config: TrainConfig) -> Plan:
    """Resumes a run. Changed settings are saved, and the old ones are kept beside them."""
    config = config.resolved()
    if run_config(run) != config:
        with run.lock():
            run.change_config(config)
    return Plan(run, config, resumes=True)
