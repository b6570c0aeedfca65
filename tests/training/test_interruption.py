"""Ctrl-C, SIGTERM and SIGHUP: the first signal ends the run soon, a second one that somebody sends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
import torch
from training_for_tests import SLUGGISH, After, Recorder, Sluggish, checkpoints, train

from keisei.learners.ppo import PPO
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.directory import RunState
from keisei.runs.state_tensors import load_model, weights_digest
from keisei.training import trainer
from keisei.training.callbacks import Callback
from keisei.training.events import Saved
from keisei.training.interruption import Interruption, UpdateAbandoned

SENT = (signal.SIGINT, signal.SIGTERM)
"""By somebody who may insist on it."""
SIGNALS = (*SENT, signal.SIGHUP)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def work_on_after(number: int) -> None:
    """A signal in the midst of long work."""
    send(number)
    time.sleep(60)


# The signals themselves


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_only_asks(number: signal.Signals) -> None:
    reasons: list[str] = []
    before = [signal.getsignal(each) for each in (*SIGNALS, signal.SIGALRM)]
    interruption = Interruption(on_request=reasons.append)
    with interruption.installed():
        assert not interruption.requested
        send(number)
        assert interruption.requested
    assert reasons == [number.name]
    assert [signal.getsignal(each) for each in (*SIGNALS, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_work_is_given_up_when_patience_is_over() -> None:
    interruption = Interruption(patience=0.05)
    with interruption.installed(), pytest.raises(UpdateAbandoned), interruption.may_abandon():
        work_on_after(signal.SIGINT)


def test_what_may_not_be_given_up_is_finished_first() -> None:
    interruption = Interruption(patience=0.01)
    with interruption.installed():
        send(signal.SIGINT)
        time.sleep(0.1)  # a checkpoint is written
        with pytest.raises(UpdateAbandoned), interruption.may_abandon():
            pytest.fail("patience is over: nothing that may be given up is begun")


def test_some_work_is_given_up_at_once() -> None:
    interruption = Interruption(patience=60)
    with interruption.installed():
        with pytest.raises(UpdateAbandoned), interruption.may_abandon(at_once=True):
            work_on_after(signal.SIGTERM)
        with interruption.may_abandon():
            pass  # while there is patience for this
        with pytest.raises(UpdateAbandoned), interruption.may_abandon(at_once=True):
            pytest.fail("it is not even begun")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("at_once", [True, False])
def test_work_is_given_up_although_the_first_attempt_is_lost(at_once: bool) -> None:
    """Nothing that is raised in a finaliser leaves it."""

    class Last:
        def __del__(self) -> None:
            send(signal.SIGINT)
            time.sleep(0.1)

    def work() -> None:
        Last()
        time.sleep(60)

    interruption = Interruption(patience=60 if at_once else 0.05)
    with interruption.installed(), pytest.raises(UpdateAbandoned), interruption.may_abandon(at_once=at_once):
        work()


def test_a_request_without_a_signal_gives_up_nothing() -> None:
    interruption = Interruption(patience=0.01)
    with interruption.installed(), interruption.may_abandon():
        interruption.request()
        time.sleep(0.05)
    assert interruption.requested


@pytest.mark.parametrize("number", SENT)
def test_the_second_signal_ends_the_process(number: signal.Signals) -> None:
    code = (
        "import os, time\n"
        "from keisei.training.interruption import Interruption\n"
        "with Interruption().installed():\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    try:\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        print('nothing is tidied up')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 128 + number
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in product(SIGNALS, repeat=2) if signal.SIGHUP in pair]
)
def test_a_terminal_that_is_closed_never_ends_the_process_at_once(
    first: signal.Signals, second: signal.Signals
) -> None:
    """The shell may send SIGHUP again, and the system SIGTERM with it."""
    reasons: list[str] = []
    interruption = Interruption(on_request=reasons.append)
    with interruption.installed():
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        send(first)
        send(second)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # both arrive at once
        assert interruption.requested
        assert reasons[0] in (first.name, second.name)
        send(signal.SIGHUP)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """`nohup` starts a run that way."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interruption = Interruption()
    try:
        with interruption.installed():
            send(signal.SIGHUP)
        assert not interruption.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", [(signal.SIGHUP, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP)])
def test_although_the_terminal_is_closed_somebody_may_insist(first: Sequence[signal.Signals]) -> None:
    code = (
        "import os, time\n"
        "from keisei.training.interruption import Interruption\n"
        "with Interruption().installed():\n"
        f"    for number in {tuple(map(int, first))}:\n"
        "        os.kill(os.getpid(), number)\n"
        "    print('still there', flush=True)\n"
        "    os.kill(os.getpid(), 15)\n"
        "    time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (143, "still there\n")


def test_another_thread_leaves_the_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def listen() -> None:
        with Interruption().installed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert seen == [before]


# A run that is interrupted


@contextmanager
def slow_from(update: int, callbacks: list[Callback]) -> Iterator[None]:
    """After this update, the next would take minutes, and Ctrl-C comes in its midst."""

    def slow() -> None:
        Sluggish.seconds = 1.0
        timer.start()

    timer = threading.Timer(0.2, send, [signal.SIGINT])
    callbacks.append(After(slow, update))
    try:
        yield
    finally:
        Sluggish.seconds = 0.0
        timer.join()


class SignalAtCheckpoint(Callback):
    """Sends Ctrl-C a little after a checkpoint: in the midst of what comes next."""

    def __init__(self, update: int) -> None:
        self._update = update
        self.timer = threading.Timer(0.2, send, [signal.SIGINT])

    def on_checkpoint(self, saved: Saved) -> None:
        if saved.update == self._update:
            self.timer.start()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_update_that_would_last_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "LONG_UPDATE", 0.0)
    recorder = Recorder()
    callbacks: list[Callback] = [recorder]
    interruption = Interruption(patience=0.2)
    settings = (f"env.game={SLUGGISH}", "run.checkpoint_every=null")
    with slow_from(2, callbacks), interruption.installed():
        result = train(tmp_path, *settings, callbacks=callbacks, interruption=interruption)
    assert result.outcome == "interrupted"
    assert result.run.status().state is RunState.INTERRUPTED
    assert result.counters.update == 2
    assert checkpoints(result.run) == [0, 2]
    assert ("warning", "the update is abandoned; the state before it is kept") in recorder.notes
    saved = load_checkpoint(result.run.checkpoints / "latest")
    load_model(result.network, saved.tensors["model"])
    assert weights_digest(result.network) == result.digest
    undisturbed = train(tmp_path, *settings, name="undisturbed")
    assert train(tmp_path, *settings).digest == undisturbed.digest


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_update_is_given_up_in_the_midst_of_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights and optimiser are half-way through an update; what is saved is the state before it."""
    monkeypatch.setattr(trainer, "LONG_UPDATE", 0.0)
    signalling = SignalAtCheckpoint(0)
    interruption = Interruption(patience=0.1)
    with interruption.installed():
        result = train(tmp_path, "learner.epochs=100_000", callbacks=[signalling], interruption=interruption)
    signalling.timer.join()
    assert result.outcome == "interrupted"
    assert result.network.training  # so it was learning
    assert result.counters.update == 0
    assert checkpoints(result.run) == [0]
    load_model(result.network, load_checkpoint(result.run.checkpoints / "latest").tensors["model"])
    assert weights_digest(result.network) == result.digest


def test_gradients_are_on_again_after_an_update_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception may strike inside torch, just after it has switched them off."""

    def without_gradients(*_: object) -> None:
        torch.set_grad_enabled(False)
        time.sleep(60)

    monkeypatch.setattr(PPO, "learn", without_gradients)
    monkeypatch.setattr(trainer, "LONG_UPDATE", 0.0)
    signalling, interruption = SignalAtCheckpoint(0), Interruption(patience=0.1)
    with interruption.installed():
        result = train(tmp_path, callbacks=[signalling], interruption=interruption)
    signalling.timer.join()
    assert result.outcome == "interrupted"
    assert torch.is_grad_enabled()


def test_a_quick_update_is_finished_and_saved(tmp_path: Path) -> None:
    interruption = Interruption()
    with interruption.installed():
        result = train(
            tmp_path,
            "run.checkpoint_every=null",
            callbacks=[After(lambda: send(signal.SIGTERM), 2)],
            interruption=interruption,
        )
    assert result.outcome == "interrupted"
    assert checkpoints(result.run) == [0, 2]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_evaluation_is_given_up_at_once(tmp_path: Path) -> None:
    recorder, signalling = Recorder(), SignalAtCheckpoint(2)
    interruption = Interruption(patience=60)
    with interruption.installed():
        result = train(
            tmp_path,
            "evaluation={every: 512, games: 1_000_000, opponents: [random]}",
            callbacks=[recorder, signalling],
            interruption=interruption,
        )
    signalling.timer.join()
    assert result.outcome == "interrupted"
    assert result.counters.update == 2
    assert recorder.evaluations == []
    assert ("info", "the evaluation is abandoned") in recorder.notes
