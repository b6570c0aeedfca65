"""The page on experiments is true: its commands and options exist, and its settings are read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from keisei.cli.main import COMMANDS, _imported
from keisei.config import apply_overrides, parse_settings
from keisei.training.experiments.choices import grid, parse_choices
from keisei.training.presets import load_preset
from keisei.training.settings import TrainConfig

PAGE = (Path(__file__).parent.parent / "docs" / "experiments.md").read_text()
LINES = [
    line.partition("#")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    program, name, *arguments = shlex.split(line)
    assert program == "keisei"
    context = _imported(name).make_context(name, arguments)
    return name, context.params


@pytest.mark.parametrize("line", LINES)
def test_commands_are_understood(line: str) -> None:
    name, given = parsed(line)
    assert name in COMMANDS
    settings = given.get("set_") or []
    preset = load_preset("tictactoe-ppo").settings
    for combination in grid(parse_choices(settings)) if settings else ():
        overrides = [f"{setting}={value}" for setting, value in combination.items()]
        parse_settings(TrainConfig, apply_overrides(preset, overrides))


def test_options_in_the_text_exist() -> None:
    known = {
        option
        for name in ("train", "sweep", "plot", "runs")
        for parameter in _imported(name).params
        for option in parameter.opts
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE))
    assert {"--seeds", "--rewind", "--from", "--mean", "--halving"} <= named <= known
