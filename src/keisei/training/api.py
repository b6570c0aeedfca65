"""Training in one call: ``keisei.train("connect-four-ppo", steps=200_000)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from keisei.config import parse_settings
from keisei.errors import ConfigError, RunError
from keisei.games.own_files import imported_now
from keisei.games.registry import is_registered
from keisei.policies.trust import trust_settings
from keisei.runs.directory import CONFIG, NewRun, RunDirectory, run_name
from keisei.runs.directory import Existing as ExistingOnDisk
from keisei.runs.origin import BRANCH, WEIGHTS
from keisei.runs.run_names import check_run_name
from keisei.training.callbacks import Callback
from keisei.training.changes import Change, check_same, differences, shown
from keisei.training.interruption import Interruption
from keisei.training.presets import (
    Source,
    find_source,
    load_preset,
    names_checkpoint,
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
        """Whether the run existed before."""
        return self.new is None

    def trainer(
        self, callbacks: Sequence[Callback] = (), interruption: Interruption | None = None
    ) -> Trainer:
        from keisei.training.trainer import Trainer  # it imports torch, so only when the settings are right

        if self.resumes:
            _check_others(self.config, self.run.root, is_new=False)
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
    weights_from: str | None = None,
    callbacks: Sequence[Callback] = (),
    interruption: Interruption | None = None,
) -> TrainResult:
    """Trains a preset, a settings file, settings, a game, or an existing run.

    A run of the same name is resumed with its own settings, changed by ``overrides``, ``steps`` and ``minutes``, and by
    the file or the settings given here. Changing a setting that its checkpoint depends on raises ``RunSettingsError``.
    A checkpoint such as ``first@42`` makes a branch, which needs a ``name``; ``weights_from`` begins a new run with the
    weights of one. ``existing`` may be ``restart`` (start over, and keep the old run under another name) or
    ``overwrite`` (delete it). ``overrides`` are assignments such as ``"learner.learning_rate=1e-3"``.
    """
    assignments = [*as_assignments(overrides), *length_overrides(steps, minutes)]
    plan = plan_run(
        target,
        overrides=assignments,
        name=name,
        root=Path(root),
        existing=existing,
        weights_from=weights_from,
    )
    return plan.trainer(callbacks, interruption).train()


def as_assignments(overrides: Iterable[str]) -> list[str]:
    """Converts overrides to a list. A single text is a mistake, since it would be read letter by letter."""
    if isinstance(overrides, str):
        raise ConfigError(f"overrides = {overrides!r}: it is a list of assignments; write [{overrides!r}]")
    return list(overrides)


def length_overrides(steps: int | None, minutes: float | None) -> list[str]:
    """Makes the overrides for a length. Limits that are not given are removed, also that of games."""
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
    weights_from: str | None = None,
) -> Plan:
    """Finds the settings, and opens or creates the run. No run is overwritten silently."""
    refuse_while_imported()
    if existing not in get_args(Existing):
        raise ConfigError(
            f"existing = {existing!r}: it is resume, restart (the old run is kept under another name) or overwrite (it "
            f"is deleted)"
        )
    if name is not None:
        check_run_name(name)
    if isinstance(target, str | Path) and names_checkpoint(str(target), root):
        return _branch(str(target), overrides, name, root, existing, weights_from)
    source = _source(target, name, root)
    if weights_from is not None:
        return _warm_start(source, weights_from, overrides, name, root, existing)
    if existing != "resume":
        return _begin_anew(source, overrides, name, root, existing)
    if source.run is not None and name not in (None, source.run.name):
        raise RunError(
            f"{source.run.path} is a run and keeps its name; leave out --name {name}, or start a new run from its "
            f"settings: keisei train {source.run.path / CONFIG} --name {name}"
        )
    run = source.run or _existing(root, name or source.name)
    if run is not None:
        return _resume(run, source, overrides)
    return _create(source, overrides, root, name or source.name)


def refuse_while_imported() -> None:
    """Refuses to train while a file is imported for its game: the training would start in every process that plays
    it."""
    file = imported_now()
    if file is not None:
        raise ConfigError(
            f"{file} trains as soon as it is imported, and others import it for its game; put the training below "
            f"if __name__ == '__main__':"
        )


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
        text = str(target)
        begins_another = name not in (None, text) and (text in preset_names() or is_registered(text))
        return find_source(
            text, root, runs=not begins_another
        )  # a run may have the name of its preset or game
    config = target if isinstance(target, TrainConfig) else parse_settings(TrainConfig, target)
    settings = config.model_dump(mode="json", exclude_unset=True)
    return Source(name or run_name(f"{config.env.game}-{config.learner.algorithm}"), settings, "settings")


def _existing(root: Path, name: str) -> RunDirectory | None:
    """Finds the run of this name; None if there is none. Names that lead out of the folder of runs are refused."""
    check_run_name(name)
    return RunDirectory(root / name, root) if (root / name / CONFIG).is_file() else None


def _branch(
    target: str,
    overrides: Sequence[str],
    name: str | None,
    root: Path,
    existing: Existing,
    weights_from: str | None,
) -> Plan:
    """Makes a run that goes on from a checkpoint, or continues it if it was made before."""
    from keisei.policies.players.finding import located_run
    from keisei.training.branching import StartingPoint, began_with  # it imports torch

    run, which = located_run(target, root)
    if weights_from is not None:
        raise ConfigError(f"a branch of {target} has its weights already; leave out --from {weights_from}")
    if name is None:
        raise RunError(
            f"{target} is a checkpoint, and the run that goes on from it needs a name of its own: keisei train "
            f"{target} --name {run.name}-2. To set back the run itself: keisei train {run.path} --rewind {which}"
        )
    old = _existing(root, name)
    if existing == "resume" and old is not None and began_with(old, BRANCH, run, which):
        return _resume(old, run_source(old), overrides)
    start = StartingPoint.of(target, root)
    return _begin_with(
        start.make_branch, start.branch_config(overrides), root, name, existing, is_branch=True
    )


def _warm_start(
    source: Source,
    weights_from: str,
    overrides: Sequence[str],
    name: str | None,
    root: Path,
    existing: Existing,
) -> Plan:
    """Makes a run that begins with the weights of a checkpoint, or continues it if it was made before."""
    from keisei.policies.players.finding import located_run
    from keisei.training.branching import StartingPoint, began_with  # it imports torch

    name = name or source.name
    old, (run, which) = _existing(root, name), located_run(weights_from, root)
    if existing == "resume" and old is not None and began_with(old, WEIGHTS, run, which):
        return _resume(old, source if source.run is None else run_source(old), overrides)
    config = source.config(overrides).resolved()
    start = StartingPoint.of(weights_from, root)
    start.check_fit(config)
    return _begin_with(start.make_warm_start, config, root, name, existing, is_branch=False)


def _begin_with(
    fill: Callable[[RunDirectory, TrainConfig], list[str]],
    config: TrainConfig,
    root: Path,
    name: str,
    existing: Existing,
    *,
    is_branch: bool,
) -> Plan:
    """Creates a run, and fills it with ``fill``. If that fails, there is no run."""
    plan = _create_run(config, root, name, "refuse" if existing == "resume" else existing, is_branch)
    assert plan.new is not None
    try:
        notes = fill(plan.run, config)
    except BaseException:
        plan.new.undo()
        raise
    return replace(plan, notes=tuple(notes))


def _begin_anew(
    source: Source, overrides: Sequence[str], name: str | None, root: Path, existing: Existing
) -> Plan:
    """Starts a run over: with the preset if it has a preset's name, else with its own settings."""
    name = name or source.name
    if source.run is not None:
        root = source.run.root
        if source.name in preset_names():
            source = load_preset(source.name)
    return _create(source, overrides, root, name, "restart" if existing == "restart" else "overwrite")


def _create(
    source: Source, overrides: Sequence[str], root: Path, name: str, existing: ExistingOnDisk = "refuse"
) -> Plan:
    plan = _create_run(source.config(overrides).resolved(), root, name, existing)
    return replace(plan, notes=(source.chosen,) if source.chosen else ())


def _create_run(
    config: TrainConfig, root: Path, name: str, existing: ExistingOnDisk, is_branch: bool = False
) -> Plan:
    """Creates a run. A branch has the members of its league already."""
    _check_others(config, root, is_new=not is_branch)
    new = NewRun.create(root, name, config, existing)
    trust_settings(new.run, config)
    return Plan(new.run, config, new)


def _resume(run: RunDirectory, source: Source, overrides: Sequence[str]) -> Plan:
    """Resumes a run. The trainer checks what has changed, and keeps it when all parts are started."""
    config, unlike = _resumed(run, source, overrides)
    listed = ", ".join(f"{change.setting} {shown(change.old)} ({shown(change.new)})" for change in unlike)
    others = (
        "the preset has others"
        if source.is_preset or source.run is not None
        else "others would be chosen now"
    )
    own = [f"the run keeps its own settings; {others} (in brackets): {listed}"] if unlike else []
    return Plan(run, config, notes=(*own, *_changed_file(run, config)))


def _changed_file(run: RunDirectory, config: TrainConfig) -> list[str]:
    """Makes a note if the file of a run's game has changed since the run was last trained."""
    before = run.config()["env"].get("source_digest")
    if before in (None, config.env.source_digest):
        return []
    file = config.env.game.rpartition(":")[0]
    return [
        f"{file} has changed since this run was last trained; if its rules have, the run goes on with another game"
    ]


def _resumed(run: RunDirectory, source: Source, overrides: Sequence[str]) -> tuple[TrainConfig, list[Change]]:
    """Makes the settings that a run goes on with, and lists those that differ from its preset."""
    if source.run is None and not source.is_standard:
        trust_settings(run, source.config(overrides))  # the user names this code now
        return source.config_over(run_config(run), overrides).resolved(), []
    config = run_source(run).config(overrides).resolved()
    if source.is_standard:
        unlike = _unlike(source, config, overrides)
        # It may be another experiment, which has this name by mistake. A run that is named after its game may have
        # begun with other settings than those that are chosen for it.
        check_same(run, [change for change in unlike if source.is_preset or change.setting == "env.game"])
        return config, unlike
    return config, _unlike(load_preset(run.name), config, overrides) if run.name in preset_names() else []


def _unlike(preset: Source, config: TrainConfig, overrides: Sequence[str]) -> list[Change]:
    """Lists the settings that differ from a preset, without those that are given now."""
    given = tuple(f"{override.partition('=')[0].strip()}." for override in overrides)
    unlike = differences(config.model_dump(mode="json"), preset.written())
    return [change for change in unlike if not f"{change.setting}.".startswith(given)]
