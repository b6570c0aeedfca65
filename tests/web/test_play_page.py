"""The page Play in a real browser: every run can be played or watched, and a game stays in its address."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from runs_for_tests import make_run
from web_for_tests import Served, make_history, serving

import keisei
from keisei.training.chosen_settings import chosen_settings

pytestmark = pytest.mark.browser

OWN = Path(__file__).with_name("own_games_for_tests.py")
GAMES: dict[str, dict[str, Any]] = {
    "own": {"game": f"{OWN}:Claim"},
    "words": {"game": f"{OWN}:Race"},
    "blind": {"game": f"{OWN}:Blind"},
    "spiel": {"game": "openspiel:tic_tac_toe"},
    "poker": {"game": "openspiel:kuhn_poker"},
    "zoo": {"game": "pettingzoo:connect_four_v3"},
    "world": {"game": "treasurehunt", "options": {"height": 9, "width": 9, "agents": 3, "max_turns": 12}},
    "alone": {"game": "treasurehunt", "options": {"height": 7, "width": 7, "agents": 1, "max_turns": 12}},
    "dilemma": {"game": "prisoners-dilemma"},
    "dice": {"game": "ludo", "options": {"players": 2}},
    "chess": {"game": "shogi"},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("runs")
    for name, env in GAMES.items():
        make_run(root, name, best=10, **env)
    agents = chosen_settings("stag-hunt") | {"evaluation": {"opponents": []}}
    keisei.train(agents, name="agents", steps=1, root=root, overrides=["parallel.backend=inline"])
    make_history(root, "experiments/as-they-are-named-by-people/seed0")  # a wide menu
    make_history(root, "newest")
    with serving(root) as dashboard:
        yield dashboard


def status(page: Page) -> Locator:
    return page.locator("#status")


def place(page: Page, name: str) -> Locator:
    return page.locator(f'.game [data-place="{name}"]')


def moves(page: Page) -> Locator:
    return page.locator(".moves button")


def open_run(page: Page, served: Served, run: str) -> None:
    page.goto(f"{served.address}/play?run={run}")
    expect(status(page)).to_be_visible()
    expect(page.locator("#game")).to_have_value(f"run {run}")
    expect(page.locator("#opponent")).to_have_value(f"{run}@best")


# What is played.


def play_one(page: Page) -> None:
    """Plays any move: on the board as far as places go, or from the list."""
    before = moves(page).count()
    for _ in range(3):  # in Shogi a piece and a square, and perhaps whether it promotes
        choice = page.locator("dialog button, .game .choices button, .game .place.can:not(.from)").first
        choice = page.locator(".game .hint").first if page.locator(".game .hint").count() else choice
        choice.click(force=True)  # a hint lets clicks through to its place
        page.wait_for_function(
            "n => document.querySelectorAll('.moves button').length > n || document.querySelector('.hint, dialog')",
            arg=before,
        )
        if moves(page).count() > before:
            return
    raise AssertionError("no move was played")


@pytest.mark.parametrize("run", GAMES)
def test_every_run_is_played_as_it_was_trained(served: Served, page: Page, run: str) -> None:
    open_run(page, served, run)
    expect(status(page)).to_contain_text("your move")
    play_one(page)
    expect(page.locator(".problem")).to_have_count(0)


def test_play_opens_the_newest_run(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play")
    expect(page.locator("#game")).to_have_value("run newest")
    expect(page.locator("#opponent")).to_have_value("newest@best")
    expect(place(page, "s4")).to_be_visible()


def test_all_kept_checkpoints_are_opponents(served: Served, page: Page) -> None:
    open_run(page, served, "newest")
    values = [
        one.get_attribute("value") for one in page.locator("#opponent optgroup").first.locator("option").all()
    ]
    assert values == [
        f"newest@{which}" for which in ("latest", "best", "update-000000020", "update-000000010")
    ]
    page.locator("#opponent").select_option("newest@update-000000020")
    page.get_by_role("button", name="New game").click()
    expect(page).to_have_url(re.compile("against=newest%40update-000000020"))
    play_one(page)


def test_an_unknown_run_or_game_is_told(served: Served, page: Page, watched: Any) -> None:
    watched.expected.append("404")
    page.goto(f"{served.address}/play?run=nope")
    expect(page.get_by_role("alert")).to_have_text("there is no run 'nope' here")
    expect(page.locator(".face svg")).to_have_count(0)
    page.goto(f"{served.address}/play?game=nope")
    expect(page.get_by_role("alert")).to_contain_text("No game is named “nope”")
    page.locator("#game").select_option("game connect-four")
    expect(place(page, "c1")).to_be_visible()


def test_a_run_that_is_not_trusted_brings_its_reason_and_no_other_game(
    page: Page, watched: Any, tmp_path: Path
) -> None:
    make_run(tmp_path / "runs", "stranger", game=f"{OWN}:Claim")
    trust_folder = Path(os.environ["XDG_STATE_HOME"])
    for path in [one for one in trust_folder.rglob("*") if one.is_file() and "stranger" in one.read_text()]:
        path.unlink()
    watched.expected.append("40")
    with serving(tmp_path / "runs") as dashboard:
        page.goto(f"{dashboard.address}/play?run=stranger")
        expect(page.get_by_role("alert")).to_contain_text("--trust")
        expect(page.locator(".face svg")).to_have_count(0)
        page.close()


def test_a_run_with_other_options_judges_no_plain_game(served: Served, page: Page) -> None:
    """The only run of Ludo here has two players, and is not asked about four."""
    page.goto(f"{served.address}/play?game=ludo")
    expect(status(page)).to_contain_text("your move")
    expect(page.locator("#value")).to_have_count(0)
    page.goto(f"{served.address}/play?game=tictactoe")
    expect(page.locator("#value")).to_be_visible()


# Games without a face.


def test_a_board_of_ones_own_is_a_grid_of_symbols(served: Served, page: Page) -> None:
    open_run(page, served, "own")
    expect(page.locator(".face .cell")).to_have_count(9)
    expect(page.locator(".caption")).to_have_text("9 squares are free")
    place(page, "s4").click()
    expect(page.locator(".caption")).to_have_text("7 squares are free")
    expect(page.locator(".face .mark")).to_have_count(2)
    moves(page).first.click()
    expect(page.locator(".caption")).to_have_text("8 squares are free")


def test_a_game_of_words_has_a_list_of_moves(served: Served, page: Page) -> None:
    open_run(page, served, "words")
    expect(page.locator(".caption")).to_have_text("7 stones are left")
    expect(page.locator(".choices button")).to_have_text(["take 1", "take 2", "take 3"])
    page.get_by_role("button", name="take 2", exact=True).click()
    expect(moves(page).first).to_have_text("1. take 2")
    for _ in range(4):
        if "wins" in status(page).inner_text():
            break
        play_one(page)
    expect(status(page)).to_have_text(re.compile(r"Seat [12] wins: finished"))
    expect(page.locator(".caption")).to_have_text("0 stones are left")


def test_who_draws_nothing_is_told_how(served: Served, page: Page) -> None:
    open_run(page, served, "blind")
    expect(page.locator(".caption")).to_have_text("blind: define __str__ in Blind to show the position")


# Worlds.


def test_one_agent_of_a_world_is_steered_by_keys_and_by_buttons(served: Served, page: Page) -> None:
    open_run(page, served, "world")
    expect(page.locator(".face .you")).to_have_count(1)
    expect(page.locator(".letters")).to_contain_text("gem")
    page.keyboard.press("ArrowDown")
    expect(moves(page)).to_have_text([re.compile(r"^1\. down / \w+ / \w+$")])
    page.get_by_role("button", name="left", exact=True).click()
    expect(moves(page)).to_have_count(2)
    page.get_by_role("button", name="Take back").click()
    expect(moves(page)).to_have_count(1)
    page.locator("#side").select_option("2")
    page.get_by_role("button", name="New game").click()
    expect(status(page)).to_contain_text("Turn 1 – your move")
    page.keyboard.press("ArrowUp")
    expect(moves(page)).to_have_text([re.compile(r"^1\. \w+ / \w+ / up$")])


def test_each_agent_judges_what_its_own_seat_sees(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play?run=agents")
    for agent in (1, 2):
        expect(status(page)).to_contain_text("Turn 1 – your move")
        expect(page.locator("#value")).to_contain_text(f"Expected return of Agent {agent} from here on")
        page.locator("#side").select_option("1")
        page.get_by_role("button", name="New game").click()


@pytest.mark.parametrize("run", ["world", "alone", "dilemma", "newest"])
def test_a_game_is_watched_to_its_end(served: Served, page: Page, run: str) -> None:
    open_run(page, served, run)
    page.locator("#side").select_option("")
    page.get_by_role("button", name="New game").click()
    expect(page.locator(".moves")).to_have_count(0)
    page.locator("#step").click()
    expect(moves(page)).to_have_count(1)
    page.get_by_role("button", name="Watch").click()
    expect(moves(page).nth(3)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#step")).to_be_enabled()
    if run != "dilemma":  # which takes 100 rounds
        page.get_by_role("button", name="Watch").click()
        expect(status(page)).to_contain_text(re.compile("wins|over|draw"))
        expect(page.locator("#watch")).to_have_count(0)


# The address.


def test_a_reload_back_and_a_copied_link_keep_the_game(served: Served, page: Page, watched: Any) -> None:
    open_run(page, served, "own")
    place(page, "s4").click()
    expect(moves(page)).to_have_count(2)
    shown, address = moves(page).all_inner_texts(), page.url
    page.reload()
    expect(moves(page)).to_have_text(shown)
    expect(status(page)).to_contain_text("your move")
    page.get_by_role("link", name="Runs").click()
    page.go_back()
    expect(moves(page)).to_have_text(shown)
    page.get_by_role("button", name="New game").click()
    expect(moves(page)).to_have_count(0)
    page.go_back()
    expect(moves(page)).to_have_text(shown)
    moves(page).first.click()
    expect(page).to_have_url(re.compile("ply=1$"))
    page.reload()
    expect(page.locator(".moves [aria-current]")).to_have_text(shown[0])
    other = watched.page()
    other.goto(address)
    expect(moves(other)).to_have_text(shown)
    other.get_by_role("button", name="Take back").click()
    expect(moves(other)).to_have_count(0)


def test_a_watched_game_does_not_go_on_by_a_reload(served: Served, page: Page) -> None:
    open_run(page, served, "world")
    page.locator("#side").select_option("")
    page.get_by_role("button", name="New game").click()
    for count in (1, 2):
        page.locator("#step").click()
        expect(moves(page)).to_have_count(count)
    shown = moves(page).all_inner_texts()
    page.reload()
    expect(moves(page)).to_have_text(shown)
    page.get_by_role("button", name="Take back").click()
    expect(moves(page)).to_have_text(shown[:1])


def test_any_moves_fit_into_the_address(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play")
    lists = [[], [0], [0, 0, 0], [1], [5, 0, 3], [4] * 1000, [2**20, 1, 0], list(range(300)) * 30]
    packed = page.evaluate(
        """async (lists) => {
          const { packActions, unpackActions } = await import("/static/address.js");
          return lists.map((one) => [packActions(one), unpackActions(packActions(one))]);
        }""",
        lists,
    )
    assert [found for _, found in packed] == lists
    assert len(packed[5][0]) <= 502, "1000 turns of an agent with five actions"
    damaged = page.evaluate('import("/static/address.js").then((all) => all.unpackActions("?!"))')
    assert damaged == []


def test_a_damaged_address_is_told(served: Served, page: Page, watched: Any) -> None:
    watched.expected.append("400")
    page.goto(f"{served.address}/play?run=newest#you=0&against=random&seed=1&moves=K______")
    expect(page.get_by_role("alert")).to_contain_text("an action is a whole number in 0 … 8")
    page.get_by_role("button", name="New game").click()
    expect(status(page)).to_contain_text("your move")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_new_game_need_not_wait_for_an_answer(served: Served, page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/play", lambda route: held.append(route) if not held else route.continue_())
    page.goto(f"{served.address}/play?run=own")
    page.locator("#side").select_option("1")
    page.get_by_role("button", name="New game").click()
    expect(moves(page)).to_have_count(1)  # of the player that begins
    address = page.url
    held[0].continue_()
    with page.expect_response("**/api/play"):
        page.get_by_role("button", name="Take back").click()
    expect(page).to_have_url(address)


# Positions, promotions and values.


def test_a_wrong_position_keeps_the_game_and_is_told_once(served: Served, page: Page, watched: Any) -> None:
    watched.expected.append("400")
    open_run(page, served, "chess")
    play_one(page)
    shown, address = moves(page).all_inner_texts(), page.url
    page.locator("#start").fill("nonsense")
    page.get_by_role("button", name="New game").click()
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("nonsense")
    assert page.get_by_text("nonsense").count() == 1
    expect(moves(page)).to_have_text(shown)
    assert page.url == address
    play_one(page)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_to_promote_is_offered_first(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/play?game=shogi")
    page.locator("#opponent").select_option("person")
    page.locator("#start").fill("4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    page.get_by_role("button", name="New game").click()
    expect(page.locator("#sfen")).to_have_value("4k4/9/4P4/9/9/9/9/9/4K4 b P 1")
    place(page, "5c").click()
    place(page, "5b").click()
    offered = page.get_by_role("dialog").get_by_role("button")
    expect(offered).to_have_text(["Promote", "Do not promote", "Cancel"])
    expect(offered.first).to_be_focused()


def test_values_have_a_scale(served: Served, page: Page) -> None:
    open_run(page, served, "chess")
    expect(page.locator("#value")).to_have_text(re.compile(r"^Black wins \d+ %$"))
    before = page.locator("#value").inner_text()
    page.get_by_role("button", name="Turn the board").click()
    expect(page.locator("#value")).to_have_text(re.compile(r"^White wins \d+ %$"))
    shares = [int(text.split()[2]) for text in (before, page.locator("#value").inner_text())]
    assert 99 <= sum(shares) <= 101
    open_run(page, served, "world")
    expect(page.locator("#value")).to_have_text(
        re.compile(r"^Expected return of Agent 1 from here on: -?[\d.]+$")
    )
    expect(page.locator(".valuebar")).to_be_hidden()


@pytest.mark.parametrize("run", ["own", "words", "world", "dice", "chess"])
def test_games_fit_a_small_window(served: Served, page: Page, run: str) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    open_run(page, served, run)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
