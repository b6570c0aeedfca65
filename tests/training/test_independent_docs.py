"""The page about independent agents tells the truth: its code, its settings and its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from keisei.cli.main import COMMANDS
from keisei.config import parse_settings
from keisei.training.presets import preset_names
from keisei.training.regimes.learner_settings import IndependentSettings
from keisei.training.settings import TrainConfig

PAGE = (Path(__file__).parents[2] / "docs" / "independent.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_python_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "docs/independent.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_settings_are_those_of_the_regime() -> None:
    section = PAGE.partition("## Settings\n")[2].partition("## Training")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", section, flags=re.MULTILINE))))
    assert named == set(IndependentSettings.model_fields) - {"regime", "parts"}
    for name, default in re.findall(r"^\| `(\w+)` \| (\w+) \|", section, flags=re.MULTILINE):
        assert IndependentSettings.model_fields[name].default == yaml.safe_load(default)


def test_the_example_of_different_agents_is_valid() -> None:
    (text,) = blocks("yaml")
    config = parse_settings(
        TrainConfig, {"env": {"game": "treasurehunt", "options": {"agents": 4}}, **yaml.safe_load(text)}
    )
    learner = config.resolved().learner
    assert isinstance(learner, IndependentSettings)
    assert learner.algorithm_of(0) == "ppo"


def test_the_commands_exist() -> None:
    for line in "".join(blocks("sh")).splitlines():
        command, target = line.split()[1:3]
        assert command in COMMANDS
        assert target in (*preset_names(), "independent") or not target.endswith("-independent")


@pytest.mark.parametrize("preset", [name for name in preset_names() if name.endswith("-independent")])
def test_presets_of_the_regime_fit_their_worlds(preset: str) -> None:
    from keisei.training.presets import load_preset

    config = load_preset(preset).config().resolved()
    assert config.learner.regime == "independent"
