"""The timeline of a schedule, and why: by a click, by the keyboard, by an address."""

import re

import pytest
from duetick.cli.main import main
from duetick.domain.schedule import IndexRow
from playwright.sync_api import Locator, Page, expect

from tests.integration.local_product import Product
from tests.web.desk import Desk
from tests.web.seeding import HOUR, order

LEFT = 68
"""The pixels before the first instant of a timeline."""


@pytest.fixture
def desk(console: Page, running: Product) -> Desk:
    return Desk(console, running)


def slider(desk: Desk) -> Locator:
    """Return the timeline."""
    return desk.main.get_by_role("slider")


def legend(desk: Desk) -> list[str]:
    """Return the legend of the timeline."""
    return desk.main.locator(".legend li").all_inner_texts()


def chosen(desk: Desk) -> str:
    """Return the time that the address names."""
    found = re.search(r"[?&]at=([^&]+)", desk.page.url)
    return found[1].replace("%3A", ":") if found else ""


def test_each_nominal_time_stands_in_the_lane_of_what_became_of_it(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "Timeline")
    expect(slider(desk)).to_have_attribute("aria-label", re.compile("^Timeline: 9 times"))
    assert legend(desk) == [
        "4 failed",
        "2 left out",
        "1 waits",
        "2 ahead",
        "flow:billing paused",
        "times in UTC",
    ]
    assert slider(desk).locator("path.marks").count() == 6, "a path for each lane, whatever it has"


def test_times_that_a_pause_leaves_out_are_shown_while_it_holds(desk: Desk) -> None:
    desk.go("schedule/ann/digest", "Timeline")
    assert legend(desk)[:3] == ["5 ran", "4 left out", "paused"]
    expect(slider(desk).locator("rect.band.pause")).to_have_count(1)


def test_a_click_explains_the_nearest_time_and_stands_in_the_address(desk: Desk) -> None:
    desk.go("schedule/ann/digest?from=2026-11-30T00:00:00Z&to=2026-12-02T00:00:00Z", "Timeline")
    box = slider(desk).bounding_box()
    assert box
    tuesday = LEFT + (box["width"] - LEFT) * (24 + 8) / 48
    slider(desk).click(position={"x": tuesday + 5, "y": 60})
    expect(desk.main.locator(".said")).to_contain_text("the schedule is paused then")
    assert chosen(desk) == "2026-12-01T08:00:00Z"
    shared = desk.page.url
    desk.go("", "How much")
    desk.page.goto(shared)
    expect(desk.main.locator(".said")).to_contain_text("the schedule is paused then")


def test_a_click_between_two_times_explains_that_instant_and_offers_those_beside_it(
    desk: Desk,
) -> None:
    desk.go("schedule/ann/digest?from=2026-11-28T00:00:00Z&to=2026-11-30T00:00:00Z", "Timeline")
    box = slider(desk).bounding_box()
    assert box
    slider(desk).click(position={"x": LEFT + (box["width"] - LEFT) * 20 / 48, "y": 60})
    expect(desk.main).to_contain_text("No fire time")
    desk.press("The fire time before: 2026-11-28T08:00:00Z")
    expect(desk.main.locator(".explained")).to_contain_text("It ran")
    assert chosen(desk) == "2026-11-28T08:00:00Z"


def test_the_arrow_keys_go_from_time_to_time_and_explain_each(desk: Desk) -> None:
    desk.go("schedule/ann/digest?at=2026-11-29T08:00:00Z", "Timeline")
    slider(desk).focus()
    desk.page.keyboard.press("ArrowRight")
    expect(slider(desk)).to_have_attribute("aria-valuetext", "2026-11-30 09:00:00: ran")
    desk.page.keyboard.press("ArrowRight")
    expect(slider(desk)).to_have_attribute("aria-valuetext", re.compile("2026-12-01.*paused"))
    expect(desk.main.locator(".said")).to_contain_text("the schedule is paused then")
    desk.page.keyboard.press("Home")
    expect(slider(desk)).to_have_attribute("aria-valuetext", re.compile("^2026-11-26"))
    assert slider(desk).evaluate("one => one === document.activeElement"), "the focus stays"


def test_a_time_that_is_entered_is_explained(desk: Desk) -> None:
    desk.go("schedule/bob/ping", "Timeline")
    desk.main.get_by_label("Explain (UTC)").fill("2026-12-02T05:00:00")
    desk.press("Why?")
    expect(desk.main.locator(".said")).to_contain_text("its tick came too late")
    expect(desk.main.get_by_role("group", name="What helps")).to_contain_text("Backfill this time")


EXPLAINED = {
    "ann/digest": "2026-12-01T08:00:00Z",
    "ann/invoice": "2026-12-02T06:30:00Z",
    "bob/ping": "2026-12-02T05:00:00Z",
    "bob/sync": "2026-12-01T12:00:00Z",
    "cat/broken": "2026-12-02T10:00:00Z",
    "cat/twice": "2026-12-02T12:00:00Z",
}


def test_v02_the_console_says_of_a_time_what_the_command_and_the_api_say(
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", desk.running.stack.operator)
    for name, at in EXPLAINED.items():
        with subtests.test(name):
            user, _, key = name.partition("/")
            place = ["--user", user, "--url", desk.running.stack.server.url]
            capsys.readouterr()
            assert main(["schedules", "explain", key, "--at", at, *place]) == 0
            by_command = capsys.readouterr().out.splitlines()
            by_api = desk.running.operator(user).explain(key, at=at)["said"]
            desk.go(f"schedule/{name}?at={at}", by_api[0])
            said = desk.main.locator(".explained > .said").first.locator("li")
            assert said.all_inner_texts() == by_command == by_api


def test_the_clocks_change_is_marked_and_told(desk: Desk) -> None:
    desk.running.operator("ann").put("early", order("30 2 * * *", timezone="Europe/Berlin"))
    desk.go("schedule/ann/early?from=2027-03-26T00:00:00Z&to=2027-03-30T00:00:00Z", "clocks change")
    assert "clocks change at 2027-03-28 03:00:00: from +01:00 to +02:00" in legend(desk)
    expect(slider(desk).locator("line.clocks")).to_have_count(1)
    desk.go("schedule/ann/early?at=2027-03-28T01:00:00Z", "Why?")
    expect(desk.main.locator(".said")).to_contain_text("Clocks go forward")


def test_a_schedule_that_fires_each_minute_shows_a_day_and_goes_back_by_days(desk: Desk) -> None:
    running = desk.running
    running.operator("ann").put("busy", order("* * * * *"))
    for _ in range(3):
        running.clock.now += 60_000
        running.tick()
    desk.go("schedule/ann/busy", "Timeline")
    expect(slider(desk)).to_have_attribute("aria-label", re.compile(r"Timeline: \d{3} times"))
    desk.press("week")
    expect(slider(desk)).to_have_attribute("aria-label", re.compile(r"1,5\d\d times"))
    desk.press("◀ earlier")
    assert "from=" in desk.page.url


def test_a_time_that_nothing_accounts_for_is_shown(desk: Desk) -> None:
    store = desk.running.store
    desk.running.operator("ann").put("lost", order("0 * * * *"))
    row = store.index.get("ann", "lost")
    assert row
    skipped = IndexRow(
        "ann", "lost", row.cron, row.timezone, row.next_fire_at + 2 * HOUR, row.flow,
        anchor=row.anchor, redefined_at=row.redefined_at, policies=row.policies,
    )  # fmt: skip
    store.index.upsert(skipped)
    desk.running.clock.now += 3 * HOUR
    desk.page.clock.set_system_time(desk.running.clock.now / 1_000)
    desk.go("schedule/ann/lost", "Timeline")
    expect(desk.main.locator(".legend")).to_contain_text("1 failed")
    slider(desk).focus()
    desk.page.keyboard.press("Home")
    expect(slider(desk)).to_have_attribute("aria-valuetext", re.compile("not accounted for"))


def test_v02_the_history_has_the_lines_of_the_api(desk: Desk) -> None:
    told = [*desk.running.operator("ann").history("invoice", limit=20)]
    desk.go("schedule/ann/invoice", "History")
    shown = desk.main.get_by_role("table", name="History").locator("tbody tr")
    expect(shown).to_have_count(len(told))
    times = shown.locator("td:first-child button").evaluate_all("all => all.map(one => one.title)")
    assert times == [one["nominalFireTime"] for one in told]
