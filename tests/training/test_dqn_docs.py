"""The page about DQN tells the truth: its code, its tables and its commands."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from keisei import train_dqn
from keisei.cli.main import app
from keisei.parallel import ParallelManager
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import ModelConfig
from keisei.policies.players.inference_policy import InferencePolicy
from keisei.training.dqn_agent import DQNAgent
from keisei.training.regimes.learner_settings import DQNSettings
from keisei.training.settings import TrainConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dqn.md").read_text()
SMALL = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 8, "num_layers": 1},
    "learner": {"regime": "dqn", "minibatch_size": 32, "replay": {"capacity": 1000, "learning_starts": 100}},
    "parallel": {"backend": "inline", "tables": 2, "games": 4, "horizon": 16, "num_workers": 1},
    "run": {"steps": 512, "device": "cpu"},
    "evaluation": {"every": 0, "opponents": []},
}


def rows_of(title: str) -> list[list[str]]:
    """The rows of the first table of a section, without its head."""
    section = re.split(r"^## ", PAGE.partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]
    table = re.search(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


CALLS = [re.findall(r"`([^`]+)`", here)[0] for _, here in rows_of("From other names")]
COMMANDS = [call for call in CALLS if call.startswith("keisei ")]
SNIPPETS = [call for call in CALLS if not call.startswith("keisei ")]


def test_the_code_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)):
        exec(compile(block, f"docs/dqn.md, block {number}", "exec"), namespace)


def test_the_calls_run_in_their_order(tmp_path: Path) -> None:
    names: dict[str, Any] = {
        "train_dqn": partial(train_dqn, overrides=["parallel.backend=inline", "model.hidden_dim=8"]),
        "InferencePolicy": InferencePolicy,
        "ParallelManager": ParallelManager,
        "Behaviour": Behaviour,
        "DQNAgent": DQNAgent,
        "root": str(tmp_path),
    }
    for snippet in SNIPPETS:
        exec(compile(snippet, f"docs/dqn.md, {snippet}", "exec"), names)
    assert names["version"] == 4, "other weights, and then the same ones with another epsilon, twice"
    assert names["report"].numbers["train/gradient_steps"] == 2
    assert len(names["match"].games) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tictactoe.yaml").write_text(yaml.safe_dump(SMALL))
    words = command.split()[1:]
    if words[0] == "bench":
        monkeypatch.syspath_prepend(ROOT)
        dqn = importlib.import_module("benchmarks.dqn")
        quick = ("learner.minibatch_size=8", "model.hidden_dim=8", "parallel.tables=2", "parallel.games=4")
        settings = partial(dqn.Settings, updates=2, overrides=quick, presets=("connect-four-dqn",))
        monkeypatch.setattr(dqn, "Settings", settings)
        words += ["--rounds", "1"]
    if words[0] == "verify":
        words += ["--workers", "1,2", "--rounds", "2", "--kills", "0"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def test_the_arguments_and_their_defaults_are_those_of_the_function() -> None:
    told = {}
    for names, defaults, _ in rows_of("In one call"):
        told.update(zip(re.findall(r"\w+", names), defaults.split(", "), strict=True))
    parameters = inspect.signature(train_dqn).parameters
    assert told == {name: str(parameter.default) for name, parameter in parameters.items()}


def test_the_settings_and_their_defaults_are_those_of_the_regime() -> None:
    config = TrainConfig(learner=DQNSettings())
    for name, default, _ in rows_of("What is learned"):
        value: Any = config
        for part in name.strip("`").split("."):
            value = getattr(value, part)
        if name == "`model.outputs`":
            value = config.learner.outputs(ModelConfig())
        assert str(value).lower().removesuffix(".0") == default, name
    steps = DQNSettings.model_fields["replay"].default.learning_steps
    assert rows_of("Gradient steps")[0][0] == f"`{steps}` (the default)"


def test_every_setting_that_the_page_names_exists() -> None:
    fields = {"learner": DQNSettings.model_fields, "model": ModelConfig.model_fields}
    replay = type(DQNSettings().replay).model_fields
    for section, name in re.findall(r"`(learner|model)\.(\w+)", PAGE):
        assert name in fields[section], f"{section}.{name}"
    for name in re.findall(r"learner\.replay\.(\w+)", PAGE):
        assert name in replay, name
