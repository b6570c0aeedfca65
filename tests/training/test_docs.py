"""The code on the pages about training and runs runs."""

from __future__ import annotations

import re
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

import pytest

from keisei.policies.model_config import BUILT_IN
from keisei.policies.players.trained_player import TrainedPlayer
from keisei.training.callbacks import Callback
from keisei.training.league.settings import LeagueSettings
from keisei.training.settings import TrainConfig

DOCS = Path(__file__).parents[2] / "docs"
CODE = [
    pytest.param(name, code, id=f"{name}-{number}")
    for name in ("training.md", "runs.md", "coming_from_sb3.md", "coming_from_rllib.md")
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


REGIMES = [
    TrainConfig.model_validate({"run": {"steps": 1}, "learner": {"regime": regime}})
    for regime in ("ppo", "dqn", "independent")
]
OF_SETTINGS = [
    "coming_from_sb3.md",
    "coming_from_rllib.md",
    "glossary.md",
    "what_was_tried.md",
    "training.md",
]


@pytest.mark.parametrize("page", ["coming_from_sb3.md", "coming_from_rllib.md"])
def test_the_pages_for_users_of_other_libraries_tell_our_defaults(page: str) -> None:
    text = (DOCS / page).read_text()
    for section, config in zip(("PPO", "DQN"), REGIMES, strict=False):
        table = text.partition(f"## Settings of {section}")[2].partition("\n## ")[0]
        rows = re.findall(r"^\|[^|]*\|[^|]*\| `([\w.]+)` \| ([^|]+) \|", table, flags=re.MULTILINE)
        assert len(rows) >= 8
        for setting, told in rows:
            assert told == str(attrgetter(setting)(config)), setting


def exists(setting: str) -> bool:
    for config in REGIMES:
        with suppress(AttributeError):
            attrgetter(setting)(config)
            return True
    return False


@pytest.mark.parametrize("page", OF_SETTINGS)
def test_the_settings_that_a_page_names_exist(page: str) -> None:
    sections = "|".join(TrainConfig.model_fields)
    ours = re.sub(
        r"^\|[^|]*\|", "", (DOCS / page).read_text(), flags=re.MULTILINE
    )  # tables begin with their words
    named = set(re.findall(rf"`((?:{sections})\.[\w.]*\w)", ours))
    assert named
    assert {name for name in named - {"run.db"} if not exists(name)} == set()
