"""``keisei doctor`` tells what is there and what is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from keisei.cli import doctor
from keisei.cli.main import app
from keisei.native import core


def test_the_report_tells_of_this_machine() -> None:
    found = {finding.name: finding for finding in doctor.examine()}
    assert {"python", "cores", "memory", "native core", "torch", "gpu", "ray", "open_spiel"} == set(found)
    assert str(len(os.sched_getaffinity(0))) in found["cores"].value
    assert core.INSTRUCTION_SET in found["native core"].value
    assert torch.__version__ in found["torch"].value


def test_the_command_prints_every_finding() -> None:
    result = CliRunner(env={"COLUMNS": "250"}).invoke(app, ["doctor"])
    assert result.exit_code == 0
    for finding in doctor.examine():
        assert finding.name in result.stdout


def test_what_is_missing_comes_with_a_remedy() -> None:
    finding = doctor._extra("no-such-package", "no_such_package", "idle hands")
    assert finding.value == "not installed; only idle hands need it"
    assert finding.remedy.endswith("-m pip install -c constraints.txt no-such-package")


def test_a_remedy_is_printed_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = doctor._extra("no-such-package", "no_such_package", "idle hands")
    monkeypatch.setattr(doctor, "examine", lambda: iter([missing]))
    result = CliRunner(env={"COLUMNS": "40"}).invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert f"\n  no-such-package: {missing.remedy}\n" in result.stdout


@pytest.mark.parametrize(("arguments", "exit_code"), [(["doctor"], 0), (["perft", "1"], 2)])
def test_without_the_native_core_the_command_still_speaks(arguments: list[str], exit_code: int) -> None:
    code = "import sys; from keisei.cli.main import app; app(sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"KEISEI_NATIVE": "no-such-build", "COLUMNS": "250"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == exit_code
    assert "KEISEI_NATIVE names no build: 'no-such-build'" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
