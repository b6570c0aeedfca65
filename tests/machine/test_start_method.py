"""How processes start, on systems of several kinds."""

from __future__ import annotations

import multiprocessing
import sys

import pytest

from keisei.machine.start_method import chosen_start_method


@pytest.mark.parametrize(
    ("platform", "offered", "expected"),
    [
        ("linux", ["fork", "spawn", "forkserver"], "forkserver"),
        ("darwin", ["spawn", "fork", "forkserver"], "spawn"),
        ("win32", ["spawn"], "spawn"),
    ],
)
def test_auto_takes_the_fork_server_where_that_is_safe(
    monkeypatch: pytest.MonkeyPatch, platform: str, offered: list[str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: offered)
    assert chosen_start_method() == chosen_start_method("auto") == expected


def test_what_is_asked_for_is_taken() -> None:
    assert chosen_start_method("spawn") == "spawn"
    assert chosen_start_method("forkserver") == "forkserver"
