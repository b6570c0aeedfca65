"""The code on the pages about training and runs runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keisei.policies.model_config import BUILT_IN
from keisei.training.callbacks import Callback
from keisei.training.league.settings import LeagueSettings
from keisei.training.trained_player import TrainedPlayer

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


def test_the_page_has_every_setting_of_the_league_with_its_default() -> None:
    page = (DOCS / "training.md").read_text()
    section = page.partition("## A league")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, flags=re.MULTILINE)
    told = {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    shown = {None: "null", (): "none", True: "true"}
    assert told == {
        name: shown.get(field.default, str(field.default))
        for name, field in LeagueSettings.model_fields.items()
    }


def test_the_page_names_every_network() -> None:
    page = (DOCS / "training.md").read_text()
    assert [name for name in BUILT_IN if f"| `{name}` |" not in page] == []


def test_the_page_names_every_method_of_a_callback() -> None:
    page = (DOCS / "training.md").read_text()
    methods = [name for name in vars(Callback) if name.startswith("on_")]
    assert len(methods) == 6
    assert [name for name in [*methods, "note"] if f"| `{name}(" not in page] == []


def test_the_page_names_every_method_of_a_player() -> None:
    page = (DOCS / "training.md").read_text()
    methods = [name for name in vars(TrainedPlayer) if not name.startswith("_")]
    assert [name for name in methods if f"`player.{name}(" not in page] == []
