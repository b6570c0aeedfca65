"""Settings of an existing run: which may change freely, which may change and are announced, and which never change.

A run continues from a checkpoint, and the checkpoint holds the settings that it was trained with. ``check_changes``
compares them with the wanted settings before anything is written. What may happen to a setting stands beside it, in its
class (``config.Rule``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.config import Rule, classes_of
from keisei.errors import RunError, RunSettingsError
from keisei.runs.directory import CONFIG, RunDirectory
from keisei.training.presets import run_config
from keisei.training.settings import LENGTH, TrainConfig

if TYPE_CHECKING:  # a checkpoint is made of tensors, and torch takes a second to import
    from keisei.runs.checkpoint import Checkpoint

__all__ = [
    "Change",
    "check_changes",
    "check_same",
    "differences",
    "rule_of",
    "trained_with",
    "way_back",
]


UNSET = "not set"


@dataclass(frozen=True)
class Change:
    """One setting with its old and its new value."""

    setting: str
    """Its name with its section, such as ``learner.learning_rate``."""
    old: Any
    new: Any
    rule: Rule

    def __str__(self) -> str:
        return f"{self.setting} {shown(self.old)} → {shown(self.new)}"


def rule_of(section: str, name: str) -> Rule:
    """Gets the rule for changes of a setting from its class. A setting that no class knows never changes."""
    field = TrainConfig.model_fields.get(section)
    for kind in () if field is None else classes_of(field.annotation):
        if name in kind.model_fields:
            return kind.rule_of(name)
    return Rule.NEVER


def differences(old: Mapping[str, Any], new: Mapping[str, Mapping[str, Any]]) -> list[Change]:
    """Lists the settings of ``new`` that differ from ``old``. What ``old`` does not name, since an older version of
    Keisei has written it, has the default value."""
    usual = TrainConfig().model_dump(mode="json")
    return [
        Change(path, before, after, rule_of(section, name))
        for section, settings in new.items()
        for name in settings
        for path, before, after in _different(
            f"{section}.{name}",
            _value(old, section, name, _value(usual, section, name, UNSET)),
            _value(new, section, name, UNSET),
        )
    ]


def check_changes(run: RunDirectory, checkpoint: Checkpoint, config: TrainConfig) -> list[Change]:
    """Lists the changes since a checkpoint that are to be announced. Raises ``RunSettingsError`` if a setting would
    change that never may, or if the new length leaves nothing to train."""
    changes = differences(trained_with(run, checkpoint), config.model_dump(mode="json"))
    misfits = _misfits(run, checkpoint)
    if any(change in misfits for change in changes):
        title = f"{run.path / CONFIG} does not fit the run's checkpoint of update {checkpoint.update}:"
        raise RunSettingsError(_listed(title, misfits) + way_back(run, checkpoint).strip())
    check_same(run, changes)
    if any(change.setting in [f"run.{name}" for name in LENGTH] for change in changes):
        _check_length(run, checkpoint, config)
    return [change for change in changes if change.rule is Rule.ANNOUNCED]


def check_same(run: RunDirectory, changes: Sequence[Change]) -> None:
    """Refuses changes of settings that never change."""
    refused = _never(changes)
    if refused:
        title = f"run {run.path} cannot change these settings, since its weights and games depend on them:"
        raise RunSettingsError(
            _listed(title, refused)
            + f"Nothing was written. Leave them out to continue the run: keisei train {run.path}; or start a new run "
            f"with them: --restart keeps the old one under another name, --name OTHER leaves it alone"
        )


def way_back(run: RunDirectory, checkpoint: Checkpoint) -> str:
    """Says how a run gets back the settings that fit a checkpoint, if its config.yaml does not have them; else empty.
    Older versions of Keisei wrote settings before they were checked."""
    misfits = _misfits(run, checkpoint)
    if not misfits:
        return ""
    trained = trained_with(run, checkpoint)
    for path in run.earlier_configs():
        kept = _read(run, path)
        if all(_value(kept, *_names(change)) == _value(trained, *_names(change)) for change in misfits):
            return f" The settings that fit are kept in {path.name}; take them back: cp {path} {run.path / CONFIG}"
    values = ", ".join(f"{change.setting}: {shown(change.old)}" for change in misfits)
    return f" Write the values that fit into {run.path / CONFIG} again: {values}"


def shown(value: object) -> str:
    """Writes a value as ``--set`` takes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _check_length(run: RunDirectory, checkpoint: Checkpoint, config: TrainConfig) -> None:
    transitions, seconds, games = (
        float(checkpoint.counters.get(name, 0)) for name in ("transitions", "seconds", "games")
    )
    steps, minutes, episodes = config.run.steps, config.run.minutes, config.run.episodes
    if steps is not None and transitions >= steps:
        raise RunSettingsError(
            f"run {run.path} has {transitions:,.0f} transitions already, so there is nothing to train up to "
            f"{steps:,}. Nothing was written; give more than that, such as --steps {2 * int(transitions)}"
        )
    if minutes is not None and seconds >= 60 * minutes:
        raise RunSettingsError(
            f"run {run.path} has been trained for {seconds / 60:.1f} minutes already, so there is nothing to train up "
            f"to {minutes:g}. Nothing was written; give more than that, such as --minutes {seconds / 30:.0f}"
        )
    if episodes is not None and games >= episodes:
        raise RunSettingsError(
            f"run {run.path} has finished {games:,.0f} games already, so there is nothing to train up to "
            f"{episodes:,}. Nothing was written; give more than that, such as --set run.episodes={2 * int(games)}"
        )


def trained_with(run: RunDirectory, checkpoint: Checkpoint) -> Mapping[str, Any]:
    """Gets the settings that a checkpoint was trained with, or those of config.yaml if an older version of Keisei has
    saved none."""
    from keisei.policies.players.player_document import trained_settings  # it imports torch

    found = trained_settings(checkpoint, run)
    return run_config(run).resolved().model_dump(mode="json") if found is None else found[0]


def _misfits(run: RunDirectory, checkpoint: Checkpoint) -> list[Change]:
    """Lists the settings of config.yaml that do not fit a checkpoint."""
    stored = run_config(run).model_dump(mode="json")
    return _never(differences(trained_with(run, checkpoint), stored))


def _read(run: RunDirectory, path: Path) -> Mapping[str, Any]:
    """Reads an earlier configuration; empty if it is damaged."""
    try:
        return run.kept_config(path.name)
    except RunError:
        return {}


def _never(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.rule is Rule.NEVER]


def _listed(title: str, changes: Sequence[Change]) -> str:
    return "\n".join([title, *(f"  {change}" for change in changes), ""])


def _value(settings: Mapping[str, Any], section: str, name: str, missing: Any = None) -> Any:
    of_section = settings.get(section)
    return of_section.get(name, missing) if isinstance(of_section, Mapping) else missing


def _names(change: Change) -> tuple[str, str]:
    section, name = change.setting.split(".")[:2]
    return section, name


def _different(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields the values that differ, with their paths. It looks into tables, such as the options of a game."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _different(f"{path}.{key}", old.get(key, UNSET), new.get(key, UNSET))
    elif old != new:
        yield path, old, new
