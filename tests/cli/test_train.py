"""``keisei train`` as a person runs it, signals and all."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from keisei.cli.main import app
from keisei.cli.next_commands import next_commands
from keisei.errors import RunDatabaseError
from keisei.games.registry import make_game
from keisei.runs.archive import CheckpointArchive
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory, RunState, list_runs
from keisei.training.settings import RunSettings

TINY: Mapping[str, Any] = {
    "env": {"game": "tictactoe"},
    "model": {"network": "mlp", "hidden_dim": 16, "num_layers": 1},
    "learner": {"minibatch_size": 64, "epochs": 1},
    "parallel": {"backend": "inline", "num_workers": 2, "tables": 2, "games": 8, "horizon": 16},
    "evaluation": {"games": 2},
    "run": {"steps": 1024, "learner_threads": 1},
}
DIGEST = re.compile(r"[0-9a-f]{64}\n")


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(dict(TINY)))
    return str(path)


def train(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", "--root", str(root), *arguments])


def seed_of(path: Path) -> int:
    return int(RunDirectory.open(path).config()["run"]["seed"])


# What it says


def test_lines_where_there_is_no_terminal(tmp_path: Path, tiny: str) -> None:
    result = train(tmp_path, tiny)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    *shown, play, watch, go_on = result.stdout.splitlines()
    lines = [line.split("  ", 1)[1] for line in shown]
    assert lines[0] == f"run {tmp_path / 'tiny'}  game tictactoe  1,024 steps"
    assert lines[1].startswith("network mlp")
    assert any(line.startswith("update 1  256 steps (25.0 %)") for line in lines)
    assert any(line.startswith("evaluation of update 4  against random  score ") for line in lines)
    assert re.fullmatch(r"finished: 1,024 transitions, 4 updates, \d+ games in \d+ s", lines[-1])
    path = tmp_path / "tiny"
    assert RunDirectory.open(path).status().state is RunState.FINISHED
    assert play == f"Play against it: keisei play {path}"
    assert watch == f"Watch it:        keisei serve --root {tmp_path}"
    assert go_on == f"Go on:           keisei train {path} --steps 2048"


def test_the_commands_to_type_next_work(tmp_path: Path, tiny: str) -> None:
    told = train(tmp_path, tiny).stdout.splitlines()[-3:]
    play, watch, go_on = (shlex.split(line.partition(": ")[2])[1:] for line in told)
    runner = CliRunner(env={"KEISEI_TOKEN": ""})
    assert "illegal" not in runner.invoke(app, [*play, "--seat", "1"], input="resign\n").output
    assert "--root" in watch
    result = runner.invoke(app, go_on)
    assert "finished: 2,048 transitions" in result.output
    assert result.stdout.splitlines()[-1].endswith("--steps 4096")


@pytest.mark.parametrize(
    ("length", "option"),
    [
        ({"steps": 7}, "--steps 14"),
        ({"steps": None, "minutes": 2.5}, "--minutes 5"),
        ({"steps": None, "episodes": 30}, "--set run.episodes=60"),
    ],
)
def test_going_on_takes_a_longer_run(length: dict[str, Any], option: str) -> None:
    spec = make_game("tictactoe", batch=1, seed=0).spec
    lines = next_commands(RunDirectory(Path("runs/a b")), spec, RunSettings(**length), ended=True)
    assert [*lines][1:] == [
        "Watch it:        keisei serve",
        f"Go on:           keisei train 'runs/a b' {option}",
    ]


def test_the_command_is_named_as_it_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / ".venv" / "bin" / "keisei"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    spec = make_game("cleanup", batch=1, seed=0).spec
    lines = [*next_commands(RunDirectory(Path("x/a")), spec, RunSettings(), ended=False)]
    assert lines == [
        "See how it does: .venv/bin/keisei evaluate x/a",
        "Watch it:        .venv/bin/keisei serve --root x",
        "Continue it: .venv/bin/keisei train x/a",
    ]
    monkeypatch.setenv("PATH", str(program.parent))
    (*_, last) = next_commands(RunDirectory(Path("x/a")), spec, RunSettings(), ended=False)
    assert last == "Continue it: keisei train x/a"


def test_a_game_in_a_file_is_trained_with_settings_that_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parents[2] / "examples" / "hex.py", tmp_path / "hex.py")
    small = ["parallel.games=8", "parallel.horizon=8", "learner.minibatch_size=64", "evaluation.games=2"]
    settings = [word for setting in small for word in ("--set", setting)]
    result = train(tmp_path / "runs", "hex.py", "--steps", "512", *settings)
    assert result.exit_code == 0, result.output
    lines = [line.partition("  ")[2] for line in result.stdout.splitlines()]
    told = " ".join(" ".join(lines).split())  # wherever a long path has broken the lines
    assert f"{tmp_path}/hex.py:Hex 512 steps" in told
    assert "settings chosen for hex (a board, 2 seats): network slim" in told
    assert "To change them: keisei config hex.py > mine.yaml" in told
    assert "against random score" in told
    assert "against greedy score" in told
    again = train(tmp_path / "runs", "hex.py", "--steps", "1024")
    assert again.exit_code == 0, again.output
    assert "1,024 transitions" in again.stdout


def test_the_digest_stands_alone_on_stdout(tmp_path: Path, tiny: str) -> None:
    first = train(tmp_path, tiny, "--deterministic-digest")
    assert first.exit_code == 0, first.output
    assert DIGEST.fullmatch(first.stdout)
    assert "update 4" in first.stderr
    second = train(tmp_path, tiny, "--name", "second", "--deterministic-digest", "--quiet")
    assert second.stdout == first.stdout
    assert second.stderr == ""
    other = train(tmp_path, tiny, "--name", "other", "--deterministic-digest", "--set", "run.seed=1")
    assert other.stdout != first.stdout


def test_quiet_says_nothing(tmp_path: Path, tiny: str) -> None:
    result = train(tmp_path, tiny, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


# Runs that are there already


def test_the_same_command_goes_on(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny, "--steps", "512")
    result = train(tmp_path, "tiny", "--steps", "1024")
    assert result.exit_code == 0, result.output
    assert "resumed from update 2" in result.stdout
    assert "finished: 1,024 transitions, 4 updates, " in result.stdout
    assert (tmp_path / "tiny" / "config.1.yaml").is_file()
    by_path = train(tmp_path / "elsewhere", str(tmp_path / "tiny"), "--steps", "1280")
    assert "resumed from update 4" in by_path.stdout


def test_a_run_that_is_over_says_so(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny)
    result = train(tmp_path, tiny)
    assert result.exit_code == 0
    assert "the run has already ended" in " ".join(result.stdout.split())


def test_other_settings_are_refused(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny)
    result = train(tmp_path, tiny, "--set", "run.seed=1")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: run {tmp_path / 'tiny'} cannot change these settings")
    assert "\n  run.seed 0 → 1\n" in result.stderr
    assert "--restart" in result.stderr
    assert seed_of(tmp_path / "tiny") == 0


def test_a_changed_setting_is_told(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny, "--steps", "256")
    result = train(tmp_path, tiny, "--steps", "512", "--set", "learner.learning_rate=5e-4")
    assert result.exit_code == 0, result.output
    assert "learner.learning_rate 0.0003 → 0.0005 from update 2 on\n" in result.stdout


def test_a_length_that_is_reached_is_told(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny)
    result = train(tmp_path, "tiny", "--steps", "512")
    assert result.exit_code == 2
    assert "has 1,024 transitions already, so there is nothing to train up to 512" in result.stderr
    assert not (tmp_path / "tiny" / "config.1.yaml").exists()


@pytest.mark.parametrize(("option", "kept"), [("--restart", ["tiny", "tiny.1"]), ("--overwrite", ["tiny"])])
def test_a_run_begins_anew_only_when_told(tmp_path: Path, tiny: str, option: str, kept: list[str]) -> None:
    train(tmp_path, tiny)
    result = train(tmp_path, tiny, "--set", "run.seed=1", option)
    assert result.exit_code == 0, result.output
    assert "resumed" not in result.stdout
    assert [run.name for run in list_runs(tmp_path)] == kept
    assert seed_of(tmp_path / "tiny") == 1


# What it refuses


def refused(root: Path, *arguments: str) -> str:
    result = train(root, *arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert list_runs(root) == []
    return result.stderr


def test_an_unknown_preset_with_a_near_name(tmp_path: Path) -> None:
    assert "did you mean 'tictactoe-ppo'" in refused(tmp_path, "tictactoe-pop")


def test_all_bad_settings_at_once(tmp_path: Path, tiny: str) -> None:
    told = refused(
        tmp_path,
        tiny,
        "--set",
        "learner.clipp=0.1",
        "--set",
        "parallel.horizon=0",
        "--set",
        "env.board_size=x",
    )
    assert "3 problems in " in told
    for problem in (
        "learner.clipp: unknown setting; did you mean clip?",
        "parallel.horizon = 0",
        "env.board_size = 'x'",
    ):
        assert problem in told


def test_assignments_that_are_none(tmp_path: Path, tiny: str) -> None:
    told = refused(tmp_path, tiny, "--set", "run.seed", "--set", "learner.=3")
    assert "2 problems in --set" in told
    assert "run.seed: write it as key=value" in told


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "is neither a preset nor a settings file nor a run" in refused(tmp_path, str(tmp_path / "folder"))


def test_restart_and_overwrite_together(tmp_path: Path, tiny: str) -> None:
    assert "give only one of them" in refused(tmp_path, tiny, "--restart", "--overwrite")


def test_a_device_that_is_not_there(tmp_path: Path, tiny: str) -> None:
    assert "run.device = 'cuuda'" in refused(tmp_path, tiny, "--set", "run.device=cuuda")


def test_a_root_that_is_a_file(tmp_path: Path, tiny: str) -> None:
    assert f"error: {tiny} is a file, and runs need a folder" in refused(Path(tiny), "tictactoe-ppo")


def test_a_game_that_is_not_known(tmp_path: Path, tiny: str) -> None:
    result = train(tmp_path, tiny, "--set", "env.game=tictactow")
    assert result.exit_code == 2
    assert "did you mean 'tictactoe'" in result.stderr


def test_a_run_that_somebody_else_trains(tmp_path: Path, tiny: str) -> None:
    train(tmp_path, tiny, "--steps", "256")
    run = RunDirectory.open(tmp_path / "tiny")
    with run.lock():
        result = train(tmp_path, "tiny")
    assert result.exit_code == 2
    assert f"{run.path} is being trained by process {os.getpid()}" in result.stderr


# Signals


def children_of(process_id: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        found += [int(child) for child in task.read_text().split()]
    return found + [grandchild for child in found for grandchild in children_of(child)]


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Any, seconds: float = 60.0) -> None:
    """Wait for what must come; the time is only there to end a test that fails."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def training(root: Path, settings: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A trainer with worker processes that has learned something, in a group of its own as in a terminal."""
    command = [
        *(
            sys.executable,
            "-c",
            "from keisei.cli.main import app; app()",
            "train",
            settings,
            "--root",
            str(root),
        ),
        *("--set", "parallel.backend=process", "--steps", "1_000_000_000", *arguments),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell in the background has its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    run = RunDirectory(root / "tiny")
    try:
        until(lambda: process.poll() is not None or updates_of(run) >= 2)
        yield process
    finally:
        process.kill()
        process.communicate()


def updates_of(run: RunDirectory) -> int:
    try:
        with RunDatabase(run.database, read_only=True) as database:
            progress = database.progress()
    except RunDatabaseError:  # it is not there yet, or still empty
        return 0
    return progress.update if progress is not None else 0


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_saves_and_leaves(tmp_path: Path, tiny: str, number: signal.Signals) -> None:
    with training(tmp_path, tiny) as process:
        children = children_of(process.pid)
        assert len(children) >= 3  # two workers and the server that they were forked from
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    run = RunDirectory.open(tmp_path / "tiny")
    assert f"warning: {number.name}: saving and leaving; once more leaves at once" in output
    assert output.splitlines()[-1] == f"Continue it: keisei train {run.path}"
    assert "Traceback" not in output
    assert run.status().state is RunState.INTERRUPTED
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    assert found.skipped == ()
    assert found.checkpoint.update == updates_of(run) >= 2
    assert re.search(rf"interrupted: [\d,]+ transitions, {found.checkpoint.update:,} updates, ", output)
    until(lambda: not any(map(is_running, children)))


def test_kill_9_leaves_no_process_and_the_run_goes_on(tmp_path: Path, tiny: str) -> None:
    with training(tmp_path, tiny, "--set", "run.checkpoint_every=1") as process:
        children = children_of(process.pid)
        process.kill()
        process.wait()
        until(lambda: not any(map(is_running, children)))
    run = RunDirectory.open(tmp_path / "tiny")
    assert run.status().state is RunState.INTERRUPTED
    found = CheckpointArchive(run.checkpoints, read_only=True).latest()
    assert found is not None
    steps = int(found.checkpoint.counters["transitions"]) + 256
    result = train(tmp_path, "tiny", "--steps", str(steps), "--set", "parallel.backend=inline")
    assert result.exit_code == 0, result.output
    assert f"resumed from update {found.checkpoint.update}" in result.stdout


STUCK = '''
import time
from pathlib import Path

from keisei.games.tictactoe import TicTacToe


class Stuck(TicTacToe):
    """Tic-tac-toe that gets stuck in the third update, and leaves a sign of it."""

    name = "stuck"
    moves = 0

    def play(self, action, rng):
        Stuck.moves += 1
        if Stuck.moves > 2 * 128 + 50:
            Path(__file__).with_name("is_stuck").touch()
            time.sleep(600)
        super().play(action, rng)
'''


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    (tmp_path / "stuck_game.py").write_text(STUCK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "--set", "env.game=stuck_game:Stuck"


def lines_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    lines: list[str] = []
    while text not in "".join(lines):
        line = process.stdout.readline()
        assert line, "".join(lines)
        lines.append(line)
    return "".join(lines)


def test_the_second_signal_is_obeyed_at_once(tmp_path: Path, tiny: str, stuck: tuple[str, str]) -> None:
    with training(tmp_path, tiny, *stuck) as process:
        children = children_of(process.pid)
        until((tmp_path / "is_stuck").exists)
        process.send_signal(signal.SIGTERM)
        lines_until(process, "once more leaves at once")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert output == ""
    until(lambda: not any(map(is_running, children)))


@pytest.mark.slow
def test_an_update_that_does_not_end_is_given_up(tmp_path: Path, tiny: str, stuck: tuple[str, str]) -> None:
    """After five seconds of patience. Its updates were short, so no state was kept but the last checkpoint."""
    with training(tmp_path, tiny, *stuck, "--set", "run.checkpoint_every=1") as process:
        children = children_of(process.pid)
        until((tmp_path / "is_stuck").exists)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "the update is abandoned" in output
    assert f"Continue it: keisei train {tmp_path / 'tiny'}" in output
    found = CheckpointArchive(tmp_path / "tiny" / "checkpoints", read_only=True).latest()
    assert found is not None
    assert found.checkpoint.update == 2
    until(lambda: not any(map(is_running, children)))
