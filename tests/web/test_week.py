"""The week by minute: the delivered, the due, and those that a schedule would add."""

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.integration.local_product import Product
from tests.web.desk import Desk
from tests.web.seeding import operators, order
from tests.web.watching import inaccessible, overflow

TOO_MUCH = ": in a window with more than is allowed"
FORM = "A schedule that is not saved"


@pytest.fixture
def desk(console: Page, running: Product) -> Desk:
    return Desk(console, running)


def ask(desk: Desk, fields: dict[str, str]) -> Locator:
    """Fill the form in, and send it. Return the form."""
    form = desk.main.get_by_role("form", name=FORM)
    if not form.is_visible():
        desk.main.get_by_text("What would another schedule add?").click()
    for label, value in fields.items():
        form.get_by_label(label, exact=True).fill(value)
    form.get_by_role("button", name="Show what it adds").click()
    return form


def wrong(form: Locator, label: str) -> Locator:
    """Return the text beside a field that says what is wrong with it."""
    field = form.get_by_label(label, exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    return form.locator(f"#{field.get_attribute('aria-describedby')}")


def test_the_week_is_that_of_a_user_or_a_flow_and_says_what_exceeds_a_number(desk: Desk) -> None:
    desk.go("week", "fires ahead")
    filters = desk.main.get_by_role("search", name="Filters")
    filters.get_by_label("User", exact=True).fill("bob")
    filters.get_by_label("Allowed at most", exact=True).fill("1")
    filters.get_by_role("button", name="Find").click()
    expect(desk.main).to_contain_text("1 a minute are allowed, as was given. More is due in")
    whole = {"to": "2026-12-04T00:00:00Z"}
    due = desk.running.operator("bob").forecast(whole)["sums"]["due"]
    expect(desk.main).to_contain_text(f"{due:,} fires ahead")
    week = desk.main.get_by_role("slider")
    week.press("ArrowRight")
    expect(week).to_have_attribute("aria-valuetext", f"2026-12-02 10:02 UTC: 3 due{TOO_MUCH}")
    desk.go("week?flow=billing", "fires ahead")
    expect(desk.main.get_by_role("listitem").filter(has_text="user:bob")).to_have_count(0)


def test_bounds_of_one_scope_are_each_said_once_however_often_the_page_is_drawn(
    desk: Desk,
) -> None:
    operators(desk.running).limit("user:bob", parallel=2, rate=50, per="hour")
    desk.go("week", "fires ahead")
    week = desk.main.get_by_role("slider")
    for _ in range(3):
        week.press("ArrowRight")
    expect(desk.main.get_by_text("Operators limit user:bob to 50 an hour.")).to_have_count(1)
    expect(desk.main.get_by_text("Operators let 2 of user:bob run at once.")).to_have_count(1)


MANY = {"Cron": "0 9 * * *", "Time zone": "Europe/Berlin", "How many": "50000"}


def test_the_week_shows_what_a_new_schedule_adds_where_that_is_too_much_and_the_spread_that_fits(
    desk: Desk,
) -> None:
    desk.go("week?most=300", "fires ahead")
    form = ask(desk, MANY)
    expect(desk.main).to_contain_text("It adds 50,000 fires to the")
    expect(desk.main).to_contain_text("The fullest minute ahead is 2026-12-03 08:00 UTC")
    expect(desk.main.locator(".legend")).to_contain_text("more than is allowed")
    too_much = desk.main.get_by_role("table", name="Over 300 a minute of all")
    expect(too_much).to_contain_text("2026-12-03 08:00:00")
    expect(form.get_by_label("Cron")).to_have_value("0 9 * * *")
    desk.press(re.compile("^Try a spread of"))
    expect(form.get_by_label("Spread (s)")).not_to_have_value("")
    expect(desk.main).to_contain_text("as was given. Nothing ahead exceeds it.")
    expect(desk.main.locator(".legend")).not_to_contain_text("more than is allowed")
    expect(desk.main).to_contain_text("It adds 50,000 fires to the")


def test_each_minute_says_how_many_are_due_and_how_many_are_added(desk: Desk) -> None:
    desk.go("week?most=300&cron=0+9+*+*+*&copies=50000", "It adds 50,000 fires")
    week = desk.main.get_by_role("slider")
    week.press("ArrowDown")
    week.press("PageUp")
    week.press("ArrowLeft")
    due = operators(desk.running).forecast({"from": "2026-12-03T09:00:00Z"})["due"][0]
    said = f"2026-12-03 09:00 UTC: {due} due, 50,000 added{TOO_MUCH}"
    expect(week).to_have_attribute("aria-valuetext", said)


def test_the_colours_of_what_is_added_and_of_what_is_too_much_are_in_the_picture(
    desk: Desk,
) -> None:
    count = """one => {
        const context = new OffscreenCanvas(one.width, one.height).getContext("2d");
        context.drawImage(one, 0, 0);
        const {data} = context.getImageData(0, 0, one.width, one.height);
        const near = (at, wanted) => wanted.every((part, i) => Math.abs(data[at + i] - part) < 4);
        const found = {"added": 0, "too-much": 0};
        for (const name of Object.keys(found)) {
            const swatch = document.querySelector(`.swatch.${name}`);
            const colour = swatch && getComputedStyle(swatch).backgroundColor.match(/\\d+/g);
            const wanted = colour?.map(Number);
            for (let at = 0; wanted && at < data.length; at += 4) found[name] += near(at, wanted);
        }
        return found;
    }"""
    canvas = desk.main.locator(".week canvas")
    desk.go("week?most=300", "fires ahead")
    assert canvas.evaluate(count) == {"added": 0, "too-much": 0}
    desk.go("week?most=300&cron=0+9+*+*+*&copies=50000", "It adds 50,000 fires")
    found = canvas.evaluate(count)
    assert found["added"] > 10
    assert found["too-much"] > 2


def test_what_is_wrong_with_the_schedule_stands_beside_its_field_and_the_week_stays(
    desk: Desk,
) -> None:
    desk.go("week?most=300", "fires ahead")
    bad = {"Cron": "0 99 * * *", "Time zone": "Mars/Olympus", "How many": "1.5", "Spread (s)": "x"}
    form = ask(desk, bad)
    expect(wrong(form, "Cron")).to_contain_text("hour")
    expect(wrong(form, "Time zone")).to_contain_text("Mars/Olympus")
    expect(wrong(form, "How many")).to_have_text(
        "expected a whole number, got a number with a fraction."
    )
    expect(wrong(form, "Spread (s)")).to_have_text("expected a whole number, got text.")
    expect(desk.main).to_contain_text("fires ahead")
    expect(desk.main).to_contain_text("300 a minute are allowed")
    assert inaccessible(desk.page) == []
    ask(desk, MANY | {"Spread (s)": ""})
    expect(desk.main).to_contain_text("It adds 50,000 fires")
    expect(form.locator(".error")).to_have_count(0)
    filters = desk.main.get_by_role("search", name="Filters")
    filters.get_by_label("Allowed at most").fill("many")
    filters.get_by_role("button", name="Find").click()
    expect(wrong(filters, "Allowed at most")).to_have_text("expected a whole number, got text.")


def test_the_change_of_a_schedule_counts_against_what_it_has(desk: Desk) -> None:
    desk.running.operator("bob").put("often", order("* * * * *", policies={"spread": 7}))
    desk.go("schedule/bob/often", "Definition")
    desk.main.get_by_role("link", name="What would a change of it add to the week?").click()
    form = desk.main.get_by_role("form", name=FORM)
    expect(form.get_by_label("In place of the key")).to_have_value("often")
    ask(desk, {"Cron": "*/2 * * * *"})
    expect(desk.main).to_contain_text(re.compile(r"It takes 1,1\d\d fires away"))
    ask(desk, {"In place of the key": "oftn", "Cron": ""})
    expect(wrong(form, "In place of the key")).to_contain_text("names no schedule of this user")


def test_a_limit_of_an_action_counts_what_would_be_added_to_it(desk: Desk) -> None:
    operators(desk.running).limit("action:mailing/send", rate=40_000, per="hour")
    desk.go("week?cron=0+9+*+*+*&copies=50000", "It adds 50,000 fires")
    limited = desk.main.get_by_role("table", name="Over 40,000 an hour of action:mailing/send")
    expect(limited).to_have_count(0)
    form = desk.main.get_by_role("form", name=FORM)
    form.get_by_label("Flow and action").select_option("mailing/send")
    expect(limited).to_contain_text("40,000")


def test_the_week_with_a_schedule_that_is_added_fits_a_phone_in_light_and_dark(desk: Desk) -> None:
    desk.go("week?most=300&cron=0+9+*+*+*&copies=50000", "It adds 50,000 fires")
    for width in (360, 1_920):
        desk.page.set_viewport_size({"width": width, "height": 740})
        for scheme in ("light", "dark"):
            desk.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            assert overflow(desk.page) <= 0, width
            assert inaccessible(desk.page) == [], (width, scheme)


def test_what_costs_is_read_when_somebody_says_so_and_not_again_by_itself(desk: Desk) -> None:
    """On DynamoDB a forecast of everything reads, and costs, every schedule."""
    asked: list[bool] = []

    def cost(route: Route) -> None:
        body = route.request.post_data_json or {}
        asked.append("yes" in body)
        answer = route.fetch().json()
        told = {"readUnits": 51_000, "schedules": 100_000, "countedAt": None, "agreed": asked[-1]}
        route.fulfill(json=answer | {"cost": told})

    desk.page.route("**/api/forecast", cost)
    desk.go("week", "which costs about 51,000 read units")
    expect(desk.main.get_by_role("slider")).to_have_count(0)
    desk.press("Read them")
    expect(desk.main).to_contain_text("to read it anew costs about 51,000 read units")
    expect(desk.main.get_by_role("slider")).to_be_visible()
    desk.page.clock.run_for(200_000)
    with desk.page.expect_response("**/api/forecast"):
        desk.press("Read them again")
    desk.page.clock.run_for(200_000)
    expect(desk.main).to_contain_text("fires ahead")
    assert asked == [False, True, True]


def test_a_week_that_takes_long_to_read_is_read_less_often(desk: Desk) -> None:
    asked: list[str] = []

    def hold(route: Route) -> None:
        asked.append(route.request.url)
        desk.page.clock.run_for(4_000)
        route.continue_()

    desk.page.route("**/api/forecast", hold)
    desk.page.goto(f"{desk.running.stack.server.url}/console#/week")
    expect(desk.main).to_contain_text("fires ahead")
    desk.page.clock.run_for(100_000)
    assert len(asked) == 1
    with desk.page.expect_request("**/api/forecast"):
        desk.page.clock.run_for(30_000)
