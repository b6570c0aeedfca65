"""``keisei bench start`` measures every command. Commands that do nothing: figures mean nothing."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console


def measured(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> str:
    from benchmarks import start

    monkeypatch.setattr(start, "PROGRAM", (sys.executable, "-c", "pass"))
    output = io.StringIO()
    start.run(rounds=2, as_json=as_json, console=Console(file=output, width=120))
    return output.getvalue()


def test_every_command_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import start

    report = json.loads(measured(monkeypatch, as_json=True))
    commands = [f"keisei {text}" for text in (*start.WITHOUT_TORCH, *start.WITH_TORCH)]
    for kind in ("seconds", "processor_seconds"):
        assert list(report[kind]) == [start.BARE, *commands]
        assert all(taken > 0 for taken in report[kind].values())


def test_the_table_shows_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = measured(monkeypatch, as_json=False)
    assert "keisei doctor --quick" in shown
    assert "python -c pass" in shown
