"""Processes import nothing from the current directory before they have the path of their parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHADOWS = ("multiprocessing", "selectors", "socket", "json", "tempfile", "numpy", "torch")
STARTS = """
import multiprocessing, sys
sys.path[:] = [entry for entry in sys.path if entry]  # as the command keisei begins
from keisei.machine.new_processes import deaf_to_terminal, own_fork_server

def look(pipe):
    from keisei.machine.safe_path import looks_here
    pipe.send((looks_here(), sys.path))

if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    with deaf_to_terminal(), own_fork_server(["keisei.web.thoughts"]):
        process = multiprocessing.get_context(sys.argv[1]).Process(target=look, args=(theirs,))
        process.start()
    looks, path = ours.recv()
    process.join()
    print(looks, path == sys.path)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with runs that are named like modules, and that hold code."""
    for name in SHADOWS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("open('it-ran', 'a').close()\nraise SystemExit\n")
    return tmp_path


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize(("flags", "looks"), [((), True), (("-P",), False)])
def test_a_run_that_is_named_like_a_module_is_not_imported(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, method: str, flags: tuple[str, ...], looks: bool
) -> None:
    """What the user has told Python is known in the process as well."""
    program = tmp_path_factory.mktemp("program") / "program.py"
    program.write_text(STARTS)
    done = subprocess.run(
        [sys.executable, *flags, str(program), method], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{looks} True\n", done.stderr
    assert not (folder / "it-ran").exists()


def test_runs_side_by_side_do_not_import_it_either(folder: Path) -> None:
    settings = ("--steps", "64", "--set", "evaluation.opponents=[]", "--set", "parallel.backend=process")
    keisei = Path(sys.executable).with_name("keisei")
    subprocess.run(
        [keisei, "train", "tictactoe-ppo", "--root", ".", "--seeds", "0,1", "--quiet", *settings],
        cwd=folder,
        check=True,
    )
    assert not (folder / "it-ran").exists()
