"""Commands on terminals that show ASCII alone, on streams that are closed, and on those that close meanwhile."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from training_for_tests import TINY, checkpoints, is_running, train

from keisei.cli import streams
from keisei.cli.main import COMMANDS
from keisei.cli.stand_ins import plain
from keisei.cli.views.plain_view import PlainView
from keisei.runs.directory import RunDirectory, RunState

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-c", "from keisei.cli.entry import main; main()"]
ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "100"}

# A terminal that shows ASCII alone

GAME = "startpos moves 7g7f 3c3d"
LINES = {
    "bench": ("--help", 0),
    "config": ("shogi-ppo --explain", 0),
    "doctor": ("--quick", 0),
    "evaluate": ("a --games 2", 0),
    "export": ("nothing --out a.onnx", 2),
    "games": ("", 0),
    "ladder": ("a --games 2", 0),
    "league": ("a", 2),
    "match": ("random greedy --game tictactoe --games 2", 0),
    "perft": ("2", 0),
    "picture": ("game.sfen --out game.svg", 0),
    "play": ("random --game shogi --seat 1 --seed 1", 0),
    "plot": ("a", 2),
    "pretrain": ("nothing --run b", 2),
    "profile": ("tiny.yaml --mode serial", 0),
    "runs": ("", 0),
    "schelling": ("a", 2),
    "sweep": ("nothing --set run.seed=1", 2),
    "serve": ("--help", 0),
    "simulate": ("--nodes 2", 0),
    "soak": ("--help", 0),
    "tournament": ("random a --games 2", 0),
    "train": ("tiny.yaml --name c", 0),
    "usi": ("", 0),
    "verify": ("--game tictactoe --random --backends inline --workers 1 --rounds 2", 0),
}
INPUT = {"play": "moves\n手番\n7g7f\nresign\n", "usi": "usi\nquit\n"}


@pytest.fixture(scope="module")
def in_ascii(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """What each command says and how it ends."""
    folder = tmp_path_factory.mktemp("ascii")
    (folder / "tiny.yaml").write_text(yaml.safe_dump(dict(TINY)))
    (folder / "game.sfen").write_text(GAME)
    train(folder / "runs", "evaluation={every: 512, games: 2, opponents: [random]}", name="a")
    lines = [([name, *arguments.split()], INPUT.get(name, "")) for name, (arguments, _) in LINES.items()]
    program = [sys.executable, str(HERE / "commands_for_tests.py"), json.dumps(lines)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=folder, env=ASCII)
    assert done.returncode == 0, done.stderr
    return dict(zip(LINES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_works_on_a_terminal_with_ascii(
    name: str, in_ascii: dict[str, tuple[int, str, str]]
) -> None:
    code, out, err = in_ascii[name]
    assert code == LINES[name][1], err
    assert "Traceback" not in err
    assert "\\x" not in out + err.replace("\\udc", ""), "nothing but ASCII"
    assert err.startswith("error: ") or code == 0


def test_a_board_of_shogi_can_be_read_in_ascii(in_ascii: dict[str, tuple[int, str, str]]) -> None:
    shown = in_ascii["play"][1]
    assert "|vL vN vS vG vK vG vS vN vL |1 a\n| . vR  .  .  .  .  . vB  . |2 b\n" in shown
    assert "White's hand: nothing" in shown


def test_characters_have_stand_ins() -> None:
    assert plain("5 – 7 … é ½ 飛二 歩十八 馬 一") == "5 - 7 ... e 1/2 R 2 P 18 +B 1"
    assert plain("犬\udcff") == "??"


def test_a_view_on_an_old_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    streams.prepare_streams()
    PlainView(Console(file=sys.stdout)).note("0 … 9: 犬 was né", "warning")
    assert raw.getvalue() == b"00:00  warning: 0 ... 9: ? was n\xe9\n"


# Streams that are closed


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(dict(TINY)))
    return tmp_path


def sh(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of the shell in which ``keisei`` is the command."""
    words = " ".join(f"'{word}'" for word in COMMAND)
    script = f'keisei() {{ {words} "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_training_needs_no_streams(tiny: Path, closed: str) -> None:
    done = sh(tiny, f"keisei train tiny.yaml {closed}")
    assert done.returncode == 0, done.stderr
    run = RunDirectory(tiny / "runs" / "tiny")
    assert run.status().state is RunState.FINISHED
    assert checkpoints(run)[-1] == 4
    for line in run.log.read_text().splitlines():
        assert line.startswith("{"), "nothing was written into the file that got number 1 or 2"


def test_worker_processes_need_no_streams(tiny: Path) -> None:
    done = sh(tiny, "keisei train tiny.yaml --set parallel.backend=process <&- >&- 2>&-")
    assert done.returncode == 0
    assert RunDirectory(tiny / "runs" / "tiny").status().state is RunState.FINISHED


@pytest.mark.parametrize("line", ["keisei usi", "keisei games", "keisei runs", "keisei config"])
def test_other_commands_need_no_streams(tiny: Path, line: str) -> None:
    assert sh(tiny, f"{line} <&- >&- 2>&-").returncode == 0


def test_an_error_has_its_exit_code_without_streams(tiny: Path) -> None:
    assert sh(tiny, "keisei train nothing.yaml >&- 2>&-").returncode == 2


# Readers that leave


def test_training_outlives_the_reader_of_its_pipe(tiny: Path) -> None:
    done = sh(tiny, "keisei train tiny.yaml | head -n 1; exit ${PIPESTATUS[0]}")
    assert done.returncode == 0
    assert done.stderr == ""
    assert RunDirectory(tiny / "runs" / "tiny").status().state is RunState.FINISHED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_training_outlives_the_disk_of_its_output(tiny: Path) -> None:
    done = sh(tiny, "keisei train tiny.yaml > /dev/full")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_digest_that_cannot_be_written_is_an_error(tiny: Path) -> None:
    done = sh(tiny, "keisei train tiny.yaml --deterministic-digest > /dev/full")
    assert done.returncode == 1


LONG = {
    **TINY,
    "parallel": {**TINY["parallel"], "backend": "process"},
    "run": {"steps": 10**9, "learner_threads": 1, "checkpoint_every": None, "checkpoint_minutes": 1000},
}


def until(happens: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def on_a_terminal(folder: Path, words: list[str]) -> Iterator[tuple[int, int]]:
    """Starts a command on a terminal of its own. Gives its process, and our side of the terminal."""
    child, ours = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvp(words[0], words)
    try:
        yield child, ours
    finally:
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def saw(ours: int, run: RunDirectory, updates: int) -> bool:
    """Whether a run has come so far. What it shows is read, so that it is not held up."""
    os.set_blocking(ours, False)
    with suppress(OSError):  # there is nothing now, or nobody has the other side open
        while os.read(ours, 1 << 16):
            pass
    return run.log.exists() and run.log.read_text().count('"event": "update"') >= updates


def workers_of(process_id: int) -> list[int]:
    """The processes that it has started, and theirs."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process_id:
            child = int(stat.parent.name)
            found += [child, *workers_of(child)]
    return found


@pytest.mark.parametrize("plain_lines", [[], ["--plain"]], ids=["panel", "lines"])
def test_a_run_whose_terminal_is_closed_saves(tmp_path: Path, plain_lines: list[str]) -> None:
    (tmp_path / "long.yaml").write_text(yaml.safe_dump(LONG))
    run = RunDirectory(tmp_path / "runs" / "long")
    with on_a_terminal(tmp_path, [*COMMAND, "train", "long.yaml", *plain_lines]) as (child, ours):
        assert until(lambda: saw(ours, run, 3))
        assert checkpoints(run) == [0]
        started = workers_of(child)
        assert len(started) >= 3, "a fork server and two workers"
        for process_id in started:
            os.kill(process_id, signal.SIGHUP)  # as the system does when the terminal is closed
        assert until(lambda: saw(ours, run, 30))
        assert workers_of(child) == started, "they all go on"
        os.close(ours)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert run.status().state is RunState.INTERRUPTED
    assert run.status().detail == "interrupted", "it has ended by itself"
    assert checkpoints(run)[-1] >= 30
    assert until(lambda: not any(map(is_running, started)), 20)


def test_nohup_is_respected(tiny: Path) -> None:
    run = RunDirectory(tiny / "runs" / "tiny")
    words = ["nohup", *COMMAND, "train", "tiny.yaml", "--steps", "25600", "--set", "run.checkpoint_every=50"]
    with on_a_terminal(tiny, words) as (child, ours):
        assert until(lambda: saw(ours, run, 1))
        os.kill(child, signal.SIGHUP)
        os.close(ours)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert run.status().state is RunState.FINISHED
    assert checkpoints(run)[-1] == 100
