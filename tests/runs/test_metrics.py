"""Every number reaches ``run.db``, TensorBoard and the log, once, also when the disk is full for a while."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logs_for_tests import read_log
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from keisei.errors import RunError
from keisei.runs import metrics
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.log import RunLog, RunLogHandler
from keisei.runs.metric_names import EVALUATION, TAGS
from keisei.runs.metrics import MetricsWriter

PAGE = Path(__file__).parents[2] / "docs" / "runs.md"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path, "run", {"game": "tictactoe"})


class Trainer:
    """What a training loop holds open."""

    def __init__(self, run: RunDirectory, resumed_step: int | None = None) -> None:
        self.database = RunDatabase(run.database)
        self.log = RunLog(run.log)
        self.writer = MetricsWriter(run, self.database, self.log, resumed_step)

    def close(self) -> None:
        self.writer.close()
        self.log.close()
        self.database.close()


@pytest.fixture
def trainer(run: RunDirectory) -> Iterator[Trainer]:
    opened = Trainer(run)
    yield opened
    opened.close()


def events(run: RunDirectory, tag: str) -> list[tuple[int, float]]:
    """What TensorBoard shows."""
    accumulator = EventAccumulator(str(run.tensorboard))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def logged(run: RunDirectory, tag: str) -> list[tuple[int, float]]:
    return [(line["step"], line["metrics"][tag]) for line in read_log(run.log) if line["event"] == "update"]


def stored(trainer: Trainer, tag: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in trainer.database.metric(tag)]


def test_all_places_get_all_numbers(run: RunDirectory, trainer: Trainer) -> None:
    for update in (1, 2, 3):
        trainer.writer.write(update, update * 512, dict.fromkeys(TAGS, update + 0.5))
    expected = [(512, 1.5), (1024, 2.5), (1536, 3.5)]
    for tag in TAGS:
        assert stored(trainer, tag) == expected
        assert logged(run, tag) == expected
    accumulator = EventAccumulator(str(run.tensorboard))
    accumulator.Reload()
    assert set(accumulator.Tags()["scalars"]) == set(TAGS)
    assert events(run, "train/loss") == expected
    assert trainer.writer.problems == {}


def test_numbers_of_all_kinds(run: RunDirectory, trainer: Trainer) -> None:
    values = {
        "a/numpy": np.float32(0.5),
        "a/tensor": torch.tensor(2),
        "a/int": 3,
        "a/bool": True,
        "a/nan": math.nan,
    }
    trainer.writer.write(1, 10, values)
    latest = trainer.database.latest_metrics()
    assert math.isnan(latest.pop("a/nan"))
    assert latest == {"a/numpy": 0.5, "a/tensor": 2.0, "a/int": 3.0, "a/bool": 1.0}
    assert logged(run, "a/nan") == [(10, None)]
    assert math.isnan(events(run, "a/nan")[0][1])


@pytest.mark.parametrize("name", ["loss", "train/", "/loss", "train loss/x", "", "train//loss"])
def test_bad_names_are_refused(trainer: Trainer, name: str) -> None:
    with pytest.raises(RunError, match="section/name"):
        trainer.writer.write(1, 10, {name: 1.0})


def test_what_is_no_number_is_refused_before_anything_is_written(run: RunDirectory, trainer: Trainer) -> None:
    with pytest.raises(RunError, match="train/b is 'high'"):
        trainer.writer.write(1, 10, {"train/a": 1.0, "train/b": "high"})  # type: ignore[dict-item]
    assert trainer.database.metric_names() == []
    assert list(read_log(run.log)) == []
    assert os.listdir(run.tensorboard) == []


def test_a_resumed_run_shows_each_step_once(run: RunDirectory) -> None:
    """It comes to update 5, loses what is after its checkpoint of update 3, and does that again, otherwise."""
    first = Trainer(run)
    for update in range(1, 6):
        first.writer.write(update, update * 10, {"train/loss": update})
    first.close()
    second = Trainer(run, resumed_step=30)
    second.database.rewind(3)
    for update in range(4, 7):
        second.writer.write(update, update * 10, {"train/loss": -update})
    expected = [(10, 1), (20, 2), (30, 3), (40, -4), (50, -5), (60, -6)]
    assert stored(second, "train/loss") == expected
    assert events(run, "train/loss") == expected
    second.close()


class FullDisk:
    """Lets writes fail as a full disk does, after half of the bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._write = os.write

    def fill(self) -> None:
        self._monkeypatch.setattr(os, "write", self._half)

    def empty(self) -> None:
        self._monkeypatch.setattr(os, "write", self._write)

    def _half(self, descriptor: int, content: bytes) -> int:
        if len(content) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(descriptor, content[: len(content) // 2])


def test_what_a_full_disk_refuses_is_written_later(
    run: RunDirectory, trainer: Trainer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(monkeypatch)
    with caplog.at_level(logging.INFO):
        for update in range(1, 7):
            disk.empty() if update in (1, 5, 6) else disk.fill()
            trainer.writer.write(update, update, {"train/loss": update})
            full = update not in (1, 5, 6)
            assert set(trainer.writer.problems) == ({"tensorboard", "log.jsonl"} if full else set())
    expected = [(update, update) for update in range(1, 7)]
    assert stored(trainer, "train/loss") == logged(run, "train/loss") == events(run, "train/loss") == expected
    assert caplog.text.count("cannot be written to tensorboard") == 1
    assert "tensorboard can be written to again; 0 updates were lost" in caplog.text


def test_what_exceeds_the_bound_is_counted(
    run: RunDirectory, trainer: Trainer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics, "BACKLOG", 3)
    disk = FullDisk(monkeypatch)
    disk.fill()
    for update in range(1, 6):
        trainer.writer.write(update, update, {"train/loss": update})
    assert trainer.writer.dropped == {"run.db": 0, "tensorboard": 2, "log.jsonl": 2}
    assert os.listdir(run.tensorboard) == []
    trainer.writer.close()
    assert "5 updates are missing from tensorboard" in caplog.text
    disk.empty()
    trainer.writer.write(6, 6, {"train/loss": 6})
    assert [step for step, _ in events(run, "train/loss")] == [4, 5, 6]


def test_the_database_catches_up_too(tmp_path: Path) -> None:
    """The kernel itself refuses to let the database grow, in a process of its own; then it may."""
    script = f"""
import resource
from pathlib import Path
from keisei.runs.metrics import MetricsWriter
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.log import RunLog
run = RunDirectory.create(Path({str(tmp_path)!r}), "run", {{}})
database, log = RunDatabase(run.database), RunLog(run.log)
writer = MetricsWriter(run, database, log)
problems = []
for update in range(1, 121):
    full = 40 <= update < 80
    limit = 200_000 if full else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    writer.write(update, update, {{f"train/{{name}}": update for name in range(200)}})
    problems.append("run.db" in writer.problems)
print(any(problems[39:79]), any(problems[:39]), any(problems[79:]))
print([point.update for point in database.metric("train/7")] == list(range(1, 121)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "False", "False", "True"]


# The log


def test_a_line_that_a_kill_has_cut_short_harms_no_other(run: RunDirectory) -> None:
    log = RunLog(run.log)
    log.write("start", {"text": "将棋", "rate": math.inf, "nested": {"a": [1, math.nan]}})
    log.close()
    with open(run.log, "ab") as file:
        file.write(b'{"time": "2026-')
    log = RunLog(run.log)
    log.write("resume", {})
    log.close()
    assert len(run.log.read_bytes().splitlines()) == 3
    lines = list(read_log(run.log))
    assert [line["event"] for line in lines] == ["start", "resume"]
    assert lines[0]["text"] == "将棋"
    assert lines[0]["rate"] is None
    assert lines[0]["nested"] == {"a": [1, None]}


def test_warnings_of_the_library_reach_the_log(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RunLog(run.log)
    handler = RunLogHandler(log)
    logger = logging.getLogger("keisei.example")
    logger.addHandler(handler)
    try:
        logger.warning("checkpoint %s is skipped", "update-000000002")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logger.exception("worker 3")
        FullDisk(monkeypatch).fill()
        logger.warning("lost")
        monkeypatch.undo()
    finally:
        logger.removeHandler(handler)
        log.close()
    first, second = map(json.loads, run.log.read_text().splitlines())
    assert (first["level"], first["source"]) == ("warning", "keisei.example")
    assert first["message"] == "checkpoint update-000000002 is skipped"
    assert "ZeroDivisionError" in second["traceback"]
    assert handler.dropped == 1


def test_readers_of_a_run_wait_for_no_heavy_import() -> None:
    """TensorBoard is for those who train; torch, for those who load a checkpoint."""
    script = (
        "import sys, keisei.runs.metrics; print({name.split('.')[0] for name in sys.modules} & "
        "{'torch', 'tensorboard', 'safetensors'})"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_page_names_every_number_and_every_place() -> None:
    page = PAGE.read_text()
    assert [tag for tag, meaning in TAGS.items() if f"| `{tag}` | {meaning} |" not in page] == []
    assert f"| `{EVALUATION}OPPONENT` |" in page
    places = [
        "config.yaml",
        "state.json",
        "checkpoints/",
        "run.db",
        "log.jsonl",
        "tensorboard/",
        "games/",
        "lock",
    ]
    assert [place for place in places if place not in page] == []


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["found"].path == names["path"]
    assert names["store"].best().checkpoint.counters["transitions"] == 3584
