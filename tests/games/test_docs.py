"""The code in the pages on games runs, and so does the example."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import keisei

ROOT = Path(__file__).parents[2]
PAGES = [
    "README", "ludo", "shogi", "your_own_game", "adapters", "worlds", "treasurehunt", "matrix_games",
    "coming-from-sorrel", "faces",
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_code_on_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where a page may write
    text = (ROOT / "docs" / "games" / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    # A fresh dict with a module name: classes look their module up by it.
    namespace: dict[str, Any] = {"__name__": f"docs_{page}"}
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), namespace)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("tictactoe", 20), ("connect-four", 85), ("ludo", 15), ("shogi", 64), ("treasurehunt", 25), ("tag", 49),
        ("stag-hunt", 49), ("cleanup", 243),
    ],
)  # fmt: skip
def test_the_pages_tell_the_true_size_of_a_packed_row(name: str, size: int) -> None:
    page = (ROOT / "docs" / "games" / f"{name.replace('-', '_')}.md").read_text()
    spec = keisei.make_game(name).spec
    assert spec.packed_bytes == size
    assert f"| Packed row | {size} bytes" in page
    assert all(f"`{ending}`" in page for ending in spec.endings[1:])


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "own_game.py"), run_name="__main__")
    assert "games at random: player 0 takes" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["treasurehunt", "tag", "cleanup", "stag-hunt"])
def test_the_pages_of_worlds_tell_all_options_and_their_defaults(name: str) -> None:
    page = (ROOT / "docs" / "games" / f"{name.replace('-', '_')}.md").read_text()
    told: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", page, flags=re.MULTILINE):
        options = re.findall(r"\w+", names)
        values = [value.strip() for value in defaults.split(",")]
        told |= dict(zip(options, values * len(options) if len(values) == 1 else values, strict=True))
    told |= dict(re.findall(r"`(\w+)` \((\d+)[,)]", page))  # those that are told in a sentence
    options = keisei.make_game(name).options.model_dump()  # type: ignore[attr-defined]
    shared = {"turns", "observation"}
    assert set(told) | shared >= set(options)
    for option in set(told) & set(options) - shared:
        assert told[option] == f"{options[option]:g}", option
