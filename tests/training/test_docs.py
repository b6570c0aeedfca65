"""The code on the pages about training and runs runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CODE = [
    pytest.param(name, code, id=f"{name}-{number}")
    for name in ("training.md", "runs.md")
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    )
]


@pytest.mark.parametrize(("name", "code"), CODE)
def test_the_code_runs(name: str, code: str) -> None:
    exec(compile(code, f"docs/{name}", "exec"), {})


def test_the_page_names_every_network() -> None:
    from keisei.policies.networks import _BUILT_IN

    page = (DOCS / "training.md").read_text()
    assert [name for name in _BUILT_IN if f"| `{name}` |" not in page] == []
