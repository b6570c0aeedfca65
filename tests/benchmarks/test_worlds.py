"""``keisei bench worlds`` measures the batch and the loop. Short turns: figures mean nothing."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import worlds

    monkeypatch.setattr(worlds, "AGENTS", (2, 3))
    monkeypatch.setattr(worlds, "BATCH", 4)
    monkeypatch.setattr(worlds, "BATCHES", (2,))
    monkeypatch.setattr(worlds, "OTHERS", ("tag",))


def measured(as_json: bool) -> str:
    from benchmarks import worlds

    output = io.StringIO()
    console = Console(file=output, width=120)
    worlds.run(rounds=1, seconds=0.01, as_json=as_json, console=console)
    return output.getvalue()


@pytest.mark.usefixtures("short")
def test_the_report_has_both_contenders() -> None:
    report = json.loads(measured(as_json=True))
    assert list(report["turns_per_second"]) == list(report["objects_per_second"]) == ["2", "3"]
    ratio = report["turns_per_second"]["2"] / report["objects_per_second"]["2"]
    assert report["over_objects"] == pytest.approx(ratio)
    assert list(report["by_batch"]) == ["2"]
    assert list(report["other_games"]) == ["tag"]


@pytest.mark.usefixtures("short")
def test_the_table_shows_the_ratio() -> None:
    shown = measured(as_json=False)
    assert "object for each cell" in shown
    assert " x " in shown


def test_the_loop_plays_treasure_hunt() -> None:
    """Things appear in empty cells, agents walk, and no agent is lost."""
    from benchmarks.worlds import ObjectField

    field = ObjectField(3)
    for _ in range(60):
        field.take_turn()
    kinds = [thing.kind for thing in field.cells.flat]
    assert kinds.count("agent") == 3
    assert kinds.count("wall") == 80
    assert {"gem", "food", "bone"} <= set(kinds)
    assert field.walkers[0].pov(field).shape == (5, 5, 5)
