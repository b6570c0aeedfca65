"""Settings by name, from a file, or from a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from training_for_tests import TINY, tiny

from keisei.config import parse_settings
from keisei.errors import ConfigError
from keisei.policies.networks import build_network
from keisei.runs.directory import RunDirectory
from keisei.training.presets import find_source, load_preset, preset_names
from keisei.training.settings import TrainConfig

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_makes_its_game_and_its_network(name: str) -> None:
    source = load_preset(name)
    config = source.config().resolved()
    assert source.name == name
    assert source.about.endswith(".")
    spec = config.env.make(batch=1, seed=0).spec
    assert sum(weight.numel() for weight in build_network(config.model, spec, 0).parameters()) > 0
    assert config.placed().parallel.num_workers != "auto"
    assert config.placed().run.learner_threads != "auto"
    assert config.run.steps or config.run.minutes


@pytest.mark.parametrize("name", preset_names())
def test_a_resolved_preset_is_the_same_after_writing_and_reading(name: str) -> None:
    config = load_preset(name).config().resolved()
    text = yaml.safe_dump(config.model_dump(mode="json"))
    assert parse_settings(TrainConfig, yaml.safe_load(text)) == config
    assert config.resolved() == config


def test_presets_lie_where_people_look_for_them() -> None:
    assert preset_names() == sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


def test_a_near_name_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"no preset is named 'tictactoe-pop'.*did you mean 'tictactoe-ppo'"
    ):
        load_preset("tictactoe-pop")
    message = r"is neither a preset nor a settings file nor a run.*did you mean 'tictactoe-ppo'.*Presets: "
    with pytest.raises(ConfigError, match=message):
        find_source("tictactoe-pop", tmp_path)


def test_runs_are_suggested_too(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "thursday", tiny())
    with pytest.raises(ConfigError, match=r"did you mean 'thursday'.*Runs in .*: thursday"):
        find_source("thursdya", tmp_path)


def test_a_file_is_named_after_itself(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(dict(TINY)))
    source = find_source(str(path), tmp_path)
    assert (source.name, source.where, source.run) == ("mine", str(path), None)
    assert source.config().resolved() == tiny()
    assert source.config(["run.seed=7"]).run.seed == 7


def test_a_run_is_found_by_its_path_and_by_its_name(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "mine", tiny())
    assert find_source("mine", tmp_path).run == run
    assert find_source(str(run.path), tmp_path / "elsewhere").run == run
    assert find_source("mine", tmp_path).config() == tiny()


def test_a_run_comes_before_the_preset_of_its_name(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "tictactoe-ppo", tiny())
    assert find_source("tictactoe-ppo", tmp_path).run == run
    assert find_source("tictactoe-ppo", tmp_path / "elsewhere").run is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1,", r"mine\.yaml: it is not valid YAML"),
        (b"- a\n- b\n", r"mine\.yaml: it must hold a table"),
        (b"\xff\xfe\x00", r"mine\.yaml cannot be read as settings"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        find_source(str(path), tmp_path)


def test_a_file_that_is_too_large_for_settings_is_not_read(tmp_path: Path) -> None:
    """A file with a hole takes no room on a disk, and all memory when it is read."""
    path = tmp_path / "mine.yaml"
    path.touch()
    os.truncate(path, 20 << 30)
    with pytest.raises(
        ConfigError, match=r"mine\.yaml cannot be read as settings: .* has 21,474,836,480 bytes"
    ):
        find_source(str(path), tmp_path)


def test_a_file_of_ones_own_may_be_a_link_and_that_of_a_run_may_not(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "run", tiny())
    (tmp_path / "mine.yaml").symlink_to(run.path / "config.yaml")
    assert find_source(str(tmp_path / "mine.yaml"), tmp_path).config() == tiny()
    (run.path / "config.1.yaml").symlink_to("config.yaml")
    with pytest.raises(ConfigError, match=r"config\.1\.yaml is a link"):
        find_source(str(run.path / "config.1.yaml"), tmp_path)


def test_an_empty_file_means_all_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("# nothing\n")
    assert find_source(str(path), tmp_path).config() == TrainConfig()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file mine\.yaml; presets are "):
        find_source("mine.yaml", tmp_path)


def test_all_problems_are_told_at_once() -> None:
    overrides = ["learner.clipp=0.1", "parallel.horizon=-3", "evaluation.games=3", "modell=4"]
    with pytest.raises(ConfigError) as caught:
        load_preset("tictactoe-ppo").config(overrides)
    message = str(caught.value)
    assert message.startswith("4 problems in preset tictactoe-ppo:")
    assert "learner.clipp: unknown setting; did you mean clip?" in message
    assert "parallel.horizon = -3: must be a whole number from 1 to 1048576" in message
    assert "evaluation.games = 3: must be a whole number from 2 to 1000000, a multiple of 2" in message
    assert "modell: unknown setting; did you mean model?" in message


def test_settings_that_do_not_fit_together_are_refused() -> None:
    source = load_preset("tictactoe-ppo")
    with pytest.raises(ConfigError, match=r"learner\.minibatch_size = 600 is more than the 512 decisions"):
        source.config(
            ["parallel.tables=1", "parallel.games=8", "parallel.horizon=64", "learner.minibatch_size=600"]
        )
    with pytest.raises(
        ConfigError, match=r"run\.steps, run\.minutes and run\.episodes are all null: set one of them"
    ):
        source.config(["run.steps=null", "run.minutes=null"])
