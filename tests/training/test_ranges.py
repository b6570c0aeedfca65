"""Every number among the settings has a lowest and a highest value, and with each of them a run starts and ends, or is
refused before anything is written."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from numbers_for_tests import Number, numbers_of

from keisei import train
from keisei.config import Settings, parse_settings
from keisei.errors import ConfigError, KeiseiError
from keisei.games.ludo.game import LudoOptions
from keisei.games.shogi.game import ShogiOptions
from keisei.training.regimes.learner_settings import DQNSettings, IndependentSettings, PPOSettings
from keisei.training.settings import TrainConfig

SMALL: Mapping[str, Any] = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 8, "num_layers": 1},
    "parallel": {"backend": "inline", "num_workers": 1, "tables": 2, "games": 2, "horizon": 16},
    "evaluation": {"every": 64, "games": 2, "opponents": ["random"], "records": 1},
    "run": {"steps": 128, "learner_threads": 1, "checkpoint_every": 1},
}
REGIMES: Mapping[str, Mapping[str, Any]] = {
    "ppo": {"regime": "ppo", "minibatch_size": 32, "epochs": 1},
    "dqn": {"regime": "dqn", "minibatch_size": 16, "replay": {"capacity": 512, "learning_starts": 16}},
    "independent": {
        "regime": "independent",
        "dqn": {"minibatch_size": 16},
        "ppo": {"minibatch_size": 16},
        "replay": {"capacity": 512, "learning_starts": 16},
    },
}
CLASSES = {"ppo": PPOSettings, "dqn": DQNSettings, "independent": IndependentSettings}
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "rho_clip": {"parallel.mode": "async"},
    "trace_clip": {"parallel.mode": "async"},
    "alpha": {"learner.replay.prioritised": True},
    "beta": {"learner.replay.prioritised": True},
    "final_beta": {"learner.replay.prioritised": True},
    "smallest_error": {"learner.replay.prioritised": True},
    "megabytes": {"learner.replay.capacity": None},
    "ppo": {"learner.algorithm": "ppo"},
    "league": {"league.enabled": True, "league.save_steps": 64},
}
"""What a setting needs to have an effect."""
LONG = {
    *("steps", "minutes", "episodes", "episodes_per_worker", "epochs", "learning_steps"),
    *("sample_to_insert_ratio", "evaluation.games"),
}
"""With their highest values a run is as it should be, and takes days."""
LARGE = {
    *(
        "tables",
        "parallel.games",
        "horizon",
        "queue_maxsize",
        "hidden_dim",
        "num_layers",
        "channels",
        "blocks",
    ),
    *("quantiles", "minibatch_size"),
}
"""With their highest values a run needs a large machine."""


def every_number() -> list[tuple[str, Number]]:
    common = [("ppo", number) for number in numbers_of(TrainConfig) if number.place[0] != "learner"]
    learners = [
        (regime, number) for regime, cls in CLASSES.items() for number in numbers_of(cls, ("learner",))
    ]
    return common + learners


def options_of_games() -> list[type[Settings]]:
    worlds = ("cleanup", "matrix_games", "options", "stag_hunt", "tag", "treasure_hunt")
    modules = [import_module(f"keisei.games.worlds.{name}") for name in worlds]
    found = {value for module in modules for value in vars(module).values() if _is_options(value)}
    return [ShogiOptions, LudoOptions, *sorted(found, key=str)]


def _is_options(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Settings) and value.__name__.endswith("Options")


@pytest.mark.parametrize(("regime", "number"), every_number(), ids=lambda each: getattr(each, "path", each))
def test_every_number_has_both_bounds(regime: str, number: Number) -> None:
    assert number.lowest is not None
    assert number.highest is not None
    if number.kind is float and number.lowest > 0:
        assert number.lowest >= 1e-30, "much smaller ones are 0 in 32 bits"


def test_the_walk_finds_what_is_there() -> None:
    paths = {number.path for _, number in every_number()}
    assert len(paths) > 110
    assert {
        "parallel.table_overrides.[key]",
        "parallel.seating.opponents.[].share",
        "run.stop_at.[]",
    } <= paths
    assert {
        "learner.ppo.clip",
        "learner.replay.alpha",
        "learner.fixed_agents.[]",
        "env.reward_structure.[]",
    } <= paths


@pytest.mark.parametrize("options", options_of_games(), ids=lambda cls: cls.__name__)
def test_numbers_of_games_have_both_bounds(options: type[Settings]) -> None:
    for number in numbers_of(options):
        assert number.lowest is not None, number.path
        assert number.highest is not None, number.path


def extremes() -> list[Any]:
    found = []
    for regime, number in every_number():
        if "[" in number.path:
            continue
        for end, value in (("lowest", number.lowest), ("highest", number.highest)):
            size = {number.place[-1], number.path}
            if value is not None and not (end == "highest" and size & (LONG | LARGE)):
                found.append(
                    pytest.param(regime, number, number.kind(value), id=f"{regime}-{number.path}-{end}")
                )
    return found


def settings_with(regime: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    settings = copy.deepcopy({**SMALL, "learner": REGIMES[regime]})
    for path, value in changes.items():
        *sections, name = path.split(".")
        table = settings
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return settings


def runs_or_is_refused(root: Path, settings: Mapping[str, Any]) -> None:
    try:
        assert train(settings, root=root, name="run").outcome == "finished"
    except KeiseiError:
        assert not (root / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("regime", "number", "value"), extremes())
def test_a_run_with_an_extreme_number(tmp_path: Path, regime: str, number: Number, value: float) -> None:
    beside = [changes for name, changes in BESIDE.items() if name in number.place]
    changes = {path: given for each in beside for path, given in each.items()}
    runs_or_is_refused(tmp_path, settings_with(regime, {**changes, number.path: value}))


@pytest.mark.parametrize(
    ("regime", "changes"),
    [
        ("ppo", {"run.seed": 2**63 - 1}),
        ("ppo", {"learner.entropy_weight": 1e6}),
        ("ppo", {"learner.clip": 1e12, "learner.value_clip": 1e12, "learner.value_weight": 1e6}),
        ("ppo", {"evaluation.temperature": 1e-6, "parallel.temperature": 1e-6}),
        ("ppo", {"evaluation.temperature": 1e6, "parallel.temperature": 1e6}),
        ("ppo", {"env.discount": 1e-9, "learner.advantage_share": 1e-9}),
        ("ppo", {"evaluation.opening_plies": 1000}),
        ("ppo", {"model.hidden_dim": 65536, "model.num_layers": 64}),
        ("ppo", {"parallel.tables": 4096, "parallel.games": 65536, "parallel.horizon": 1 << 20}),
        (
            "dqn",
            {"learner.epsilon_decay": "exponential", "learner.epsilon": 1e-9, "learner.final_epsilon": 1.0},
        ),
        ("dqn", {"learner.huber": 1e12, "learner.max_grad_norm": 1e12, "learner.tau": 1e-9}),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, dict) else each,
)
def test_extremes_that_ended_runs(tmp_path: Path, regime: str, changes: Mapping[str, Any]) -> None:
    runs_or_is_refused(tmp_path, settings_with(regime, changes))


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("evaluation.temperature", 1e-300, "must be 0 (the best action), or from 1e-06 to 1000000"),
        ("evaluation.temperature", 1e300, "must be a number from 0 to 1e+06"),
        ("parallel.temperature", 0, "must be a number from 1e-06 to 1e+06"),
        ("evaluation.games", 10**12, "must be a whole number from 2 to 1000000, a multiple of 2"),
        ("evaluation.opening_plies", 10**12, "must be a whole number from 0 to 1000 or null"),
        ("learner.clip", 1e300, "must be a number from 1e-09 to 1e+12"),
        ("learner.clip", 5e-324, "must be a number from 1e-09 to 1e+12"),
        ("learner.clip", 10**400, "must be a number from 1e-09 to 1e+12"),
        ("run.steps", 10**400, "must be a whole number from 1 to 1000000000000000000 or null"),
        ("run.device", "x" * 300, "must be a text, of length 64 or less"),
        ("env.reward_structure", {"win": 1e300}, "must be a number from -1e+09 to 1e+09"),
        ("parallel.table_overrides", {-1: {}}, "this name must be a whole number at least 0 and below 4096"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_what_is_out_of_range_is_refused_with_the_range(path: str, value: object, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TrainConfig, settings_with("ppo", {path: value}))
    assert told in str(caught.value)
    assert path in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_opening_that_random_games_do_not_outlast_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="end within the 9 random plies of their opening; lower opening_plies"
    ):
        train(settings_with("ppo", {"evaluation.opening_plies": 9}), root=tmp_path, name="run")
    assert not (tmp_path / "run").exists()
    train(settings_with("ppo", {"evaluation.opening_plies": 7}), root=tmp_path, name="run")


def test_a_network_that_does_not_fit_into_memory_is_refused(tmp_path: Path) -> None:
    changes = {"model.hidden_dim": 65536, "model.num_layers": 64}
    with pytest.raises(
        ConfigError, match=r"270,582,939,648 weights .* MB are left; make hidden_dim or num_layers"
    ):
        train(settings_with("ppo", changes), root=tmp_path, name="run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "device",
    ["meta", "xla", "vulkan", "cuda:99", "hpu", "mkldnn", "opengl", "lazy", "", "CPU", "cpu\n", "\x1b[31m"],
)
def test_a_device_that_cannot_compute_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.device = .*take cpu or auto$") as caught:
        train(settings_with("ppo", {"run.device": device}), root=tmp_path, name="run")
    assert str(caught.value).isprintable()
    assert not (tmp_path / "run").exists()


def test_a_processor_with_a_number_is_the_processor(tmp_path: Path) -> None:
    assert (
        train(settings_with("ppo", {"run.device": "cpu:7"}), root=tmp_path, name="run").outcome == "finished"
    )
