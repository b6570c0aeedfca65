"""What commands import, and what they say while they wait for torch."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli.main import COMMANDS, _imported, app
from keisei.cli.views import waiting
from keisei.runs.directory import RunDirectory
from keisei.training.presets import load_preset

WITHOUT_TORCH = (
    "--help",
    "--version",
    "train --help",
    "runs --root ROOT",
    "runs --root ROOT --json",
    "config",
    "config shogi-ppo",
    "config connect-four-ppo --explain",
    "config mine --root ROOT",
    "config --schema",
    "games",
    "doctor --quick",
    "train tictactoe-ppo --set learner.clipp=1 --root ROOT",
    "train tictactoe-ppo --set model.network=resnet --root ROOT",
    "train tictactoe-pop --root ROOT",
)
SCRIPT = """
import sys
from typer.testing import CliRunner
from keisei.cli.main import app

for line in sys.argv[1:]:
    result = CliRunner().invoke(app, line.split())
    loaded = [name for name in ("torch", "numpy") if name in sys.modules]
    print(line, result.exit_code, *loaded, sep="|")
"""
FAKE_TORCH = '__version__ = "0"\nraise ImportError("it is a fake")\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    RunDirectory.create(tmp_path / "runs", "mine", load_preset("tictactoe-ppo").config().resolved())
    return tmp_path / "runs"


def loaded_after(lines: list[str]) -> dict[str, tuple[int, set[str]]]:
    """For each command, one after the other in one process: its exit code, and the packages that are loaded."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *lines], capture_output=True, text=True, check=True
    ).stdout
    found = [line.split("|") for line in result.splitlines()]
    return {line: (int(code), set(names)) for line, code, *names in found}


def test_commands_that_need_no_torch_do_not_load_it(root: Path) -> None:
    lines = [line.replace("ROOT", str(root)) for line in WITHOUT_TORCH]
    found = loaded_after(lines)
    assert list(found) == lines
    assert [line for line, (_, names) in found.items() if "torch" in names] == []
    assert [code for code, _ in found.values()] == [0] * 12 + [2] * 3


def test_the_smallest_commands_load_no_numpy_either(root: Path) -> None:
    found = loaded_after(["--help", "--version", f"runs --root {root}", "config", "doctor --quick"])
    assert [line for line, (_, names) in found.items() if names] == []


def test_a_run_is_planned_without_torch(root: Path) -> None:
    """So other settings for a run that exists are refused at once."""
    code = (
        "import sys; from pathlib import Path; from keisei.training.api import plan_run\n"
        f"plan_run('mine', root=Path({str(root)!r}), overrides=['run.steps=5'])\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_the_first_sentence_of_each_command(name: str) -> None:
    about = " ".join((_imported(name).help or "").split())
    assert COMMANDS[name].endswith(".")
    assert (about + " ").startswith(COMMANDS[name] + " ")


def test_the_help_lists_every_command() -> None:
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--help"]).stdout
    for name, line in COMMANDS.items():
        assert any(name in row and line in row for row in shown.splitlines()), name


# What it says


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *modules: str) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with waiting.torch_announced():
        for module in modules:
            for finder in list(sys.meta_path):
                if isinstance(finder, waiting._TorchNotice):
                    assert finder.find_spec(module) is None
    return stream.getvalue()


def test_torch_is_announced_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    assert said(monkeypatch, Terminal(), "json", "torch", "torch") == "loading torch …\n"
    assert sys.meta_path == before


def test_nothing_is_said_in_a_pipe_or_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, io.StringIO(), "torch") == ""
    assert said(monkeypatch, Terminal(), "json", "torch.nn") == ""


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What a command writes to a terminal. Torch is replaced by a package that ends the command at once."""
    (folder / "torch.py").write_text(FAKE_TORCH)
    ours, theirs = pty.openpty()
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from keisei.cli.main import app; app()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # all has been read
            break
        if not part:
            break
        written += part
    os.close(ours)
    process.wait()
    return written.decode()


def test_a_command_says_what_it_waits_for(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "train", "tictactoe-ppo", "--root", "runs")
    assert shown.startswith("loading torch …")
    assert "it is a fake" in shown


def test_quiet_says_nothing(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "train", "tictactoe-ppo", "--root", "runs", "--quiet")
    assert "loading" not in shown
    assert "it is a fake" in shown


LIST_OF_GAMES = "import sys; sys.argv = ['keisei', 'games']; from keisei.cli.entry import main; main()"


def test_the_list_of_games_needs_no_typer_nor_rich_and_is_the_same() -> None:
    """Numpy and pydantic alone take most of the time that the command may take."""
    script = f"{LIST_OF_GAMES}; print([name for name in ('rich', 'typer') if name in sys.modules], file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stderr == "[]\n"
    assert found.stdout == CliRunner().invoke(app, ["games"]).stdout


def test_a_reader_may_close_the_list_of_games() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    found = subprocess.run(
        [sys.executable, "-c", LIST_OF_GAMES], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(theirs)
    assert (found.returncode, found.stderr) == (1, "")
