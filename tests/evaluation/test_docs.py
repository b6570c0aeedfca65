"""The code on the page about evaluation runs, and the page names the functions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
def test_the_code_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "docs/evaluation.md", "exec"), {})
    assert capsys.readouterr().out.count("\n") >= 3


def test_the_page_names_the_functions() -> None:
    for name in ("play_match", "score_interval", "elo_difference", "round_robin", "ladder_step", "rate"):
        assert f"`{name}`" in PAGE or f"{name}(" in PAGE
