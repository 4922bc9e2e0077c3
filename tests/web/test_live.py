"""The console is live without a reload, and never gets in the way of who is at work there."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.integration.local_product import Product
from tests.web.desk import Desk
from tests.web.seeding import order

BUSY = '{"error": "store_unavailable", "message": "The store does not answer; try again."}'


@pytest.fixture
def desk(console: Page, running: Product) -> Desk:
    return Desk(console, running)


def test_a_change_of_others_appears_without_a_reload(desk: Desk) -> None:
    desk.go("schedules?user=ann", "digest")
    desk.page.evaluate("window.loadedOnce = true")
    desk.running.operator("ann").put("fresh", order("0 9 * * *"))
    desk.page.clock.run_for(11_000)
    expect(desk.main).to_contain_text("fresh")
    assert desk.page.evaluate("window.loadedOnce") is True


def test_a_read_takes_neither_the_focus_nor_what_is_typed(desk: Desk) -> None:
    desk.go("schedules", "digest")
    field = desk.main.get_by_label("Text")
    field.fill("half a wo")
    desk.running.operator("ann").put("fresh", order("0 9 * * *"))
    desk.page.clock.run_for(11_000)
    expect(desk.main).to_contain_text("fresh")
    expect(field).to_have_value("half a wo")
    expect(field).to_be_focused()


def test_live_reads_can_be_stopped_and_begin_again(desk: Desk) -> None:
    desk.go("schedules?user=ann", "digest")
    live = desk.page.get_by_role("button", name=re.compile("^Live reads"))
    live.click()
    expect(live).to_contain_text("stopped")
    desk.running.operator("ann").put("fresh", order("0 9 * * *"))
    desk.page.clock.run_for(30_000)
    expect(desk.main).not_to_contain_text("fresh")
    live.click()
    expect(desk.main).to_contain_text("fresh")


def test_nothing_is_asked_while_nobody_looks(desk: Desk) -> None:
    desk.go("ticks", "claimed")
    asked: list[str] = []
    desk.page.on("request", lambda request: asked.append(request.url))
    hide = "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true})"
    desk.page.evaluate(f"window.away = true; {hide}")
    desk.page.clock.run_for(60_000)
    assert asked == []
    desk.page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(desk.main).to_contain_text("claimed")
    desk.page.wait_for_timeout(0)
    assert asked


def test_an_answer_that_fails_is_told_and_the_last_one_stays(desk: Desk) -> None:
    desk.go("schedules?user=ann", "digest")

    def fail(route: Route) -> None:
        route.fulfill(status=409, content_type="application/json", body=BUSY)

    desk.page.route("**/console/api/**", fail)
    desk.page.clock.run_for(11_000)
    expect(desk.main.get_by_role("alert")).to_contain_text("The store does not answer")
    expect(desk.main).to_contain_text("digest")
    expect(desk.page.get_by_role("button", name=re.compile("no answer since"))).to_be_visible()
    desk.page.unroute("**/console/api/**")
    desk.page.clock.run_for(11_000)
    expect(desk.main.get_by_role("alert")).to_be_hidden()


def test_a_token_of_an_earlier_start_closes_the_console_and_says_how_to_open_it(
    desk: Desk,
) -> None:
    desk.page.evaluate("localStorage.setItem('duetick-console', 'of-yesterday')")
    desk.page.reload()
    expect(desk.page.get_by_role("heading", level=1)).to_have_text("The console is closed")
    expect(desk.page.get_by_role("alert")).to_contain_text("duetick console")


def test_an_address_can_be_opened_in_another_tab_and_the_code_is_in_none(
    desk: Desk, running: Product
) -> None:
    assert "open=" not in desk.page.url
    desk.go("occurrences?state=dead&flow=mailing", "it failed for good")
    other = desk.page.context.new_page()
    other.clock.install(time=running.clock.now / 1_000)
    other.goto(desk.page.url)
    expect(other.locator("main")).to_contain_text("it failed for good")
    expect(other.get_by_label("Flow")).to_have_value("mailing")


def test_a_link_that_was_opened_before_says_so(page: Page, running: Product) -> None:
    link = running.stack.console
    page.goto(link)
    expect(page.get_by_role("heading", name="How much")).to_be_visible()
    page.evaluate("localStorage.clear()")
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("This link was opened before")


def test_what_somebody_looks_for_is_found(desk: Desk) -> None:
    find = desk.page.get_by_label("Find a user, a schedule or an id")
    dead = next(iter(desk.running.store.ledger.find("bob", "sync")))
    for text, shows in (
        ("ann", "digest"),
        ("ann/digest", "holidays"),
        (dead.id, dead.id),
        ("nobody-at-all", "No schedule"),
    ):
        find.fill(text)
        find.press("Enter")
        expect(desk.main).to_contain_text(shows)


def test_times_are_shown_in_the_readers_zone_if_asked(desk: Desk) -> None:
    desk.go("occurrences?user=ann&state=dead&key=report", "2026-11-30 07:00:00")
    desk.page.get_by_label("Times in").select_option("Europe/Berlin")
    expect(desk.main).to_contain_text("2026-11-30 08:00:00")


def test_a_time_that_is_half_filled_in_is_no_wider_filter(desk: Desk) -> None:
    desk.go("occurrences?state=dead", "it failed for good")
    field = desk.main.get_by_label("From (UTC)")
    field.press_sequentially("12")
    desk.main.get_by_label("Reason").select_option("failed")
    assert field.evaluate("one => one.validity.badInput")
    assert "reason=" not in desk.page.url
    field.fill("2026-12-02T09:30:00")
    desk.main.get_by_label("Reason").select_option("poisoned")
    expect(desk.main).to_contain_text("broken")
    assert "from=2026-12-02T09%3A30%3A00Z" in desk.page.url


def test_pages_of_a_list_follow_one_another(desk: Desk) -> None:
    for number in range(60):
        desk.running.operator("zoe").put(f"k{number:02}", order("0 9 * * *"))
    desk.go("schedules?user=zoe", "k00")
    expect(desk.main.locator("tbody tr")).to_have_count(50)
    desk.press("Next page")
    expect(desk.main.locator("tbody tr")).to_have_count(10)
    expect(desk.main).to_contain_text("k59")
    desk.press("First page")
    expect(desk.main).to_contain_text("k00")
    desk.page.go_back()
    expect(desk.main).to_contain_text("k59")


UNREAD = ("orders", "ticks", "schedule/ann/invoice", "jobs", "record", "schedules", "occurrences")
NOTHING = re.compile(
    "No pause|Nothing is limited|No flow declares|None has reported|Nobody has|It has not fired|"
    "None is known|Nothing, among|No job|No operation|No schedule|None, as far"
)


@pytest.mark.parametrize("place", UNREAD)
def test_before_the_first_answer_no_page_says_that_there_is_nothing(desk: Desk, place: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    desk.page.route("**/console/api/**", hold)
    desk.page.goto(f"{desk.running.stack.server.url}/console#/{place}")
    expect(desk.main.get_by_role("status")).to_have_text("Reading …")
    expect(desk.main).to_have_attribute("aria-busy", "true")
    expect(desk.main).not_to_contain_text(NOTHING)
    for one in held:
        one.fulfill(status=409, content_type="application/json", body=BUSY)
    expect(desk.main.get_by_role("alert")).to_contain_text("The store does not answer")
    expect(desk.main).not_to_contain_text(NOTHING)
    desk.page.unroute("**/console/api/**")
    desk.page.clock.run_for(11_000)
    expect(desk.main.get_by_role("alert")).to_be_hidden()
    expect(desk.main).not_to_contain_text("Not read yet.")
