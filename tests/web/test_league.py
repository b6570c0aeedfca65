"""The league on the dashboard: the members that ``keisei league`` names, with the same numbers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from training_for_tests import After, raising, train
from typer.testing import CliRunner
from web_for_tests import Served, make_history, serving

from keisei.cli.main import app
from keisei.runs.database import RunDatabase
from keisei.runs.rows import LeagueMemberRow, LeagueResultRow
from keisei.training.callbacks import StopTraining

RANDOM = LeagueMemberRow(
    100, 9, 1.0, "random", "player", 0, True, 1290, 0, 10, 200, 0.9, 0.85, 0.94, 0.0, 0.0, 0.0, False
)
FIRST = replace(
    RANDOM, number=101, name="update-000000000", kind="snapshot", wins=20, losses=80, recent_games=100, score=0.2,
    low=0.13, high=0.29, rating=320.0, rating_low=250.0, rating_high=390.0, forgotten=True,
)  # fmt: skip
LEAVES = replace(
    FIRST, number=102, name="update-000000003", in_pool=False, forgotten=False, score=0.6, low=0.5, high=0.7,
    rating=-80.0, rating_low=-110.0, rating_high=-50.0,
)  # fmt: skip
UNMET = replace(
    FIRST, number=104, name="update-000000009", wins=0, losses=0, recent_games=0, score=None, low=None, high=None,
    rating=None, rating_low=None, rating_high=None, forgotten=False,
)  # fmt: skip
GONE = replace(FIRST, number=103, name="update-000000004", update=7)
"""It was in the pool when it was last written, and is not there any more."""
RESULTS = [
    LeagueResultRow("update-000000000", "update-000000004", 3, 1.0, 5, 0, 5, 0.5, 0.3, 0.7, 103),
    LeagueResultRow("update-000000003", "random", 9, 1.0, 90, 0, 10, 0.9, 0.83, 0.95, 100),
    LeagueResultRow("update-000000003", "update-000000000", 9, 1.0, 20, 0, 80, 0.2, 0.13, 0.29, 101),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    with RunDatabase(make_history(root, "run").database) as database:
        database.add_league([RANDOM, FIRST, LEAVES, GONE, UNMET], RESULTS)
    make_history(root, "alone")
    with serving(root) as dashboard:
        yield dashboard


def printed(root: Path) -> Any:
    """What ``keisei league`` has of the run."""
    return json.loads(CliRunner().invoke(app, ["league", "run", "--root", str(root), "--json"]).stdout)


# What the server tells.


def test_the_server_tells_what_the_command_prints(served: Served) -> None:
    told, printed_too = served.get("/api/runs/run").json["league"], printed(served.root)
    assert [row["number"] for row in told["members"]] == [100, 101, 102, 104]
    assert told["members"] == printed_too["members"]
    assert (told["size"], told["left"], told["games"]) == (3, 1, 1600)
    assert (told["size"], told["forgotten"]) == (printed_too["size"], printed_too["forgotten"])
    assert (told["worst"], printed_too["worst"]) == (101, FIRST.name)
    assert [(row["learner"], row["member"]) for row in told["matrix"]] == [
        ("update-000000003", "random"),
        ("update-000000003", "update-000000000"),
    ]


def test_a_run_without_a_league_has_none(served: Served) -> None:
    assert served.get("/api/runs/alone").json["league"] is None


def test_members_whose_weights_were_deleted_are_not_shown(tmp_path: Path) -> None:
    settings = ("league={window: 2, save_steps: 256, swap_steps: 64}", "league.members=[random]")
    stop = After(raising(StopTraining("for now")), 4)
    run = train(tmp_path, *settings, "run.steps=2048", callbacks=[stop]).run
    shutil.rmtree(run.league)
    train(tmp_path, *settings, "run.steps=2048")
    with RunDatabase(run.database, read_only=True) as database:
        rows = database.league_members()
    newest = max(row.update for row in rows)
    gone = {row.name for row in rows if row.in_pool and row.update < newest}
    assert gone  # their rows still say that they may be drawn
    with serving(tmp_path) as dashboard:
        shown = dashboard.get("/api/runs/run").json["league"]["members"]
    assert gone.isdisjoint(row["name"] for row in shown)
    assert shown == printed(tmp_path)["members"]


# What the page shows.


def card(page: Page, served: Served) -> Locator:
    page.goto(f"{served.address}/run/run")
    found = page.get_by_role("region", name="League")
    heading = page.get_by_role("heading", name="League")
    expect(heading).to_be_visible()
    if not found.is_visible():  # sections are folded on a phone
        heading.click()
    expect(found).to_be_visible()
    return found


@pytest.mark.browser
def test_the_card_has_size_worst_and_forgotten(served: Served, page: Page) -> None:
    facts = card(page, served).locator(".facts > div")
    expect(facts).to_have_text(
        [
            "Members3 may be drawn, 1 left",
            "Games1,600",
            "Worstupdate-000000000 with 20.0 %",
            "Forgotten1: update-000000000",
        ]
    )


@pytest.mark.browser
def test_the_card_has_a_table_of_members(served: Served, page: Page) -> None:
    table = card(page, served).get_by_role("table", name="Members of the league")
    expect(table.get_by_role("columnheader")).to_have_text(["No", "Member", "Games", "Score", "Elo"])
    expect(table.get_by_role("rowheader")).to_have_count(4)
    expect(table.locator("tbody tr")).to_have_text(
        [
            "100random player1,300 last 20090 % 85 … 94+0 +0 … +0",
            "101update-000000000 worst, forgotten100 20 % 13 … 29+320 +250 … +390",
            "102update-000000003 leaves100 60 % 50 … 70−80 −110 … −50",
            "104update-0000000090 – –",
        ]
    )


@pytest.mark.browser
def test_the_matrix_has_scores_intervals_and_games(served: Served, page: Page) -> None:
    matrix = card(page, served).get_by_role("region", name="Win-rate matrix")
    expect(matrix.get_by_role("columnheader")).to_have_text(["Learner", "100", "101"])
    expect(matrix.get_by_role("columnheader", name="101")).to_have_attribute("title", "update-000000000")
    expect(matrix.locator("tbody tr")).to_have_text(["update-00000000390±6 10020±8 100"])


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_members_fit_a_phone(browser: Browser, served: Served, scheme: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    found = card(page, served)
    table = found.get_by_role("table", name="Members of the league")
    room = table.evaluate("table => table.parentElement.clientWidth - table.offsetWidth")
    assert room >= 0, "the table of members has to be scrolled"
    for text in ("update-000000000 with", "13 … 29", "+250 … +390"):
        expect(found.get_by_text(text)).to_be_visible()
    context.close()


@pytest.mark.browser
def test_an_open_page_follows_the_league(tmp_path: Path, page: Page) -> None:
    run = make_history(tmp_path, "run")
    with RunDatabase(run.database) as database:
        database.add_league([RANDOM], [])
        with serving(tmp_path) as dashboard:
            found = card(page, dashboard)
            rows = found.get_by_role("table", name="Members of the league").locator("tbody tr")
            expect(rows).to_contain_text(["1,300 last 200"])
            page.evaluate("document.querySelector('#league > .body').dataset.kept = 'yes'")
            update = RANDOM.update + 100
            joined = [replace(RANDOM, update=update, wins=2000), replace(UNMET, update=update)]
            database.add_league(joined, [])
            database.add_metrics(update, 100 * update, {"train/loss": 0.25})
            expect(rows).to_have_count(2)
            expect(rows.first).to_contain_text("2,010 last 200")
            expect(found).to_have_attribute("data-kept", "yes")  # nothing else was loaded again


@pytest.mark.browser
def test_a_run_without_a_league_shows_no_card(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/alone")
    expect(page.get_by_text("Settings").first).to_be_visible()
    expect(page.locator("#league")).to_have_count(0)
