"""The page on the dashboard is true: its code runs, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli.main import app
from keisei.runs.control import Action

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dashboard.md").read_text()


def test_the_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "dashboard.md", "exec"), {})
    assert "nobody trains first now" in capsys.readouterr().out


def test_all_actions_are_explained() -> None:
    assert all(f"`{action.value}`" in PAGE for action in Action)


def test_the_options_exist() -> None:
    help_text = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["serve", "--help"]).stdout
    assert all(option in help_text for option in set(re.findall(r"--[a-z][a-z-]+", PAGE)) - {"--host"})
    assert "--host" in help_text
