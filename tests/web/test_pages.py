"""Each page, on real data of every state: readable, accessible, of any width, light and dark."""

from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.integration.local_product import Product
from tests.web.seeding import HOSTILE_KEY, HOSTILE_USER
from tests.web.watching import inaccessible, overflow

HOSTILE: Final = f"{quote(HOSTILE_USER, safe='')}/{quote(HOSTILE_KEY, safe='')}"
SHOWN: Final = "button, .error-text, a, .tag"
PAGES: Final = {
    "": "What is failing, and for whom",
    "schedules": "New schedule",
    "schedules?user=ann": "Erase",
    "schedule/ann/digest?at=2026-12-01T08:00:00Z": "What helps:",
    "schedule/ann/invoice": "The bank did not answer.",
    f"schedule/{HOSTILE}?span=month": "it failed for good",
    "schedule//mailing%2Fnightly": "static mailing/nightly",
    "schedule/cat/left?span=month": "deleted",
    "occurrences": "it failed for good",
    "occurrences?state=retrying": "The bank did not answer.",
    "occurrences?user=bob&state=any": "Retry",
    "unreadable": "'x y z' has 3 fields",
    "jobs": "occ_",
    "jobs?user=ann&state=all": "ran",
    "orders": "a noisy neighbour",
    "week": "fires ahead",
    "ticks": "claimed",
    "record": "the partner is down",
    "nowhere": "There is no page",
}


def test_each_page_shows_what_there_is_and_axe_finds_nothing_in_light_and_dark(
    console: Page, running: Product, subtests: pytest.Subtests
) -> None:
    for place in PAGES:
        with subtests.test(place):
            shows(console, running, place)
            for scheme in ("light", "dark"):
                console.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                assert inaccessible(console) == [], scheme


def test_each_page_fits_a_phone_and_a_wide_screen(
    console: Page, running: Product, subtests: pytest.Subtests
) -> None:
    for place in PAGES:
        with subtests.test(place):
            shows(console, running, place)
            for width in (360, 1_920):
                console.set_viewport_size({"width": width, "height": 740})
                assert overflow(console) <= 0, width


def test_on_a_phone_a_row_shows_its_error_and_its_buttons_without_a_scroll(
    console: Page, running: Product, subtests: pytest.Subtests
) -> None:
    console.set_viewport_size({"width": 360, "height": 740})
    for place, table in (
        ("occurrences?user=bob&key=sync", "Occurrences"),
        ("schedule/bob/sync", "History"),
        ("jobs?user=ann&state=all", "Jobs"),
        ("unreadable", "Rows that cannot be read"),
        ("orders", "Limits"),
    ):
        with subtests.test(place):
            console.goto(f"{running.stack.server.url}/console#/{place}")
            row = console.get_by_role("table", name=table).get_by_role("row").nth(1)
            expect(row).to_be_visible()
            expect(row.locator(SHOWN).first).to_be_visible()
            box = row.bounding_box()
            last = row.get_by_role("cell").and_(row.locator(":visible")).last.bounding_box()
            assert box
            assert last
            assert box["x"] + box["width"] <= 360
            for inside in filter(None, (one.bounding_box() for one in row.locator(SHOWN).all())):
                assert inside["x"] + inside["width"] <= box["x"] + box["width"]
            assert box["y"] + box["height"] - last["y"] - last["height"] < 12, "no empty lines"


def shows(page: Page, running: Product, place: str) -> None:
    """Go there, and wait until its text is there."""
    page.goto(f"{running.stack.server.url}/console#/{place}")
    expect(page.locator("main")).to_contain_text(PAGES[place])
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
