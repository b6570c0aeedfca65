"""The game of the first hour is a game, as it is written first and as it is changed later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import keisei

PAGE = (Path(__file__).parent.parent / "docs" / "first_hour.md").read_text()
(FIRST,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
(CHANGE,) = re.findall(r"```py\n(.*?)```", PAGE, flags=re.DOTALL)


def changed() -> str:
    """What a reader has who follows the page."""
    _, setting_up, observing = CHANGE.split("\n\n")
    code = re.sub(r"^    observation = .*\n", f"\n{setting_up}\n", FIRST, flags=re.MULTILINE)
    return re.sub(r"^    def observe.*\n.*\n", observing, code, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "options", "size"),
    [(FIRST, {}, 3), (changed(), {}, 3), (changed(), {"one_hot": True}, 24)],
    ids=["first", "changed", "one-hot"],
)
def test_the_game_keeps_the_contract(code: str, options: dict[str, bool], size: int, tmp_path: Path) -> None:
    path = tmp_path / "nim.py"
    path.write_text(code)
    keisei.check_game(f"{path}:Nim", **options)
    game = keisei.make_game(f"{path}:Nim", **options)
    assert game.spec.observation.size == size
    names = {game.move_name(action) for action in range(21)}  # type: ignore[attr-defined]
    assert {"A1", "B3", "C7"} <= names
