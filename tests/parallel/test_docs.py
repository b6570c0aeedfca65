"""The page about parallel collection tells the truth, and the example runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import keisei.training.parallel
from keisei.errors import ConfigError
from keisei.parallel import ParallelConfig, ParallelManager, WorkerState

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "parallel.md").read_text()
SETTINGS = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \|", PAGE, flags=re.MULTILINE))
DEFAULTS = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", PAGE, flags=re.MULTILINE))


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """In one namespace, top to bottom, as a reader would type it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 7
    namespace: dict[str, Any] = {"__name__": "docs_parallel"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"docs/parallel.md, block {number}", "exec"), namespace)
    assert "transitions," in capsys.readouterr().out


def test_the_table_has_every_setting_with_its_default() -> None:
    assert set(SETTINGS) == set(ParallelConfig.model_fields)
    for name, field in ParallelConfig.model_fields.items():
        if name not in ("seating", "worker_overrides"):
            assert DEFAULTS[name] == shown(field.default), name


def shown(value: object) -> str:
    """As a person writes it in YAML."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("name", [name for name, told in SETTINGS.items() if re.match(r"\d+ to \d+", told)])
def test_the_ranges_are_those_of_the_code(name: str) -> None:
    low, high = map(int, re.findall(r"\d+", SETTINGS[name])[:2])
    for value in (low, high):
        ParallelConfig.model_validate({name: value, "max_workers": value if name == "min_workers" else None})
    for value in (low - 1, high + 1):
        with pytest.raises(ConfigError, match=name):
            ParallelManager({}, None, {name: value})


def test_the_page_names_every_state() -> None:
    assert [state.value for state in WorkerState if not re.search(rf"\b{state.value}\b", PAGE)] == []


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "parallel_collection.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert "step 5: 1280 transitions, weights 4" in output
    assert "Active workers: 2" in output
    assert "worker 0 alone: 640 transitions" in output


def test_the_import_lines_of_other_collectors_work() -> None:
    names = ["ModelSynchronizer", "ParallelManager", "SelfPlayWorker", "WorkerCommunicator"]
    assert keisei.training.parallel.__all__ == names
    assert all(hasattr(keisei.training.parallel, name) for name in names)
