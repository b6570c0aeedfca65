"""Pages of runs in a real browser: folders of runs, comparisons, worlds, phones, and runs that have ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from runs_for_tests import make_run
from web_for_tests import Served, add_game, go_live, make_history, serving

from keisei.games.registry import make_game
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.live import Glimpse
from keisei.runs.replays import GameReplay

pytestmark = pytest.mark.browser


def a_world(root: Path) -> RunDirectory:
    """A run of agents in a world, of which one is it in tag."""
    run = make_run(root, "world", game="tag")
    with RunDatabase(run.database) as database, database.batch():
        for update in range(1, 9):
            numbers = {"agent-0/return": 1.0 * update, "agent-1/return": 3.0 * update, "rollout/return": 2.0}
            database.add_metrics(update, 100 * update, {**numbers, "selfplay/first_win_rate": 0.0})
    return run


def what_is_seen() -> Glimpse:
    row = make_game("tag").pack()[0].tobytes().hex()
    return Glimpse(0, (row,), (0,), (3,), (1,), (0.5,))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        make_history(root, f"lr/seed{seed}")
    make_history(root, "alone")
    make_run(root, "empty")
    world, shogi = a_world(root), make_run(root, "shogi", game="shogi")
    add_game(shogi, GameReplay("shogi", (), names=("a", "b"), scores=(0.0, 0.0)))
    with world.lock():
        go_live(world, board=what_is_seen())
        with serving(root) as dashboard:
            yield dashboard


def test_runs_lie_below_their_folders(served: Served, page: Page) -> None:
    page.goto(served.address)
    folder = page.locator("tr.folder")
    expect(folder).to_contain_text(re.compile(r"lr\s*3 runs · mean of 3 runs"))
    expect(folder).to_contain_text("90 %")
    seed = page.get_by_role("link", name="seed1", exact=True)
    expect(seed).to_be_visible()
    page.get_by_role("button", name="lr").click()
    expect(seed).to_have_count(0)
    page.reload()
    expect(folder).to_be_visible()
    expect(seed).to_have_count(0)  # a folder stays closed
    page.get_by_role("button", name="lr").click()
    seed.click()
    expect(page).to_have_url(re.compile("/run/lr/seed1$"))
    expect(page.get_by_role("heading", name="lr/seed1")).to_be_visible()


def test_a_folder_is_shown_as_the_mean_of_its_runs(served: Served, page: Page) -> None:
    page.goto(served.address)
    page.get_by_role("link", name="mean of 3 runs").click()
    expect(page.get_by_role("heading", name="lr: mean of 3 runs")).to_be_visible()
    expect(page.get_by_role("img", name="Score against random: lr 90.0 %")).to_be_visible()
    expect(page.get_by_text("intervals of the mean over runs")).to_be_visible()
    expect(page.get_by_role("link", name="lr/seed2")).to_be_visible()


def test_a_run_keeps_its_colour_and_curves_come_first(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/compare?run=empty&run=alone&run=lr/seed0")
    expect(page.get_by_role("heading", name="3 runs compared")).to_be_visible()
    legend = page.locator(".chart .legend span", has_text="alone")
    expect(legend.first).to_be_visible()
    places = legend.locator("svg").evaluate_all("all => all.map((one) => one.dataset.place)")
    assert set(places) == {"1"}, "the run before it has no numbers"
    chart, settings = page.locator(".chart").first.bounding_box(), page.locator("#differing").bounding_box()
    assert chart is not None
    assert settings is not None
    assert chart["y"] < settings["y"]
    expect(page.get_by_text("no numbers yet")).to_have_count(0)


def test_what_cannot_be_compared_is_told(served: Served, page: Page, watched: Any) -> None:
    page.goto(f"{served.address}/compare?run=alone")
    expect(page.get_by_text("Choose two runs or more")).to_be_visible()
    watched.expected.append("404")
    page.goto(f"{served.address}/compare?folder=nowhere")
    expect(page.get_by_role("alert")).to_contain_text("there is no folder 'nowhere'")


def test_a_world_shows_its_return_first_and_a_picture(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/world")
    expect(page.locator(".tile").first).to_have_text(re.compile(r"16\s*return of an agent"))
    expect(
        page.get_by_role("img", name="Return of an agent in a game: agent 1 8, agent 2 24")
    ).to_be_visible()
    picture = page.get_by_role("group", name="what agent 1 sees").or_(page.locator("#live svg.world"))
    expect(picture.first).to_be_visible()
    expect(page.locator("#live .legend").filter(has_text="wall")).to_be_visible()
    expect(page.get_by_text("First player wins")).to_have_count(0)


def test_a_run_that_has_ended_says_so(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/alone")
    expect(page.get_by_role("link", name="Play against it")).to_be_visible()
    for text in ("Self-play, live", "Nobody plays now", "Pause", "Add a worker"):
        expect(page.get_by_text(text)).to_be_hidden()


def test_a_phone_shows_large_squares_and_folds_the_rest(served: Served, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 800})
    page = context.new_page()
    page.goto(f"{served.address}/run/alone")
    expect(page.get_by_role("heading", name="Learning")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Loss"))).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    page.get_by_role("heading", name="Learning").click()
    expect(page.get_by_role("img", name=re.compile("^Loss")).locator("canvas")).to_be_visible()
    page.reload()
    expect(page.get_by_role("img", name=re.compile("^Loss"))).to_be_visible()  # what was open stays open

    page.goto(f"{served.address}/run/shogi")
    page.get_by_role("heading", name="Games").click()
    page.get_by_role("button", name="Replay").click()
    square = page.locator('dialog [data-place="5e"]')
    expect(square).to_be_visible()
    expect(
        page.locator("dialog").get_by_text("Value for")
    ).to_be_visible()  # the board is drawn again with it
    box = square.bounding_box()
    assert box is not None
    assert box["width"] * 44 / 42 >= 36  # a place leaves a pixel on each side of its square
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
