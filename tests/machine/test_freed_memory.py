"""Freed memory stays with the process: the system is not asked for the same pages again and again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from keisei.machine import freed_memory
from keisei.machine.freed_memory import KEPT_BYTES, LARGEST_KEPT, keep_freed_memory

PROGRAM = """
import resource, sys
from keisei.machine.freed_memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        one, other = bytearray(3 << 20), bytearray(2 << 20)
        del other, one
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
new_pages()
print(new_pages())
"""


def new_pages(how: str) -> int:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"MALLOC_TRIM_THRESHOLD_": "131072"},  # as it is before glibc has adapted itself
    )
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is about glibc")
def test_pages_are_used_again() -> None:
    assert new_pages("keep") < 100
    assert new_pages("leave") > 10_000


class FakeMallopt:
    """Notes what is set, and takes it or not."""

    def __init__(self, *refused: int) -> None:
        self.set: dict[int, int] = {}
        self._refused = refused

    def __call__(self, option: int, value: int) -> int:
        self.set[option] = value
        return 0 if option in self._refused else 1


def library(monkeypatch: pytest.MonkeyPatch, load: Callable[[None], object]) -> None:
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", load)


def test_both_thresholds_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    mallopt = FakeMallopt()
    library(monkeypatch, lambda _: SimpleNamespace(mallopt=mallopt))
    assert keep_freed_memory() is True
    assert mallopt.set == {-3: LARGEST_KEPT, -1: KEPT_BYTES}


@pytest.mark.parametrize("refused", [-1, -3])
def test_a_library_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    library(monkeypatch, lambda _: SimpleNamespace(mallopt=FakeMallopt(refused)))
    assert keep_freed_memory() is False


def test_musl_has_no_mallopt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its headers define the names of glibc all the same, so that Python's tables do not tell."""
    library(monkeypatch, lambda _: SimpleNamespace())
    assert keep_freed_memory() is False
    monkeypatch.delattr(os, "confstr_names")
    assert keep_freed_memory() is False


def test_a_static_program_has_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: None) -> object:
        raise OSError("Dynamic loading not supported")

    library(monkeypatch, refuse)
    assert keep_freed_memory() is False
