"""``keisei doctor`` shows what is there and what is missing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from keisei.cli import doctor
from keisei.cli.main import app
from keisei.machine.cores import CoreLimit, usable_cores
from keisei.native import core


def test_the_report_tells_of_this_machine() -> None:
    found = {finding.name: finding for finding in doctor.examine()}
    assert {
        "python",
        "cores",
        "memory",
        "native core",
        "torch",
        "gpu",
        "ray",
        "onnx",
        "open_spiel",
        "wandb",
    } == set(found)
    assert f"{usable_cores()} " in found["cores"].value
    assert "GiB left of" in found["memory"].value
    assert found["native core"].value == f"build {core.INSTRUCTION_SET}, picked for this processor"
    assert torch.__version__ in found["torch"].value


def test_the_quick_report_names_torch_and_looks_for_no_gpu() -> None:
    whole, quick = ({finding.name: finding for finding in doctor.examine(fast)} for fast in (False, True))
    assert set(whole) - set(quick) == {"gpu"}
    assert quick["torch"].value in whole["torch"].value


def test_the_quick_report_misses_torch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise doctor.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", missing)
    assert list(doctor._torch_on_disk()) == [doctor.Finding("torch", "not installed", "make setup")]


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
    monkeypatch.setattr(doctor, "examine", lambda quick: iter([missing]))
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
    assert ("native core: unset KEISEI_NATIVE" in result.stdout) == (arguments == ["doctor"])
    assert "Traceback" not in result.stderr


def test_cores_are_told_with_what_limits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_cores", lambda: 64)
    monkeypatch.setattr(doctor, "core_limit", lambda: CoreLimit(2, "a cgroup limit of 1.5 CPUs"))
    limited = doctor._cores()
    assert limited.value == "2 of 64 usable by this process: a cgroup limit of 1.5 CPUs"
    assert "more CPUs" in limited.remedy
    monkeypatch.setattr(doctor, "core_limit", lambda: CoreLimit(64, ""))
    assert doctor._cores() == doctor.Finding("cores", "all 64 usable by this process")


@pytest.mark.parametrize(
    ("free", "limit", "expected"),
    [
        (3 << 29, 4 << 30, "1.5 GiB left of 4.0 GiB: a cgroup limit (the machine has 16.0 GiB)"),
        (3 << 29, 99 << 30, "1.5 GiB left of 16.0 GiB"),
        (0, None, "0.0 GiB left of 16.0 GiB"),
        (None, None, "16.0 GiB"),
    ],
)
def test_memory_is_told_as_what_is_left(
    monkeypatch: pytest.MonkeyPatch, free: int | None, limit: int | None, expected: str
) -> None:
    sizes = {"SC_PAGE_SIZE": 1 << 14, "SC_PHYS_PAGES": 1 << 20}
    monkeypatch.setattr(doctor.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(doctor, "free_memory", lambda: free)
    monkeypatch.setattr(doctor, "memory_limit", lambda: limit)
    assert doctor._memory().value == expected


def test_a_build_that_was_asked_for_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEISEI_NATIVE", core.INSTRUCTION_SET)
    assert doctor._native_core().value == f"build {core.INSTRUCTION_SET}, as KEISEI_NATIVE asks"


def test_advice_fits_the_copy_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    python = shlex.quote(sys.executable)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert doctor._native_remedy("avx512").startswith("unset KEISEI_NATIVE")
    assert doctor._native_remedy(None).startswith("make setup")
    assert [finding.remedy for finding in doctor._torch()] == ["make setup"]
    monkeypatch.setattr(doctor, "checkout", lambda: None)
    assert doctor._native_remedy(None) == f"{python} -m pip install --force-reinstall --no-deps keisei"
    assert [finding.remedy for finding in doctor._torch()] == [
        f"{python} -m pip install --force-reinstall torch"
    ]
    ray = doctor._extra("ray", "no_such_package", "several machines")
    assert ray.remedy == f"{python} -m pip install ray"
