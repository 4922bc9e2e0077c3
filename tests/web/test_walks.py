"""A day of an operator, and of a user, by clicks alone: each as one walk through the pages."""

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.integration.local_product import Product
from tests.web.desk import Desk
from tests.web.pictures import picture
from tests.web.seeding import HOUR

SIZE: Final[ViewportSize] = {"width": 1120, "height": 760}


def link(page: Page, name: str) -> None:
    """Click a link of the page."""
    page.locator("main").get_by_role("link", name=name, exact=True).first.click()


def menu(page: Page, name: str) -> None:
    """Click a page of the menu."""
    page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name=name).click()


def test_somebody_new_finds_why_anns_schedule_did_not_fire_on_tuesday_and_mends_it(
    console: Page, running: Product, tmp_path: Path
) -> None:
    """Nothing is known but the name of a user, and a day. Nothing is typed but that name."""
    desk = Desk(console, running)
    console.set_viewport_size(SIZE)
    console.get_by_label("Find a user, a schedule or an id").fill("ann")
    console.keyboard.press("Enter")
    expect(desk.main).to_contain_text("digest")
    paused = desk.main.get_by_role("row").filter(has_text="paused")
    paused.get_by_role("link", name="digest").click()
    expect(desk.main).to_contain_text("Paused since 2026-11-30 12:00:00")
    timeline = desk.main.get_by_role("slider")
    box = timeline.bounding_box()
    assert box
    midnight = timeline.locator("text.label").filter(has_text="2026-12-01").get_attribute("x")
    a_day = (box["width"] - 68) / 9
    timeline.click(position={"x": float(midnight or 0) + a_day * 9 / 24, "y": 80})
    why = desk.main.locator(".explained")
    expect(why).to_contain_text("It does not fire: the schedule is paused then.")
    expect(why).to_contain_text("holidays")
    expect(why).to_contain_text("2026-12-01T09:00:00+01:00 in Europe/Berlin")
    console.set_viewport_size({"width": 1120, "height": 980})
    picture(console, "schedule", tmp_path)
    desk.act("Resume the schedule", "Resume it", why="the holidays are over")
    expect(why).to_contain_text("It did not fire: the schedule was paused.")
    desk.act("Backfill this time", "Backfill", why="ann waits for it", touches="1 time")
    running.clock.now += 60_000
    running.tick()
    running.clock.now += 60_000
    running.tick()
    console.clock.run_for(6_000)
    expect(why).to_contain_text("backfill")
    found = running.store.ledger.find("ann", "digest", limit=5)
    assert [one.state for one in found if one.origin.startswith("backfill:")] == ["succeeded"]
    kept = running.store.schedules.get("ann", "digest")
    assert kept
    assert kept.enabled
    expect(desk.main).to_contain_text("the holidays are over")


def test_an_operators_day(console: Page, running: Product, tmp_path: Path) -> None:
    """Something fails: its user is found, the flow is paused and resumed, the dead are retried."""
    desk = Desk(console, running)
    console.set_viewport_size(SIZE)
    wrong = desk.main.get_by_role("list", name="What is wrong, the worst first")
    expect(wrong).to_contain_text("Occurrences that died in the last day")
    picture(console, "overview", tmp_path)
    menu(console, "Week")
    expect(desk.main).to_contain_text("fires ahead")
    desk.main.get_by_label("Allowed at most").fill("300")
    console.keyboard.press("Enter")
    desk.main.get_by_text("What would another schedule add?").click()
    desk.main.get_by_label("Cron").fill("0 9 * * *")
    desk.main.get_by_label("How many").fill("50000")
    console.keyboard.press("Enter")
    expect(desk.main).to_contain_text("It adds 50,000 fires")
    expect(desk.main).to_contain_text("300 a minute are allowed, as was given. More is due in")
    console.set_viewport_size({"width": 1120, "height": 956})
    picture(console, "week", tmp_path)
    console.set_viewport_size(SIZE)
    menu(console, "Overview")
    desk.main.get_by_role("link", name="bob", exact=True).click()
    expect(console.get_by_label("User", exact=True)).to_have_value("bob")
    expect(desk.main).to_contain_text("sync")
    link(console, "sync")
    expect(desk.main.locator(".explained")).to_contain_text("failed")
    expect(desk.main).to_contain_text("all of bob")
    menu(console, "Pauses and limits")
    given = {"Scope": "flow:mailing", "Note": "the printer is on fire"}
    desk.act("Pause a group", "Pause", why="stop it", touches="of the flow mailing", fields=given)
    menu(console, "Schedules")
    console.get_by_label("Flow", exact=True).fill("mailing")
    console.keyboard.press("Enter")
    expect(desk.main).to_contain_text("held by a pause of flow:mailing")
    menu(console, "Pauses and limits")
    desk.act("Resume flow:mailing", "Resume", why="the fire is out")
    menu(console, "Dead and waiting")
    console.get_by_label("User", exact=True).fill("bob")
    console.keyboard.press("Enter")
    expect(desk.main).to_contain_text("sync")
    desk.act("Retry all…", "Retry all of these", why="the fire is out", touches="occurrences")
    running.clock.now += 60_000
    running.tick()
    menu(console, "Ticks")
    expect(desk.main).to_contain_text("delivered")
    menu(console, "Record")
    for verb in ("pause_group", "resume_group", "retry_occurrences"):
        expect(desk.main).to_contain_text(verb)
    menu(console, "Jobs")
    expect(desk.main.get_by_role("link", name=re.compile("^occ_"))).to_have_count(1)
    menu(console, "Overview")
    expect(desk.main).to_contain_text("Is it firing, and how late?")


@pytest.fixture
def flows_of_mails(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Give a user's day the example flows, and an operator's the flows that fail."""
    users = request.node.name == "test_a_users_day"
    monkeypatch.setenv("DUETICK_FLOWS", "flows" if users else "tests.web.mailing")


def test_a_users_day(page: Page, running: Product, tmp_path: Path) -> None:
    """On the page of `make run`, a schedule is made in a form, fires, and is looked at, changed,
    paused, resumed and deleted.
    """
    page.set_viewport_size({"width": 720, "height": 760})
    page.goto(running.stack.example)
    form = page.locator("duetick-schedule")
    said, preview = form.get_by_role("status"), form.get_by_role("region")
    form.get_by_label("Repeats").select_option("weekly")
    form.get_by_role("checkbox", name="Wed").click()
    form.get_by_label("At", exact=True).fill("12:00")
    page.clock.run_for(300)
    expect(preview).to_contain_text("At 12:00, on Monday and Wednesday")
    picture(page, "picker", tmp_path)
    form.get_by_role("button", name="Save").click()
    expect(said).to_have_text("Saved.")
    running.clock.now += HOUR
    running.tick()
    form.get_by_role("button", name="History").click()
    expect(form.get_by_role("list", name="History")).to_contain_text("ran")
    form.get_by_label("At", exact=True).fill("13:30")
    form.get_by_role("button", name="Save").click()
    expect(said).to_have_text("Saved.")
    form.get_by_role("button", name="Pause").click()
    expect(form).to_contain_text("It is paused.")
    form.get_by_role("button", name="Resume").click()
    expect(said).to_have_text("It fires again.")
    (kept,) = running.client().list()
    assert (kept["cron"], kept["state"]) == ("30 13 * * 1,3", "active")
    form.get_by_role("button", name="Delete").click()
    form.get_by_role("button", name="Yes, delete it").click()
    expect(said).to_have_text("Deleted.")
    assert list(running.client().list()) == []
