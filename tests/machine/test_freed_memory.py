"""Freed memory stays with the process: the system is not asked for the same pages again and again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="is about glibc")
def test_pages_are_used_again() -> None:
    assert new_pages("keep") < 100
    assert new_pages("leave") > 10_000
