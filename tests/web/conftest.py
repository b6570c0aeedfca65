"""A real browser for the tests of pages. Without one they are skipped, unless ``KEISEI_NEEDS_BROWSER`` is set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        message = f"no browser was found ({', '.join(NAMES)}); install chromium to test the pages"
        if os.environ.get("KEISEI_NEEDS_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    expect.set_options(timeout=90_000)  # machines differ in speed; a thinker may take a minute to start
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


class Watched:
    """Pages of one context, and all that they complain about."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self.expected: list[str] = []
        """Parts of complaints that a test provokes."""
        self._context = context

    def page(self) -> Page:
        page = self._context.new_page()
        page.on("console", self._listen)
        page.on("pageerror", self._blame)
        return page

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._keep(message.text)

    def _blame(self, error: Error) -> None:
        self._keep(str(error))

    def _keep(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.complaints.append(text)


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """Fails a test whose pages write errors to the console, breaches of the content security policy included."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(90_000)
    found = Watched(context)
    yield found
    context.close()
    assert found.complaints == []


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page()
