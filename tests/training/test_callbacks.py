"""Callbacks get the network, and log numbers that go where all numbers go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from logs_for_tests import read_log
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from training_for_tests import Recorder, checkpoints, curve, train

from keisei.errors import RunError
from keisei.runs.directory import RunDirectory
from keisei.runs.metrics import UpdateMetrics
from keisei.training.callbacks import Callback
from keisei.training.events import Ended, Evaluation, Saved, Started, Update


class Watching(Callback):
    """Logs the size of the weights, and remembers what it is shown."""

    def __init__(self) -> None:
        self.norms: list[float] = []
        self.shown: list[UpdateMetrics] = []

    def on_update(self, update: Update) -> None:
        norm = torch.cat([weight.flatten() for weight in self.network.parameters()]).norm()
        self.norms.append(norm.item())
        self.log("weights/norm", 0)
        self.log("weights/norm", norm)

    def on_metrics(self, metrics: UpdateMetrics) -> None:
        self.shown.append(metrics)


class Doing(Callback):
    """Does one thing when it is told one thing."""

    def __init__(self, when: str, name: str = "mine/x", value: Any = 1.0) -> None:
        self._when, self._name, self._value = when, name, value

    def _log(self, when: str) -> None:
        if when == self._when:
            self.log(self._name, self._value)

    def on_start(self, started: Started) -> None:
        self._log("start")

    def on_update(self, update: Update) -> None:
        self._log("update")

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self._log("evaluation")

    def on_checkpoint(self, saved: Saved) -> None:
        self._log("checkpoint")

    def on_end(self, ended: Ended) -> None:
        self._log("end")


def test_logged_numbers_go_to_the_database_to_tensorboard_and_to_the_log(tmp_path: Path) -> None:
    watching = Watching()
    result = train(tmp_path, callbacks=[watching])
    assert len(set(watching.norms)) == 4
    assert curve(result.run, "weights/norm") == list(enumerate(watching.norms, start=1))
    board = EventAccumulator(str(result.run.tensorboard))
    board.Reload()
    assert [event.value for event in board.Scalars("weights/norm")] == pytest.approx(watching.norms)
    assert [event.step for event in board.Scalars("weights/norm")] == [256, 512, 768, 1024]
    lines = [line for line in read_log(result.run.log) if "weights/norm" in line.get("metrics", {})]
    assert [line["metrics"]["weights/norm"] for line in lines] == watching.norms


def test_the_network_is_the_one_that_learns(tmp_path: Path) -> None:
    seen = []

    class Looking(Callback):
        def on_start(self, started: Started) -> None:
            seen.append(self.network)

        def on_end(self, ended: Ended) -> None:
            seen.append(self.network)

    result = train(tmp_path, callbacks=[Looking()])
    assert [network is result.network for network in seen] == [True, True]


def test_a_callback_is_shown_all_numbers_those_of_others_too(tmp_path: Path) -> None:
    watching, recorder = Watching(), Recorder()
    train(tmp_path, "evaluation.opponents=[random]", callbacks=[Doing("evaluation"), watching, recorder])
    own, logged = watching.shown[:8:2], watching.shown[1:8:2]
    assert [shown.values for shown in own] == [update.numbers for update in recorder.updates]
    assert [shown.values for shown in logged] == [{"weights/norm": norm} for norm in watching.norms]
    assert [shown.step for shown in own] == [shown.step for shown in logged] == [256, 512, 768, 1024]
    assert [set(shown.values) for shown in watching.shown[8:]] == [{"evaluation/random"}, {"mine/x"}]


@pytest.mark.parametrize(
    ("when", "updates"),
    [("start", [0]), ("update", [1, 2, 3, 4]), ("evaluation", [2, 4]), ("checkpoint", [0, 1, 2, 3, 4])],
)
def test_numbers_can_be_logged_at_any_time(tmp_path: Path, when: str, updates: list[int]) -> None:
    settings = ("evaluation.opponents=[random]", "evaluation.every=512")
    result = train(tmp_path, *settings, callbacks=[Doing(when)])
    assert curve(result.run, "mine/x") == [(update, 1.0) for update in updates]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("norm", 1.0, r"'norm' cannot name a metric: write it as section/name"),
        ("my numbers/norm", 1.0, "cannot name a metric"),
        (3, 1.0, "3 cannot name a metric"),
        (
            "train/loss",
            1.0,
            r"'train/loss' is the name of a number of Keisei itself; take another, such as mine/loss",
        ),
        ("evaluation/mine", 1.0, "a number of Keisei itself"),
        ("agent-0/loss", 1.0, "a number of Keisei itself"),
        ("return/random", 1.0, "a number of Keisei itself"),
        ("mine/x", "high", "metric mine/x is 'high'; a metric is one number"),
        ("mine/x", torch.ones(2), r"metric mine/x is tensor\(\[1\., 1\.\]\); a metric is one number"),
    ],
)
def test_a_wrong_name_or_value_ends_the_run_and_loses_nothing(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    with pytest.raises(RunError, match=message):
        train(tmp_path, "run.checkpoint_every=null", callbacks=[Doing("update", name, value)])
    assert checkpoints(RunDirectory.open(tmp_path / "run")) == [0, 1]


def test_after_the_end_it_is_too_late(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="mine/x comes too late: the run has ended"):
        train(tmp_path, callbacks=[Doing("end")])


def test_a_callback_without_a_run_says_so() -> None:
    with pytest.raises(RunError, match="Watching is not part of a run yet"):
        Watching().log("mine/x", 1)
    with pytest.raises(RunError, match="Watching is not part of a run yet"):
        _ = Watching().network
