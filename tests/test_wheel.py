"""The wheel holds all that is needed and nothing else, and trains where nothing of the checkout can be seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import keisei
from keisei.native import BUILDS

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "keisei"

SUFFIXES = (".py", ".pyi", ".yaml", ".json", ".txt", ".html", ".js", ".css", ".svg")

# Compiles the native core anew, twice. `make test-wheel` runs them in one process, so that they share one build.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``make wheel`` builds it, but in a folder of its own, so that nothing old gets in."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    options = ["--no-build-isolation", "--no-deps", "--wheel-dir", str(folder / "dist")]
    build = ["--config-settings", f"build-dir={folder / 'build'}"]
    run(*pip, *options, *build, str(PROJECT), cwd=folder)
    (found,) = (folder / "dist").glob("keisei-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel in it. The packages of others are those of the environment that
    runs the tests, without its own keisei: a path in a .pth file does not bring that folder's .pth files with it."""
    folder = tmp_path_factory.mktemp("elsewhere") / "environment"
    venv.create(folder, symlinks=True)
    paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
    python = Path(paths["scripts"]) / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    run(*pip, "--no-deps", "--no-index", str(wheel), cwd=folder)
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (Path(paths["purelib"]) / "packages_of_others.pth").write_text("\n".join([*others, ""]))
    return python.parent


def run(*command: str | Path, cwd: Path, expected: int = 0) -> str:
    """What a command prints, in an environment that says nothing about the checkout."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KEISEI"))
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment | {"COLUMNS": "250"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done.stdout
    return done.stdout


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    information = {name for name in names if re.match(r"keisei-[^/]+\.dist-info/", name)}
    native = {name for name in names if re.match(r"keisei/native/_core_\w+\.[\w.-]+$", name)}
    sources = {
        f"keisei/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.suffix in SUFFIXES or path.name == "py.typed"
    }
    assert names - information - native == sources
    assert {"keisei/configs/tictactoe-ppo.yaml", "keisei/runs/archive.py", "keisei/py.typed"} <= sources
    built = {re.sub(r".*_core_(\w+?)\..*", r"\1", name) for name in native}
    assert "baseline" in built <= set(BUILDS)
    assert len(native) == len(built)
    assert any(name.endswith("licenses/LICENSE") for name in information)
    assert "keisei/games/shogi/characters.OFL.txt" in sources, "the outlines go with their licence"
    assert {"keisei/web/static/run.js", "keisei/web/vendored/uPlot.LICENSE.txt"} <= sources


def test_it_is_what_runs_in_the_new_environment(installed: Path, tmp_path: Path) -> None:
    program = "import keisei, keisei.native as n; print(keisei.__file__, n.core.__file__, keisei.__version__)"
    package, core, version = run(installed / "python", "-c", program, cwd=tmp_path).split()
    assert Path(package).is_relative_to(installed.parent)
    assert Path(core).is_relative_to(installed.parent)
    assert version == keisei.__version__
    outside = "import sys; print([path for path in sys.path if path.startswith(sys.argv[1])])"
    assert run(installed / "python", "-c", outside, str(PROJECT / "src"), cwd=tmp_path).strip() == "[]"


def test_it_trains(installed: Path, tmp_path: Path) -> None:
    few = [
        "--set",
        "evaluation.games=4",
        "--set",
        "evaluation.opponents=[random]",
        "--set",
        "parallel.horizon=16",
    ]
    trained = run(installed / "keisei", "train", "tictactoe-ppo", "--steps", "4000", *few, cwd=tmp_path)
    assert (tmp_path / "runs" / "tictactoe-ppo" / "run.db").is_file(), trained
    assert "tictactoe-ppo" in run(installed / "keisei", "runs", cwd=tmp_path)


def test_shogi_is_in_it(installed: Path, tmp_path: Path) -> None:
    assert "nodes 719731" in run(installed / "keisei", "perft", "4", cwd=tmp_path)


def test_advice_speaks_of_no_checkout(installed: Path, tmp_path: Path) -> None:
    report = run(installed / "keisei", "doctor", cwd=tmp_path)
    assert "picked for this processor" in report
    assert "make " not in report
    assert "constraints.txt" not in report
    refusal = run(installed / "keisei", "bench", "games", cwd=tmp_path, expected=2)
    assert "benchmarks run from a checkout" in refusal
    assert "Traceback" not in refusal


def test_a_damaged_copy_is_told_how_to_get_whole(installed: Path, tmp_path: Path) -> None:
    program = "import keisei.native as n; print(n.__file__)"
    folder = Path(run(installed / "python", "-c", program, cwd=tmp_path).strip()).parent
    cores = [(path, path.with_name(f"{path.name}.away")) for path in folder.glob("_core_*.so")]
    for path, away in cores:
        path.rename(away)
    try:
        report = run(installed / "keisei", "doctor", cwd=tmp_path)
    finally:
        for path, away in cores:
            away.rename(path)
    assert "native core (baseline) is not built" in report
    assert "-m pip install --force-reinstall --no-deps keisei" in report
    assert "make " not in report
