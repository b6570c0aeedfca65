"""Order among runs in a real browser: tags, the filter, the archive, another name, and the trash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from runs_for_tests import make_run
from web_for_tests import TOKEN, Served, serving

from keisei.runs.directory import RunDirectory
from keisei.runs.labels import Labels, read_labels, write_labels

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    for name in ("first", "lr/seed0", "old"):
        make_run(tmp_path, name, updates=())
    write_labels(RunDirectory(tmp_path / "first"), Labels(("strong", "baseline"), HOSTILE))
    write_labels(RunDirectory(tmp_path / "lr/seed0"), Labels(("weak",)))
    write_labels(RunDirectory(tmp_path / "old"), Labels(("strong",), archived=True))
    with serving(tmp_path) as dashboard:
        yield dashboard


def test_the_list_is_filtered_by_tag_and_hides_archived_runs(served: Served, page: Page) -> None:
    page.goto(served.address)
    rows, words = page.locator("tbody tr:has(a.name)"), page.get_by_label("Filter runs")
    expect(rows).to_have_count(2)
    expect(page.get_by_text("#baseline")).to_be_visible()
    for text in ("#strong", "tag:strong", "#STR", "#strong first"):
        words.fill(text)
        expect(rows).to_have_text([re.compile("first")])
    words.fill("#strong #weak")
    expect(page.get_by_text("No run fits")).to_be_visible()
    words.fill("#strong")
    page.get_by_label("Archived").check()
    expect(rows).to_have_count(2)
    expect(page.get_by_text("archived", exact=True)).to_be_visible()
    words.fill("")
    expect(rows).to_have_count(3)
    page.get_by_label("Archived").uncheck()
    expect(rows).to_have_count(2)


def test_labels_are_written_on_the_page_of_a_run(served: Served, page: Page) -> None:
    run = RunDirectory(served.root / "first")
    page.goto(f"{served.address}/run/first#token={TOKEN}")
    note = page.get_by_label("Note", exact=True)
    expect(note).to_have_value(HOSTILE)
    page.get_by_label("Tags", exact=True).fill("#paper, strong")
    note.fill("look here")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert read_labels(run) == Labels(("paper", "strong"), "look here")
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Unarchive")).to_be_visible()
    assert read_labels(run) == Labels(("paper", "strong"), "look here", archived=True)
    expect(page).to_have_title("first – Keisei")


def test_what_is_refused_is_told(served: Served, page: Page, watched: object) -> None:
    watched.expected.append("409")  # type: ignore[attr-defined]
    page.goto(f"{served.address}/run/first#token={TOKEN}")
    page.get_by_label("Tags", exact=True).fill("a/b")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("'a/b' is no tag")
    with RunDirectory(served.root / "first").lock():
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Move to the trash").click()
        expect(page.get_by_role("alert")).to_contain_text("is being trained")
    assert (served.root / "first").is_dir()


def test_a_run_is_renamed_and_deleted(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/lr%2Fseed0#token={TOKEN}")
    page.get_by_role("button", name="Rename").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New name").fill("best/of-all")
    dialog.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="best/of-all")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Cancel").click()
    assert (served.root / "best/of-all").is_dir()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_label("Filter runs")).to_be_visible()
    expect(page.locator("tbody tr:has(a.name)")).to_have_text([re.compile("first")])
    assert not (served.root / "best").exists()
    assert len(list((served.root / ".trash").iterdir())) == 1


def test_without_the_token_it_is_asked_for(served: Served, page: Page) -> None:
    page.goto(f"{served.address}/run/first")
    page.get_by_label("Note", exact=True).fill("mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="The token of this server")).to_be_visible()
    assert read_labels(RunDirectory(served.root / "first")).note == HOSTILE
