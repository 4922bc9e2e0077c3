"""A browser for the session; for each test a store with a week behind it, and a watched page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright
from playwright.sync_api import expect as expect_soon

from tests.integration.local_product import NINE, Clock, Product, product
from tests.lab.chromium import chromium
from tests.web.seeding import NOW, seed
from tests.web.watching import Watched

REBOUND: Final = "evil.example"
"""A name of the internet that somebody has pointed at this machine."""

WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}

expect_soon.set_options(timeout=8_000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield one Chromium, which goes with the last page.

    While it is there, the main thread has a running loop, in which no other test's coroutine could
    run.
    """
    program = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program,
            args=[
                "--no-sandbox",  # whoever runs as root has none; the pages are our own
                "--disable-gpu",
                "--font-render-hinting=none",
                f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
            ],
        )
        yield launched
        launched.close()


@pytest.fixture
def flows_of_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deployment has the flows that the pages are tested with."""
    monkeypatch.setenv("DUETICK_FLOWS", "tests.web.mailing")


@pytest.fixture(scope="session")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a week of a store, lived through once."""
    place = tmp_path_factory.mktemp("week") / "week.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUETICK_FLOWS", "tests.web.mailing")
        with product(f"sqlite:///{place}", Clock(NINE), patch) as running:
            seed(running)
    return place


@pytest.fixture
def running(
    week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flows_of_mails: None
) -> Iterator[Product]:
    """The product, with that week behind it."""
    place = tmp_path / "week.db"
    for part in week.parent.glob("week.db*"):
        (tmp_path / part.name).write_bytes(part.read_bytes())
    with product(f"sqlite:///{place}", Clock(NOW + 60_000), monkeypatch) as made:
        yield made


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a profile of its own."""
    made = browser.new_context(viewport=WIDE, locale="en-GB", timezone_id="Europe/Berlin")
    yield made
    made.close()


@pytest.fixture
def watched(context: BrowserContext, running: Product) -> Iterator[Watched]:
    """Yield a page on the product's clock. Any flaw of the page fails the test."""
    page = context.new_page()
    page.clock.install(time=running.clock.now / 1_000)
    seen = Watched(page)
    yield seen
    assert seen.flaws() == []


@pytest.fixture
def page(watched: Watched) -> Page:
    """The watched page itself."""
    return watched.page


@pytest.fixture
def console(page: Page, running: Product) -> Page:
    """The console, opened by its link."""
    page.goto(running.stack.console)
    expect_soon(page).to_have_title(re.compile("Overview"))
    expect_soon(page.get_by_role("heading", name="How much")).to_be_visible()
    return page
