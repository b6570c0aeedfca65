"""``keisei config`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.config import parse_settings
from keisei.runs.directory import RunDirectory
from keisei.training.presets import load_preset, preset_names
from keisei.training.settings import TrainConfig


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["config", *arguments])


def test_presets_are_listed_with_what_they_are_for() -> None:
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == preset_names()
    for line, name in zip(lines, preset_names(), strict=True):
        assert line.split(maxsplit=1)[1] == load_preset(name).about


@pytest.mark.parametrize("explain", [[], ["--explain"]])
@pytest.mark.parametrize("name", preset_names())
def test_what_is_printed_reads_back_as_the_same_settings(name: str, explain: list[str]) -> None:
    result = run(name, *explain)
    assert result.exit_code == 0, result.output
    settings = yaml.safe_load(result.stdout)
    assert parse_settings(TrainConfig, settings) == load_preset(name).config().resolved()
    assert set(settings) == set(TrainConfig.model_fields)


def test_what_is_printed_can_be_trained_with(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(run("tictactoe-ppo", "--set", "run.seed=3", "--explain").stdout)
    assert run(str(file)).stdout == run("tictactoe-ppo", "--set", "run.seed=3").stdout


@pytest.mark.parametrize("target", ["connect-four", "openspiel:kuhn_poker", "FILE"])
def test_settings_chosen_for_a_game_can_be_trained_with(target: str, tmp_path: Path) -> None:
    target = target.replace("FILE", str(Path(__file__).parents[2] / "examples" / "hex.py"))
    file = tmp_path / "mine.yaml"
    file.write_text(run(target, "--explain").stdout)
    first = file.read_text().splitlines()[0]
    assert first.startswith("# settings chosen for ")
    assert yaml.safe_load(run(str(file)).stdout) == yaml.safe_load(run(target).stdout)


def test_every_setting_is_explained_above_it() -> None:
    lines = run("tictactoe-ppo", "--explain").stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if line.strip().startswith("horizon:"))
    assert (
        lines[place - 1].strip()
        == "# Steps of a table that make up one slab. An update looks this far ahead."
    )
    assert max(map(len, lines)) <= 120


def test_a_setting_can_be_changed() -> None:
    settings = yaml.safe_load(run("tictactoe-ppo", "--set", "learner.learning_rate=1e-4").stdout)
    assert settings["learner"]["learning_rate"] == 1e-4


def test_a_run_shows_its_own_settings(tmp_path: Path) -> None:
    config = load_preset("tictactoe-ppo").config(["run.seed=9"]).resolved()
    RunDirectory.create(tmp_path, "mine", config)
    settings = yaml.safe_load(run("mine", "--root", str(tmp_path)).stdout)
    assert parse_settings(TrainConfig, settings) == config


def test_the_schema_is_json_with_every_setting() -> None:
    schema = json.loads(run("--schema").stdout)
    assert set(schema["properties"]) == set(TrainConfig.model_fields)
    learner = schema["$defs"]["PPOSettings"]["properties"]
    assert learner["clip"]["description"].startswith("How far the probability ratio may move")


def test_what_is_not_known_is_exit_code_2() -> None:
    result = run("tictactoe-pop")
    assert result.exit_code == 2
    assert "did you mean 'tictactoe-ppo'" in result.stderr
    assert run("tictactoe-ppo", "--set", "learner.clipp=1").exit_code == 2
