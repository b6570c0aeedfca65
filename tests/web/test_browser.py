"""The pages in a real browser: they load, they live, and games are played by clicks and by keys."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from training_for_tests import tiny
from web_for_tests import TOKEN, WON, Served, add_game, go_live, make_history, serving

from keisei.games.shogi import kif
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.rows import EvaluationRow, LeagueMemberRow, LeagueResultRow, WorkerEventRow
from keisei.training.interruption import Interruption
from keisei.training.trainer import Trainer

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    run = make_history(root, "first")
    add_game(run, WON)
    with RunDatabase(run.database) as database:
        database.add_evaluation(EvaluationRow(20, 2000, 1.0, "update-20", HOSTILE, 1, 0, 1, 0.5, 0.1, 0.9))
        database.add_worker_event(WorkerEventRow(4, 1.0, 0, "restarted", HOSTILE))
        member = LeagueMemberRow(
            100, 5, 1.0, HOSTILE, "player", 0, True, 3, 0, 1, 4, 0.75, 0.3, 0.9, 0.0, -5.0, 5.0, False
        )
        database.add_league(
            [member], [LeagueResultRow("learner", HOSTILE, 5, 1.0, 3, 0, 1, 0.75, 0.3, 0.9, 100)]
        )
    make_history(root, "second", game="connect-four")
    with run.lock():
        go_live(run)
        with serving(root) as dashboard:
            yield dashboard


def place(page: Page, name: str) -> Any:
    return page.locator(f'.game [data-place="{name}"]')


# Pages.


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_pages_load_and_fit(browser: Browser, served: Served, scheme: Any, width: int, height: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    shows = {
        "/": "2 runs, 1 being trained",
        "/run/first": "Score in matches against",
        "/compare?run=first&run=second": "Settings that differ",
        "/play": "your move",
    }
    for path, text in shows.items():
        page.goto(served.address + path)
        expect(page.get_by_text(text).first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is wider than the window"
    context.close()
    assert complaints == []


def test_runs_are_filtered_sorted_and_compared(served: Served, page: Page) -> None:
    page.goto(served.address)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Filter runs").fill("connect")
    expect(rows).to_have_count(1)
    page.get_by_label("Filter runs").fill("env.game=tictactoe running")
    expect(rows).to_have_text([re.compile("first")])
    page.get_by_label("Filter runs").fill("nothing")
    expect(page.get_by_text("No run fits")).to_be_visible()
    page.get_by_label("Filter runs").fill("")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(rows.first).to_contain_text("first")
    page.get_by_role("button", name="Run ↑").click()
    expect(rows.first).to_contain_text("second")
    page.get_by_label("Show a setting").select_option("env.game")
    expect(rows.first).to_contain_text("connect-four")
    page.get_by_label("compare first").check()
    page.get_by_label("compare second").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.get_by_role("row", name="env.game")).to_contain_text("connect-four")


def test_names_are_shown_as_they_are(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/first")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.locator("main img").count() == 0
    expect(page).to_have_title("first – Keisei")


def test_what_is_not_there_is_told(served: Served, page: Page, watched: Any, tmp_path: Path) -> None:
    watched.expected.append("404")
    page.goto(f"{served.address}/run/nobody")
    expect(page.get_by_role("heading", name="There is no such run")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("there is no run 'nobody'")
    page.goto(f"{served.address}/nowhere/at/all")
    expect(page.get_by_text("There is no such page")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    with serving(tmp_path) as empty:
        page.goto(empty.address)
        expect(page.get_by_text("keisei train tictactoe-ppo")).to_be_visible()
        page.close()


def test_light_and_dark_are_remembered(served: Served, page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(served.address)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch to dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.reload()
    expect(page.get_by_role("button", name="Switch to light")).to_be_visible()


def test_a_game_is_replayed_move_by_move(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/first")
    page.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog", name="Replay")
    expect(dialog.get_by_text("ply 0 of 5")).to_be_visible()
    expect(dialog.get_by_text("Favourite moves")).to_be_visible()
    dialog.get_by_role("button", name="Forward").click()
    expect(dialog.get_by_text("ply 1 of 5")).to_be_visible()
    dialog.get_by_role("button", name="5. c3").click()
    expect(dialog.get_by_text("X wins: three in a row")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(dialog.get_by_text("ply 4 of 5")).to_be_visible()


# A run that is being trained.


@pytest.fixture
def training(tmp_path: Path) -> Iterator[RunDirectory]:
    """A real training that goes on until it is stopped."""
    config = tiny("run.steps=100000000", "run.checkpoint_every=1000", "parallel.horizon=64")
    run = RunDirectory.create(tmp_path, "live", config)
    interruption = Interruption()
    thread = threading.Thread(target=lambda: Trainer(run, config, (), interruption).train(), daemon=True)
    thread.start()
    yield run
    interruption.request()
    thread.join(60)
    assert not thread.is_alive()


def test_live_values_change_and_buttons_act(training: RunDirectory, page: Page) -> None:
    with serving(training.path.parent) as dashboard:
        page.goto(f"{dashboard.address}/#token={TOKEN}")
        assert TOKEN not in page.url
        page.get_by_role("link", name="live").click()
        updates = page.locator(".tile", has_text="updates").locator("b")
        expect(updates).not_to_have_text("–")
        before = updates.inner_text()
        expect(updates).not_to_have_text(before)
        stop = page.get_by_role("button", name="Stop")
        stop.focus()
        before = updates.inner_text()
        expect(updates).not_to_have_text(before)
        expect(stop).to_be_focused()  # buttons stay while numbers change
        expect(page.get_by_text("Self-play, live")).to_be_visible()
        expect(page.locator("#live svg")).to_be_visible()
        speed = page.get_by_role("img", name=re.compile("Transitions a second: "))
        drawn = speed.get_attribute("aria-label")
        expect(speed).not_to_have_attribute("aria-label", drawn or "")

        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#top .state")).to_have_text("paused")
        page.get_by_role("button", name="Add a worker").click()
        expect(page.locator("#workers tbody tr")).to_have_count(3)
        page.get_by_role("button", name="remove worker 2").click()
        expect(page.locator("#workers tbody tr").nth(2)).to_contain_text("stopped")
        page.get_by_role("button", name="Checkpoint").click()
        expect(page.locator(".notice")).to_contain_text("is saved")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#top .state")).to_have_text("running")
        page.get_by_role("button", name="New games").click()
        expect(page.locator(".notice")).to_contain_text("all tables start new games")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("#top .state")).to_have_text("interrupted")
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        expect(page.get_by_text("Self-play, live")).to_be_hidden()
        expect(page.get_by_text("keisei train live")).to_be_visible()
        page.close()


def test_buttons_are_refused_without_the_token(served: Served, page: Page, watched: Any) -> None:
    page.goto(f"{served.address}/run/first")
    page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog", name="Token")
    expect(dialog).to_be_visible()
    watched.expected.append("401")
    dialog.get_by_label("Token").fill("a wrong token, surely")
    dialog.get_by_role("button", name="Use it").click()
    expect(page.locator(".notice.bad")).to_contain_text("this token is wrong")
    assert not (served.root / "first" / "control").exists()
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Use it").click()
    expect(page.get_by_role("button", name="May control")).to_have_count(0)
    expect(page.locator("#token")).to_have_text("May control")


# Playing.


def new_game(page: Page, address: str, game: str, against: str, **fields: str) -> None:
    page.goto(f"{address}/play?game={game}")
    before = status(page).get_attribute("data-game")
    page.locator("#opponent").select_option(against)
    for name, value in fields.items():
        page.locator(f"#{name}").fill(value)
    page.get_by_role("button", name="New game").click()
    expect(status(page)).not_to_have_attribute("data-game", before)


def status(page: Page) -> Any:
    return page.locator("#status")


def test_a_whole_game_of_connect_four_by_clicks(served: Served, page: Page) -> None:
    new_game(page, served.address, "connect-four", "person")
    for ply, column in enumerate([4, 1, 4, 1, 4, 1], start=1):
        place(page, f"c{column}").click()
        expect(page.locator(".moves button")).to_have_count(ply)
    expect(status(page)).to_have_text(re.compile("Amber to move"))
    page.get_by_role("button", name="Take back").click()
    expect(page.locator(".moves button")).to_have_count(5)
    place(page, "c1").click()
    expect(page.locator(".moves button")).to_have_count(6)
    place(page, "c4").click()
    expect(status(page)).to_have_text("Amber wins: line")


def _has_grown(page: Page, moves: int) -> bool:
    """Whether a move was played. The answer of the server is waited for where one was asked."""
    if page.evaluate("document.activeElement.classList.contains('can')"):
        page.wait_for_function("n => document.querySelectorAll('.moves button').length > n", arg=moves)
    return page.locator(".moves button").count() > moves


def test_a_whole_game_of_connect_four_by_keys(served: Served, page: Page) -> None:
    new_game(page, served.address, "connect-four", "random")
    expect(status(page)).to_contain_text("your move")
    place(page, "c1").focus()
    for _ in range(42):
        before = status(page).inner_text()
        if "your move" not in before:
            break
        moves = page.locator(".moves button").count()
        page.keyboard.press("Enter")
        if page.locator(".place.can").count() and not _has_grown(page, moves):
            page.keyboard.press("ArrowRight")  # this column is full
    expect(status(page)).to_have_text(re.compile("wins: line|full board"))


def test_shogi_with_a_promotion_and_a_drop_by_clicks(served: Served, page: Page, tmp_path: Path) -> None:
    new_game(page, served.address, "shogi", "person", start="4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    expect(page.locator("#sfen")).to_have_value("4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    place(page, "5c").click()
    expect(page.locator(".face .hint")).to_have_count(1)
    place(page, "5b").click()
    dialog = page.get_by_role("dialog", name="Which move?")
    dialog.get_by_role("button", name="Promote", exact=True).click()
    expect(page.get_by_role("button", name="1. 5c5b+")).to_be_visible()
    place(page, "5a").click()
    place(page, "5b").click()
    expect(page.get_by_role("button", name="2. 5a5b")).to_be_visible()
    place(page, "black-P").click()
    assert page.locator(".face .hint").count() > 50
    place(page, "4d").click()
    expect(page.get_by_role("button", name="3. P*4d")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as KIF").click()
    path = tmp_path / "game.kif"
    download.value.save_as(path)
    assert [move.usi() for move in kif.load(path).moves] == ["5c5b+", "5a5b", "P*4d"]
    page.get_by_role("button", name="Take back").click()
    expect(page.locator(".moves button")).to_have_count(2)


def test_shogi_with_a_promotion_and_a_drop_by_keys(served: Served, page: Page) -> None:
    new_game(page, served.address, "shogi", "person", start="4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    expect(page.locator("#sfen")).to_have_value("4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    place(page, "5e").focus()
    for key in ("ArrowUp", "ArrowUp", "Enter", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("dialog").get_by_role("button", name="Do not promote").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="1. 5c5b", exact=True)).to_be_visible()
    place(page, "5a").focus()
    for key in ("Enter", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="2. 5a5b")).to_be_visible()
    place(page, "1i").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.place") == "black-P"
    page.keyboard.press("Enter")
    for key in ("ArrowUp", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="3. P*9h")).to_be_visible()


def test_a_checkpoint_answers_and_shows_its_thoughts(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play?run=first")
    expect(page.locator("#opponent")).to_have_value("first@best")
    place(page, "s4").click()
    expect(page.locator(".moves button")).to_have_count(2)
    expect(page.locator(".valuebar")).to_be_visible()
    page.get_by_label("Show its thoughts").check()
    expect(page.get_by_text("Favourite moves")).to_be_visible()
    page.get_by_role("button", name="Take back").click()
    expect(page.locator(".moves button")).to_have_count(0)


def test_ludo_is_played_with_dice(served: Served, page: Page) -> None:
    new_game(page, served.address, "ludo", "heuristic")
    for _ in range(5):
        expect(status(page)).to_contain_text("your move")
        moves = page.locator(".moves button").count()
        page.locator(".face .place.can").first.click()
        dialog = page.get_by_role("dialog")
        if dialog.count():
            dialog.get_by_role("button").first.click()
        expect(page.locator(".moves button").nth(moves)).to_be_visible()
