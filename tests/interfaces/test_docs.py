"""The code on the pages about USI and records runs, and the pages name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keisei.cli.main import COMMANDS
from keisei.games.shogi.match_records import ShogiRecords
from keisei.interfaces.usi.protocol import EngineOptions

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["usi.md", "records.md"])
def test_the_code_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    assert blocks
    for code in blocks:
        exec(compile(code, f"docs/{page}", "exec"), {})


def test_the_page_has_every_option_with_its_default() -> None:
    page = (DOCS / "usi.md").read_text()
    for line in EngineOptions().offered():
        words = line.split()
        name, default = words[2], words[6]
        (row,) = re.findall(rf"^\| (?:`\w+`, )?`{name}`.*? \| ([^|]*) \|", page, flags=re.MULTILINE)
        assert row.strip(" `") == default.removesuffix(".0")


def test_the_page_has_every_format() -> None:
    page = (DOCS / "records.md").read_text()
    assert all(f"`{suffix}`" in page for suffix in ShogiRecords.suffixes)


@pytest.mark.parametrize("page", ["usi.md", "records.md", "export.md"])
def test_the_commands_exist(page: str) -> None:
    named = set(re.findall(r"^keisei (\w+)", (DOCS / page).read_text(), flags=re.MULTILINE))
    assert named <= COMMANDS.keys()
