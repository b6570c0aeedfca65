"""The code on the page about policies runs, and the page names every network and policy."""

from __future__ import annotations

import re
from pathlib import Path

from keisei.policies import ModelConfig

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def test_the_code_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    namespace: dict[str, object] = {}
    exec(compile(code, "docs/policies.md", "exec"), namespace)
    assert "decision" in namespace


def test_the_page_names_every_setting_of_a_network() -> None:
    assert [name for name in ModelConfig.model_fields if f"`{name}`" not in PAGE] == []
