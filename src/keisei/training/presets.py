"""Finds settings for the argument of ``keisei train``: a preset, a file, a run or a game."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.errors import ConfigError
from keisei.runs.directory import CONFIG, RunDirectory, is_config, list_runs, run_at, run_name
from keisei.runs.foreign_documents import LARGEST_SETTINGS, settings_of
from keisei.runs.foreign_files import read_foreign

if TYPE_CHECKING:  # the names of presets need none of the settings
    from keisei.training.settings import TrainConfig

__all__ = [
    "Source",
    "find_source",
    "load_preset",
    "names_checkpoint",
    "preset_names",
    "resolved_presets",
    "run_config",
    "run_source",
]


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
    within: RunDirectory | None = None
    """The run whose folder the settings lie in. They may be a stranger's, so the code that they name must be
    trusted."""
    is_preset: bool = False
    about: str = ""
    """The purpose of a preset, in one line."""
    chosen: str = ""
    """What was chosen for a game, in words, and how to change it."""

    @property
    def is_standard(self) -> bool:
        """Whether these are settings that come with Keisei. A run that began with them keeps what it has changed."""
        return self.is_preset or bool(self.chosen)

    def config(self, overrides: Iterable[str] = ()) -> TrainConfig:
        from keisei.config import apply_overrides, parse_settings
        from keisei.training.settings import TrainConfig

        given = list(overrides)
        config = parse_settings(TrainConfig, apply_overrides(self.settings, given), self.where)
        if self.within is not None:
            self._demand_trust(self.within, config, given)
        return config

    def _demand_trust(self, run: RunDirectory, config: TrainConfig, overrides: list[str]) -> None:
        """Refuses code that the run names and the user does not trust. Code that the overrides name is the user's
        own."""
        from keisei.config import apply_overrides
        from keisei.policies.trust import code_in, demand_trust

        demand_trust(run, config.model_dump(mode="json"), self.where, code_in(apply_overrides({}, overrides)))

    def written(self, overrides: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
        """Lists the settings that are written here or overridden, without any other, and with values for ``auto``. A
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
        """Makes the settings of a run (``own``), with what is written here in place of them."""
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


def resolved_presets() -> dict[str, dict[str, Any]]:
    """Gets all settings of each preset, with values for ``auto``."""
    return {name: load_preset(name).config().resolved().model_dump(mode="json") for name in preset_names()}


def load_preset(name: str) -> Source:
    if name not in preset_names():
        from keisei.games.options import did_you_mean

        raise ConfigError(
            f"no preset is named {name!r}{did_you_mean(name, preset_names())}. Presets: {', '.join(preset_names())}"
        )
    text = _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    about = text.splitlines()[0].removeprefix("#").strip()
    return Source(name, _table(text, f"preset {name}"), f"preset {name}", is_preset=True, about=about)


def find_source(target: str, root: Path, *, runs: bool = True) -> Source:
    """Finds a settings file, a preset, a run by its path or its name under ``root``, or settings for a game. With
    ``runs=False``, it finds no run."""
    path = Path(target)
    if path.is_file() and path.suffix != ".py":
        return _from_file(path)
    if runs and (run := run_at(target, root)):
        return run_source(run)
    if path.suffix in (".yaml", ".yml"):
        raise ConfigError(f"there is no file {target}; presets are {', '.join(preset_names())}")
    if target in preset_names():
        return load_preset(target)
    from keisei.training.game_targets import meant_game

    game = meant_game(target)
    if game is None:
        raise _unknown(target, root)
    return _of_game(game, target)


def _of_game(game: str, target: str) -> Source:
    """Chooses settings for a game. The run is named after the game."""
    from keisei.games.registry import make_game
    from keisei.training.chosen_settings import chosen_in_words, chosen_settings

    spec, settings = make_game(game).spec, chosen_settings(game)
    made_for = [name for name in preset_names() if load_preset(name).settings["env"]["game"] == target]
    presets = f" Presets made for it: {', '.join(made_for)}." if made_for else ""
    chosen = f"{chosen_in_words(settings, spec)}.{presets} To change them: keisei config {target} > mine.yaml"
    return Source(run_name(spec.name) or "game", settings, f"settings chosen for {target}", chosen=chosen)


def _unknown(target: str, root: Path) -> ConfigError:
    from keisei.games.options import did_you_mean
    from keisei.games.registry import registered_games

    runs = [run.name for run in list_runs(root)]
    near = did_you_mean(target, [*preset_names(), *runs, *registered_games()])
    return ConfigError(
        f"{target!r} is neither a preset nor a settings file nor a run nor a game{near}. "
        f"Presets: {', '.join(preset_names())}. Runs in {root}: {', '.join(runs) or 'none'}. "
        f"Games: {', '.join(sorted(registered_games()))}, or one of your own as module:Class or FILE.py"
    )


def names_checkpoint(target: str, root: Path) -> bool:
    """Checks if a text names one checkpoint of a run, as ``first@42`` does."""
    name, _, which = target.rpartition("@")
    whole = Path(target).is_file() or run_at(target, root) is not None
    return bool(which) and not whole and run_at(name, root) is not None


def run_config(run: RunDirectory) -> TrainConfig:
    """Reads the settings that a run was last trained with."""
    return run_source(run).config()


def run_source(run: RunDirectory) -> Source:
    """Reads the settings that a run was last trained with, as they are written."""
    return Source(run.name, run.config(), str(run.path / CONFIG), run, within=run)


def _from_file(path: Path) -> Source:
    within = RunDirectory(path.parent) if is_config(path) else None
    place = path if within is not None else path.resolve()  # a file of one's own may be a link
    try:
        text = read_foreign(place.parent, place.name, LARGEST_SETTINGS).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as settings: {error}") from error
    return Source(path.stem, _table(text, str(path)), str(path), within=within)


def _table(text: str, where: str) -> Mapping[str, Any]:
    try:
        return settings_of(text) or {}
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _folder() -> Any:
    return files("keisei") / "configs"
