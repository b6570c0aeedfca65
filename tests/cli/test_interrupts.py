"""Ctrl-C while a command starts: no process says a word of it, and none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keisei.machine.processes import session_members

BEGUN = b"begun\n"
PROGRAM = """
import os
from keisei.cli import entry

def leave_at_once(leave=entry.leave_at_once):
    leave()
    os.write(1, b"begun\\n")

entry.leave_at_once = leave_at_once
entry.main()
"""
"""The command, which tells when its first line has run: what is interrupted before that is Python itself."""
TRAIN = ("train", "tictactoe-ppo", "--steps", "1000000000", "--set", "parallel.backend=process")


def until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def interrupted(folder: Path, delay: float, *arguments: str) -> tuple[int, str]:
    """Starts a command, and presses Ctrl-C some time after its first line. Returns the exit code and the output."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
        # A shell in the background has its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    try:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), len(BEGUN)) == BEGUN
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert until(lambda: not session_members(process.pid)), "a process is left"
    finally:
        process.kill()
        process.communicate()
    return process.returncode, output.decode()


def check(code: int, output: str) -> None:
    assert "Traceback" not in output, output
    assert "KeyboardInterrupt" not in output, output
    # A soak that is interrupted ends with its report, and tells by its code what it has found.
    assert code == (0 if "this is the report so far" in output else 130), output


MOMENTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.2, 1.5, 1.8, 2.1, 2.5, 2.9, 3.3, 3.7, 4.0)


@pytest.mark.parametrize(
    "delay",
    [
        pytest.param(delay, marks=[pytest.mark.slow] * (number % 4 > 0))
        for number, delay in enumerate(MOMENTS)
    ],
)
def test_training_is_interrupted_at_any_moment(tmp_path: Path, delay: float) -> None:
    code, output = interrupted(tmp_path, delay, *TRAIN, "--plain")
    check(code, output)
    if not (tmp_path / "runs").exists():
        return
    (run,) = (tmp_path / "runs").iterdir()  # nothing half made lies beside it
    assert f"Continue it: keisei train runs/{run.name}" in output


@pytest.mark.parametrize(
    "delay", [0.3, *(pytest.param(later, marks=pytest.mark.slow) for later in (1.0, 2.0, 3.0))]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "--game", "tictactoe"),
        ("soak", "--game", "tictactoe"),
        ("train", "tictactoe-ppo", "--seeds", "0,1", "--steps", "1000000000"),
        ("match", "random", "greedy", "--game", "connect-four", "--games", "1000000"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_other_commands(tmp_path: Path, delay: float, arguments: tuple[str, ...]) -> None:
    check(*interrupted(tmp_path, delay, *arguments))
    assert not list(tmp_path.glob("*/.partial*"))


SWALLOWED = """
import os, signal, sys, time
from keisei.cli.interrupts import interruptible, leave_at_once

class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

leave_at_once()
with interruptible():
    try:
        Swallows()
        time.sleep(30)
    except KeyboardInterrupt:
        print("raised again", flush=True)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(30)
"""


def test_an_interrupt_that_a_finaliser_swallows_is_raised_again() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SWALLOWED],
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    assert (found.returncode, found.stdout, found.stderr) == (130, "raised again\n", "")


MISREAD = """
import os, signal, sys, time
from keisei.cli import entry, main
from keisei.errors import RunError
import typer

def command() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    except KeyboardInterrupt:
        raise ValueError("a library has made an error of it")

main._imported = lambda name: main.typer.main.get_command(app)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("games")(command)
sys.argv = ["keisei", "runs"]
entry.main()
"""


@pytest.mark.parametrize(("debug", "code"), [("0", 130), ("1", 1)])
def test_an_interrupt_that_a_library_makes_an_error_of(debug: str, code: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", MISREAD],
        capture_output=True,
        text=True,
        env=os.environ | {"KEISEI_DEBUG": debug},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    assert found.returncode == code, found.stderr
    assert ("a library has made" in found.stderr) == (debug == "1")


def test_a_command_that_ignores_interrupts_goes_on_ignoring_them(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv = ['keisei', 'runs'];"
        "from keisei.cli.entry import main\n"
        "try: main()\n"
        "finally: print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert found.stdout.splitlines()[-1] == "True"
