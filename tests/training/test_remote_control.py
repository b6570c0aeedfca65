"""A run does what it is asked for between two updates, says so, and trains the same weights."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from training_for_tests import UPDATES, checkpoints, train

from keisei.runs.control import Action, ask
from keisei.runs.directory import RunDirectory, RunState
from keisei.runs.live import Answer, LiveStatus, read_live
from keisei.training import remote_control
from keisei.training.callbacks import Callback
from keisei.training.events import Update
from keisei.training.interruption import Interruption


class Asking(Callback):
    """Asks for something during some updates."""

    def __init__(self, run: Path, wishes: dict[int, tuple[Action, int | None]]) -> None:
        self._run, self._wishes = RunDirectory(run), wishes

    def on_update(self, update: Update) -> None:
        wish = self._wishes.get(update.counters.update)
        if wish is not None:
            ask(self._run, *wish)


def live(root: Path) -> LiveStatus:
    status = read_live(RunDirectory(root / "run"))
    assert status is not None
    return status


def answers(root: Path) -> list[Answer]:
    return list(live(root).answers)


def trained(root: Path, wishes: dict[int, tuple[Action, int | None]], *overrides: str) -> str:
    return train(root, *overrides, callbacks=[Asking(root / "run", wishes)]).digest


def test_workers_come_and_go_and_the_weights_are_the_same(tmp_path: Path) -> None:
    calm = train(tmp_path / "calm").digest
    wishes = {1: (Action.ADD_WORKER, None), 2: (Action.REMOVE_WORKER, 0), 3: (Action.CHECKPOINT, None)}
    assert trained(tmp_path, wishes) == calm
    assert [(answer.action, answer.done, answer.text) for answer in answers(tmp_path)] == [
        ("add-worker", True, "worker 2 plays too"),
        ("remove-worker", True, "worker 0 is removed"),
        ("checkpoint", True, "update-000000003 is saved"),
    ]


def test_the_last_worker_stays(tmp_path: Path) -> None:
    trained(tmp_path, {1: (Action.REMOVE_WORKER, None)}, "parallel.num_workers=1")
    (answer,) = answers(tmp_path)
    assert not answer.done
    assert "is the last one" in answer.text


def test_a_worker_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    trained(tmp_path, {1: (Action.REMOVE_WORKER, 9)})
    assert [(answer.done, answer.text) for answer in answers(tmp_path)] == [
        (False, "there is no worker 9; the workers are [0, 1]")
    ]


def test_a_reset_starts_new_games(tmp_path: Path) -> None:
    calm = train(tmp_path / "calm").digest
    assert trained(tmp_path, {2: (Action.RESET, None)}) != calm
    assert answers(tmp_path)[0].text == "all tables start new games"


def test_a_stopped_run_can_be_continued(tmp_path: Path) -> None:
    asking = Asking(tmp_path / "run", {2: (Action.STOP, None)})
    result = train(tmp_path, callbacks=[asking])
    assert result.outcome == "interrupted"
    assert result.counters.update == 2
    assert result.run.status().state is RunState.INTERRUPTED
    assert train(tmp_path).digest == train(tmp_path / "calm").digest


def test_a_checkpoint_is_written_when_it_is_asked_for(tmp_path: Path) -> None:
    trained(tmp_path, {2: (Action.CHECKPOINT, None)}, "run.checkpoint_every=null")
    assert checkpoints(RunDirectory(tmp_path / "run")) == [0, 2, UPDATES]


class LongNaps:
    """The time of a machine on which every nap of a paused run takes a thousand seconds."""

    def __init__(self) -> None:
        self._slept = 0.0

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self._slept += 1000.0

    def monotonic(self) -> float:
        return time.monotonic() + self._slept

    def time(self) -> float:
        return time.time()


def test_a_pause_holds_the_run_and_its_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_control, "time", LongNaps())
    run = RunDirectory(tmp_path / "run")
    held: list[LiveStatus] = []

    def resume() -> None:
        while not (
            run.live.exists() and live(tmp_path).paused and live(tmp_path).workers[0].state == "paused"
        ):
            time.sleep(0.01)
        held.append(live(tmp_path))
        ask(run, Action.RESUME)

    helper = threading.Thread(target=resume, daemon=True)
    helper.start()
    result = train(tmp_path, callbacks=[Asking(run.path, {2: (Action.PAUSE, None)})])
    helper.join()
    assert held[0].update == 2
    assert result.counters.update == UPDATES
    assert result.counters.seconds < 900, "the pause does not count"
    assert result.digest == train(tmp_path / "calm").digest


def test_a_paused_run_can_be_stopped(tmp_path: Path) -> None:
    interruption = Interruption()

    class Stopping(Callback):
        def note(self, message: str, level: str = "info") -> None:
            if "asked to pause" in message:
                interruption.request()

    asking = Asking(tmp_path / "run", {2: (Action.PAUSE, None)})
    result = train(tmp_path, callbacks=[asking, Stopping()], interruption=interruption)
    assert (result.outcome, result.counters.update) == ("interrupted", 2)


def test_the_live_status_tells_who_plays_what(tmp_path: Path) -> None:
    trained(tmp_path, {UPDATES: (Action.CHECKPOINT, None)})
    status = live(tmp_path)
    assert sorted(table for worker in status.workers for table in worker.tables) == [0, 1]
    assert status.update == UPDATES
    assert status.progress == 1.0
    assert status.memory_bytes > 0
    assert status.queue["slabs"] >= 2
    board = status.board
    assert board is not None
    assert len(board.packed) == len(board.actions) == len(board.values) == 16
