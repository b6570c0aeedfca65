"""Nothing that is printed can do more than be read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from keisei import cli
from keisei.cli.main import app
from keisei.cli.views.terminal import Terminal, visible
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import ChangeRow, EvaluationRow

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp\u2066\x00"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_signs_that_control_are_shown_as_text() -> None:
    assert visible("a\x1b[31m\x9b\u202e\x7f") == r"a\x1b[31m\x9b\u202e\x7f"
    for text in ("plain", "two\nlines\tand a tab", "先手\u3000後手", "é ♔ 王"):
        assert visible(text) == text


@pytest.mark.parametrize("shown", [EVIL, Text(EVIL), [Text(EVIL)]], ids=["str", "text", "table"])
def test_no_way_of_printing_lets_them_through(shown: Any) -> None:
    if isinstance(shown, list):
        table = Table("x")
        table.add_row(*shown)
        shown = table
    file = io.StringIO()
    Terminal(file=file, width=200).print(shown)
    assert "[2J" in file.getvalue()
    assert not CONTROL.search(file.getvalue())


def test_what_the_terminal_itself_does_still_works() -> None:
    file = io.StringIO()
    console = Terminal(file=file, force_terminal=True, width=60, color_system="standard")
    with Live(Text("moving"), console=console, refresh_per_second=1):
        pass
    console.print(Text("red", style="red"))
    assert "\x1b[31mred" in file.getvalue()
    assert "\x1b[?25l" in file.getvalue()  # the cursor is hidden meanwhile


def test_runs_of_strangers_are_printed_as_text(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "a", {"env": {"game": f"tic{EVIL[:-1]}"}})
    (run.path / "state.json").write_text(json.dumps({"state": "failed", "since": "", "detail": f"why{EVIL}"}))
    with RunDatabase(run.database) as database:
        database.add_metrics(1, 100, {"train/loss": 0.5})
        database.add_evaluation(EvaluationRow(1, 100, 1.0, "a", f"foe{EVIL}", 1, 0, 0, 1.0, 0.0, 1.0))
        database.add_changes([ChangeRow(1, 1.0, f"set{EVIL}", "1", f"2{EVIL}")])
    evil = tmp_path / "b\x1b[2J"
    evil.mkdir()
    (evil / "config.yaml").write_text("[")
    for arguments in (
        ["runs"],
        ["runs", "a"],
        ["runs", "nobody"],
        ["plot", "a\x1b[2J"],
        ["tournament", "\x1b[2J"],
    ):
        for columns in ("200", "80"):
            result = CliRunner(env={"COLUMNS": columns}).invoke(app, [*arguments, "--root", str(tmp_path)])
            assert not CONTROL.search(result.output), arguments
    assert r"\x1b" in CliRunner(env={"COLUMNS": "200"}).invoke(app, ["runs", "--root", str(tmp_path)]).output


def test_the_command_line_prints_through_no_other_console() -> None:
    files = [path for path in Path(cli.__path__[0]).rglob("*.py") if path.name != "terminal.py"]
    assert len(files) > 20
    assert [path.name for path in files if re.search(r"\bConsole\(", path.read_text(encoding="utf-8"))] == []
