"""The face of the tutorial is drawn, and Nim is played by clicks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from web_for_tests import Served, make_history, serving

import keisei

TUTORIAL = Path(__file__).parents[2] / "docs" / "games" / "faces.md"


@pytest.fixture(scope="module")
def nim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that a reader writes."""
    path = tmp_path_factory.mktemp("program") / "nim.py"
    (code, *_) = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    path.write_text(code)
    return path


@pytest.fixture(scope="module")
def served(nim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    make_history(root, "nim", game=f"{nim}:Nim")
    with serving(root) as dashboard:
        yield dashboard


def test_every_position_is_drawn_and_every_move_has_its_place(nim: Path) -> None:
    game = keisei.make_game(f"{nim}:Nim", seed=5)
    face: Any = game.spec.face
    last = None
    for _ in range(60):
        packed, seat = game.pack()[0].tobytes(), int(game.rows().seat[0])
        choices = face.choices(packed, seat, np.flatnonzero(game.legal()[0]).tolist())
        drawn = ElementTree.fromstring(face.svg(packed, seat, last=last))
        places = [element.get("data-place") for element in drawn.iter() if element.get("data-place")]
        assert sorted(places) == sorted(place for choice in choices for place in choice.places)
        assert len({choice.name for choice in choices}) == len(choices)
        action = game.random_actions()
        last = next(choice for choice in choices if choice.action == action[0])
        step = game.step(action)
        if step.done[0]:
            ElementTree.fromstring(face.svg(step.final.packed[0].tobytes(), 0, last=last))
            last = None


def test_a_page_shows_the_game_of_a_run_with_its_face(served: Served) -> None:
    asked = {"run": "nim", "seats": ["person", "nim@best"], "seed": 3}
    before = served.post("/api/play", asked).json
    assert {choice["places"][0] for choice in before["choices"]} >= {"0.1", "1.1", "2.1"}
    (all_of_a,) = (choice["action"] for choice in before["choices"] if choice["places"] == ["0.1"])
    after = served.post("/api/play", {**asked, "actions": [all_of_a]}).json
    assert len(after["actions"]) == 2  # the player of the run has answered
    assert 'data-place="0.1"' in before["svg"]
    assert 'data-place="0.1"' not in after["svg"]
    assert after["seats"] == ["First", "Second"]


@pytest.mark.browser
def test_a_person_plays_by_clicks(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play?run=nim")
    expect(page.locator("#opponent")).to_have_value("nim@best")
    expect(page.locator(".game .counter").first).to_be_visible()
    page.locator('.game [data-place="0.1"]').click()  # all of the first heap
    expect(page.locator(".moves button")).to_have_count(2)
    expect(page.locator('.game [data-place="0.1"]')).to_have_count(0)
