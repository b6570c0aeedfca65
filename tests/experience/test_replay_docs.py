"""The page about the replay tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

from keisei.experience.replay_config import ReplaySettings

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()


def test_its_code_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/replay.md", "exec"), names)
    # The third collection reaches learning_starts. Each has 256 decisions: 4 x 256 / 64 steps.
    assert names["steps"] == 4 * 16


def test_it_names_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE, flags=re.MULTILINE))
    defaults = ReplaySettings().model_dump(mode="json")
    said = {name: {"null": None, "true": True, "false": False}.get(text, text) for name, text in rows.items()}
    assert {name: str(value) for name, value in said.items()} == {
        name: str(value) for name, value in defaults.items()
    }
