"""Finds settings for the argument of ``keisei train``: a preset, a file or a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from keisei.errors import ConfigError
from keisei.runs.directory import CONFIG, RunDirectory, list_runs

if TYPE_CHECKING:  # the names of presets need none of the settings
    from keisei.training.settings import TrainConfig

__all__ = ["Source", "find_source", "load_preset", "preset_names", "run_config", "run_source"]


@dataclass(frozen=True)
class Source:
    """Where settings come from."""

    name: str
    """The default name of a new run."""
    settings: Mapping[str, Any]
    """The settings as written, without defaults and overrides."""
    where: str
    """The source in words, for messages."""
    run: RunDirectory | None = None
    """The run itself, if the source is a run."""
    is_preset: bool = False
    about: str = ""
    """The purpose of a preset, in one line."""

    def config(self, overrides: Iterable[str] = ()) -> TrainConfig:
        from keisei.config import apply_overrides, parse_settings
        from keisei.training.settings import TrainConfig

        return parse_settings(TrainConfig, apply_overrides(self.settings, overrides), self.where)

    def written(self, overrides: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
        """Gives the settings that are written here or overridden, without any other, and with values for ``auto``. A
        section that is written as null has all its settings."""
        from keisei.config import apply_overrides
        from keisei.training.settings import LENGTH

        resolved = self.config(overrides).resolved().model_dump(mode="json")
        named = {
            section: [*(resolved[section] if names is None else names)]
            for section, names in apply_overrides(self.settings, overrides).items()
        }
        if {*LENGTH} & {*named.get("run", ())}:
            named["run"] += LENGTH
        return {
            section: {name: resolved[section][name] for name in names} for section, names in named.items()
        }

    def config_over(self, own: TrainConfig, overrides: Iterable[str] = ()) -> TrainConfig:
        """Gives the settings of a run (``own``), with what is written here in place of them."""
        from keisei.config import parse_settings
        from keisei.training.settings import TrainConfig

        merged = own.model_dump(mode="json")
        for section, settings in self.written(overrides).items():
            merged[section] |= settings
        return parse_settings(TrainConfig, merged, self.where)


def preset_names() -> list[str]:
    return sorted(
        path.name.removesuffix(".yaml") for path in _folder().iterdir() if path.name.endswith(".yaml")
    )


def load_preset(name: str) -> Source:
    if name not in preset_names():
        from keisei.games.options import did_you_mean

        raise ConfigError(
            f"no preset is named {name!r}{did_you_mean(name, preset_names())}. Presets: {', '.join(preset_names())}"
        )
    text = _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    about = text.splitlines()[0].removeprefix("#").strip()
    return Source(name, _table(text, f"preset {name}"), f"preset {name}", is_preset=True, about=about)


def find_source(target: str, root: Path) -> Source:
    """Finds a settings file, a preset, or a run by its path or its name under ``root``."""
    path = Path(target)
    if path.is_file():
        return _from_file(path)
    for candidate in (path, root / target):
        if (candidate / CONFIG).is_file():
            return run_source(RunDirectory.open(candidate))
    if path.suffix in (".yaml", ".yml"):
        raise ConfigError(f"there is no file {target}; presets are {', '.join(preset_names())}")
    if target in preset_names():
        return load_preset(target)
    from keisei.games.options import did_you_mean

    runs = [run.name for run in list_runs(root)]
    near = did_you_mean(target, [*preset_names(), *runs])
    raise ConfigError(
        f"{target!r} is neither a preset nor a settings file nor a run{near}. "
        f"Presets: {', '.join(preset_names())}. Runs in {root}: {', '.join(runs) or 'none'}"
    )


def run_config(run: RunDirectory) -> TrainConfig:
    """Reads the settings that a run was last trained with."""
    return run_source(run).config()


def run_source(run: RunDirectory) -> Source:
    """Gives the settings that a run was last trained with, as they are written."""
    return Source(run.name, run.config(), str(run.path / CONFIG), run)


def _from_file(path: Path) -> Source:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as settings: {error}") from error
    return Source(path.stem, _table(text, str(path)), str(path))


def _table(text: str, where: str) -> Mapping[str, Any]:
    try:
        table = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not valid YAML: {error}") from error
    if not isinstance(table, dict | None):
        raise ConfigError(f"{where} must hold a table of settings (key: value)")
    return table or {}


def _folder() -> Any:
    return files("keisei") / "configs"
