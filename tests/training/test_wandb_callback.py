"""Weights & Biases gets all numbers. The last test needs the real package, the extra ``wandb``."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from training_for_tests import After, Recorder, raising, train

from keisei.errors import ConfigError
from keisei.runs.directory import RunDirectory
from keisei.training.callbacks import Callback, StopTraining
from keisei.training.events import Update
from keisei.training.wandb_callback import WandbCallback


class Logging(Callback):
    def on_update(self, update: Update) -> None:
        self.log("mine/x", update.counters.update / 2)


class FakeWandb:
    """Takes the calls of the package, and remembers them."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.steps: list[tuple[str, str]] = []
        self.rows: list[dict[str, float]] = []
        self.finished = 0

    def init(self, **settings: Any) -> SimpleNamespace:
        self.settings = settings
        return SimpleNamespace(
            define_metric=lambda name, step_metric: self.steps.append((name, step_metric)),
            log=self.rows.append,
            finish=self._finish,
        )

    def _finish(self) -> None:
        self.finished += 1


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def test_all_numbers_are_sent_with_the_transitions(tmp_path: Path, wandb: FakeWandb) -> None:
    recorder = Recorder()
    callbacks = [Logging(), WandbCallback(project="games", tags=["tiny"]), recorder]
    result = train(tmp_path, "evaluation.opponents=[random]", callbacks=callbacks)
    assert wandb.settings["project"] == "games"
    assert wandb.settings["tags"] == ["tiny"]
    assert wandb.settings["name"] == "run"
    assert wandb.settings["dir"] == str(result.run.path)
    assert wandb.settings["config"]["learner"]["learning_rate"] == 3e-3
    assert wandb.steps == [("*", "time/total_timesteps")]
    assert wandb.rows[:8:2] == [update.numbers for update in recorder.updates]
    assert wandb.rows[1:8:2] == [
        {"mine/x": number / 2, "time/total_timesteps": number * 256} for number in (1, 2, 3, 4)
    ]
    assert [set(row) for row in wandb.rows[8:]] == [{"evaluation/random", "time/total_timesteps"}]
    assert wandb.finished == 1


def test_a_resumed_run_continues_there(tmp_path: Path, wandb: FakeWandb) -> None:
    stop = After(raising(StopTraining("enough")), 2)
    train(tmp_path, callbacks=[WandbCallback(), stop])
    first = wandb.settings["id"]
    train(tmp_path, callbacks=[WandbCallback()])
    train(tmp_path, callbacks=[WandbCallback()], name="another")
    assert wandb.settings["resume"] == "allow"
    assert (tmp_path / "run" / "wandb-id").read_text() == first
    assert wandb.settings["id"] != first
    assert wandb.settings["project"] == "keisei"


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"pip install 'keisei\[wandb\]'"):
        WandbCallback()


# The real package, without a network


def records(path: Path) -> Iterator[bytes]:
    """The records of an offline file: after 7 bytes, a log in LevelDB's format, in blocks of 32 KB."""
    content, at, parts = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", content, at)
        if not kind:
            return
        parts += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield parts
            parts = b""


def sent(run: RunDirectory) -> list[dict[str, float]]:
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[import-not-found, unused-ignore]

    (path,) = run.path.glob("wandb/offline-run-*/run-*.wandb")
    rows = []
    for content in records(path):
        record = Record()
        record.ParseFromString(content)
        if record.HasField("history"):
            rows.append(
                {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            )
    return [
        {name: json.loads(value) for name, value in row.items() if not name.startswith("_")} for row in rows
    ]


@pytest.mark.filterwarnings("default")  # those of the package are its own
def test_the_real_package_keeps_all_numbers_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed: pip install 'keisei[wandb]'")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    recorder = Recorder()
    result = train(tmp_path, callbacks=[Logging(), WandbCallback(mode="offline"), recorder])
    deadline = time.monotonic() + 20  # another process writes the file
    while len(rows := sent(result.run)) < 8 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(rows) == 8
    for row, update in zip(rows[::2], recorder.updates, strict=True):
        assert row == pytest.approx(dict(update.numbers))
    assert [row["mine/x"] for row in rows[1::2]] == [0.5, 1.0, 1.5, 2.0]
    assert [row["time/total_timesteps"] for row in rows[1::2]] == [256, 512, 768, 1024]
