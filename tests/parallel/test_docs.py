"""The page about parallel collection tells the truth, and the example runs."""

from __future__ import annotations

import importlib
import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import keisei.training.parallel
from keisei.cli.main import app
from keisei.config import Rule
from keisei.errors import ConfigError
from keisei.experience.rollout import ExperienceBuffer
from keisei.parallel import ModelSynchronizer, ParallelConfig, ParallelManager, WorkerState, backend_names
from keisei.parallel.document_names import _GivenParallel
from keisei.policies.behaviour import Behaviour
from keisei.policies.networks import ModelConfig, build_network

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "parallel.md").read_text()
SETTINGS = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \|", PAGE, flags=re.MULTILINE))
DEFAULTS = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", PAGE, flags=re.MULTILINE))


def section(title: str) -> str:
    """What the page says below a heading."""
    return re.split(r"^#+ ", PAGE.partition(f"# {title}\n")[2], flags=re.MULTILINE)[0]


def rows_of(title: str) -> list[list[str]]:
    """The rows of the table of a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that is registered here is forgotten afterwards."""
    monkeypatch.setattr(backend_names, "_REGISTERED", dict(backend_names._REGISTERED))


@pytest.mark.usefixtures("own_registry")
def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """In one namespace, top to bottom, as a reader would type it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 12
    namespace: dict[str, Any] = {"__name__": "docs_parallel"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"docs/parallel.md, block {number}", "exec"), namespace)
    assert "transitions," in capsys.readouterr().out


def test_the_table_has_every_setting_with_its_default() -> None:
    assert set(SETTINGS) == set(ParallelConfig.model_fields)
    for name, field in ParallelConfig.model_fields.items():
        if name not in ("seating", "table_overrides"):
            assert DEFAULTS[name] == shown(field.default), name


def test_settings_stand_in_their_part() -> None:
    placement = {name.strip("`") for name, *_ in rows_of("The placement")}
    experiment = {name.strip("`") for name, *_ in rows_of("The experiment")}
    free = {name for name in ParallelConfig.model_fields if ParallelConfig.rule_of(name) is Rule.FREE}
    assert placement == free
    assert experiment == set(ParallelConfig.model_fields) - free


def test_the_recommended_sizes_keep_the_rules() -> None:
    rows = [
        [int(cell.replace(",", "")) for cell in row] for row in rows_of("How many tables, games and steps")
    ]
    assert [row[0] for row in rows] == [2, 4, 8, 16, 64]
    for cores, tables, games, horizon, decisions in rows:
        assert tables % cores == 0
        assert 64 <= games <= 128
        assert decisions == tables * games * horizon
        ParallelConfig(tables=tables, games=games, horizon=horizon)


def test_the_other_names_are_known() -> None:
    """Every name of a setting in the second column is ours, and those that are accepted are in the first."""
    rows = rows_of("From other names")
    accepted = set(_GivenParallel.model_fields) - set(ParallelConfig.model_fields)
    theirs = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert accepted <= theirs
    for _, ours in rows:
        for name in re.findall(r"`(\w+)`", ours):
            known = name in ParallelConfig.model_fields or name in ("auto", "env_config", "model_config")
            assert known or hasattr(ParallelManager, name), name


CALLS = [(there, re.findall(r"`([^`]+)`", here)[0]) for there, here in rows_of("From other calls")]
COMMANDS = [call for _, call in CALLS if call.startswith("keisei ")]
SNIPPETS = [call for _, call in CALLS if not call.startswith("keisei ")]
TINY = {
    "train": ["--steps", "2000", "--set", "evaluation.every=0"],
    "verify": ["--game", "tictactoe", "--tables", "2", "--games", "2", "--rounds", "1"],
    "bench": ["--rounds", "1", "--seconds", "0.01", "--games-per-worker", "2", "--game", "dummy"],
    "soak": ["--duration", "1", "--game", "tictactoe", "--tables", "2", "--workers", "1", "--games", "2"],
    "profile": ["--steps", "2000"],
}
"""What makes a command quick; of an option that is given twice, the last word counts."""


def test_the_calls_run_in_their_order() -> None:
    """One after the other, as a life of a manager; all but the first few on a manager that runs."""
    parallel_config = {"tables": 2, "games": 4, "horizon": 8, "num_workers": 2, "backend": "inline"}
    spec = ParallelManager({"game": "tictactoe"}, None, parallel_config).spec
    model = build_network(ModelConfig(hidden_dim=8), spec, seed=0)
    names: dict[str, Any] = {
        "ParallelManager": ParallelManager,
        "ModelSynchronizer": ModelSynchronizer,
        "Behaviour": Behaviour,
        "env_config": {"game": "tictactoe"},
        "model_config": {"hidden_dim": 8},
        "parallel_config": parallel_config,
        "model": model,
        "local_model": build_network(ModelConfig(hidden_dim=8), spec, seed=1),
        "buffer": ExperienceBuffer(spec, 0.99, 0.95),
        "step": 0,
    }
    names["manager"] = eval(SNIPPETS[0], names)
    try:
        for snippet in SNIPPETS[1:]:
            exec(compile(snippet, f"docs/parallel.md, {snippet}", "exec"), names)
        assert names["version"] >= 1
        assert len(names["experiences"]) >= 64
        assert names["manager"].get_status()["running"] is False, "the last one stops it"
    finally:
        names["manager"].stop_workers()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = command.split()[1:]
    if words[0] == "bench":
        monkeypatch.syspath_prepend(ROOT)
        collect = importlib.import_module("benchmarks.collect")
        monkeypatch.setattr(collect, "Settings", partial(collect.Settings, slab=16, workers=(1, 2)))
    result = CliRunner().invoke(app, [*words, *TINY[words[0]]])
    assert result.exit_code == 0, result.output


def test_the_calls_of_other_collectors_are_in_the_table() -> None:
    there = " ".join(theirs for theirs, _ in CALLS)
    for call in (
        "synchronize_models", "shutdown", "get_statistics", "merge_worker_buffers", "add_batch", "should_sync",
        "get_sync_stats", "WorkerModelReceiver", "ExperienceCollector", "benchmark_parallel.py",
        "test_parallel_stability.py", "profile_training.py",
    ):  # fmt: skip
        assert call in there, call


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


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "parallel_collection.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert "step 5: 1280 transitions, weights 4" in output
    assert "Active workers: 2" in output
    assert "worker 0 alone: 1280 transitions" in output


def test_every_page_imports_the_manager_from_one_place() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]
    lines = [line for page in pages for line in page.read_text().splitlines()]
    imports = [line for line in lines if re.search(r"\bimport\b.*\bParallelManager\b", line)]
    assert len(imports) >= 3
    assert [line for line in imports if not line.startswith("from keisei.parallel import ")] == []


def test_the_import_lines_of_other_collectors_work() -> None:
    names = ["ModelSynchronizer", "ParallelManager", "SelfPlayWorker", "WorkerCommunicator"]
    assert keisei.training.parallel.__all__ == names
    assert all(hasattr(keisei.training.parallel, name) for name in names)
