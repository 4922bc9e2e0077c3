"""The picker, on the example page, with a real user's token."""

import re
from typing import Final

import pytest
from duetick.client import Client, Fields
from playwright.sync_api import Locator, Page, Route, expect

from tests.integration.local_product import Product
from tests.web.seeding import HOSTILE_USER
from tests.web.watching import inaccessible, overflow

SOON: Final = 300
"""The milliseconds after which the picker asks what is typed."""


class Form:
    """The picker of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.element = page.locator("duetick-schedule")
        self.preview = self.element.get_by_role("region", name="What this means")

    def choose(self, kind: str) -> None:
        """Choose the kind of repetition."""
        self.element.get_by_label("Repeats").select_option(kind)
        self.wait()

    def set(self, label: str, value: str) -> None:
        """Fill a field, as somebody types it."""
        field = self.element.get_by_label(label, exact=True)
        if field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
        self.wait()

    def wait(self) -> None:
        """Let the time pass after which the picker asks for the preview."""
        self.page.clock.run_for(SOON)

    def says(self, words: str) -> None:
        """Expect that the preview says it."""
        expect(self.preview).to_contain_text(words)

    def save(self) -> None:
        """Save, and wait until it is saved."""
        self.press("Save")
        expect(self.element.get_by_role("status")).to_have_text("Saved.")

    def press(self, name: str) -> None:
        """Press a button."""
        self.element.get_by_role("button", name=name, exact=True).click()

    def error(self, name: str) -> Locator:
        """Return the text beside a field."""
        return self.element.locator(f"#{name}-error")


@pytest.fixture
def you(running: Product) -> Client:
    """Return the user of the page."""
    return running.client("you")


@pytest.fixture
def form(page: Page, running: Product, monkeypatch: pytest.MonkeyPatch) -> Form:
    """The example page, opened by its link. Its flow is one of the tests'."""
    page.route("**/picker", with_flow_of_mails)
    page.goto(running.stack.example)
    page.locator("duetick-schedule").wait_for()
    made = Form(page)
    made.says("every day")
    return made


def with_flow_of_mails(route: Route) -> None:
    answer = route.fetch()
    ours, theirs = 'flow="reminders" action="remind"', 'flow="mailing" action="send"'
    route.fulfill(response=answer, body=answer.text().replace(ours, theirs))


def test_each_kind_writes_the_expression_that_it_says(form: Form, you: Client) -> None:
    day, clock = "2026-12-24", "07:05"
    for kind, fields, cron, words in (
        ("daily", {"At": clock}, "5 7 * * *", "At 07:05, every day"),
        ("weekly", {"At": "18:30"}, "30 18 * * 1", "At 18:30, on Monday"),
        ("monthly", {"On day": "L", "At": clock}, "5 7 L * *", "on the last day of the month"),
        ("monthly", {"On day": "15"}, "5 7 15 * *", "on the 15th of the month"),
        ("interval", {"Every": "15"}, "*/15 * * * *", "Every 15 minutes"),
        ("interval", {"Every": "7"}, "rate(7 minutes)", "Every 7 minutes, counted from"),
        ("interval", {"Every": "6", "Unit": "hours"}, "0 */6 * * *", "of the hours"),
        ("once", {"On": f"{day}T{clock}"}, f"at({day}T{clock}:00)", "Once, on 24 December 2026"),
        ("expression", {"Expression": "0 9 * * MON#1"}, "0 9 * * MON#1", "on the 1st Monday"),
    ):
        form.choose(kind)
        for label, value in fields.items():
            form.set(label, value)
        expect(form.preview).to_have_attribute("aria-busy", "false")
        if kind != "interval" or words != "of the hours":
            form.says(words)
        form.save()
        assert you.get("reminder").body["cron"] == cron


def test_the_days_of_a_week_are_chosen_one_by_one(form: Form, you: Client) -> None:
    form.choose("weekly")
    for day in ("Wed", "Fri", "Mon"):
        form.element.get_by_role("checkbox", name=day).click()
        form.wait()
    form.says("At 09:00, on Wednesday and Friday")
    form.save()
    assert you.get("reminder").body["cron"] == "0 9 * * 3,5"


def test_it_shows_the_next_five_fires_in_the_users_words_and_zone(form: Form) -> None:
    form.set("At", "06:45")
    fires = form.preview.get_by_role("listitem")
    expect(fires).to_have_count(5)
    expect(fires.first).to_have_text(re.compile("Thursday.* 3 December 2026 at 06:45"))
    form.says("by the clocks of Europe/Berlin.")


def test_a_change_of_the_clocks_is_told_before_it_is_saved(form: Form) -> None:
    form.choose("once")
    form.set("On", "2027-03-28T02:30")
    form.says("clocks go forward at this very moment")


def test_a_zone_is_found_by_what_is_typed_and_taken_by_the_keyboard(
    form: Form, you: Client
) -> None:
    zone = form.element.get_by_role("combobox", name="Time zone")
    zone.click()
    form.page.keyboard.type("new york")
    options = form.element.get_by_role("listbox", name="Time zones").get_by_role("option")
    expect(options).to_have_text(["America/New York"])
    expect(zone).to_have_attribute("aria-expanded", "true")
    assert zone.get_attribute("aria-activedescendant") == "zone-0"
    form.page.keyboard.press("Enter")
    form.wait()
    form.says("by the clocks of America/New_York.")
    expect(zone).to_have_attribute("aria-expanded", "false")
    form.save()
    assert you.get("reminder").body["timezone"] == "America/New_York"
    zone.click()
    form.page.keyboard.type("sao")
    form.page.keyboard.press("ArrowDown")
    form.page.keyboard.press("Escape")
    expect(zone).to_have_value("America/New_York")
    zone.click()
    form.page.keyboard.type("nowhere at all")
    expect(form.element).to_contain_text("No time zone has that name.")
    zone.fill("tokyo")
    options.first.click()
    form.wait()
    form.says("Asia/Tokyo")


def test_what_is_wrong_stands_beside_its_field_and_gets_the_focus(form: Form) -> None:
    form.choose("expression")
    form.set("Expression", "75 * * * *")
    expect(form.error("expression")).to_contain_text("'75' is outside 0-59")
    field = form.element.get_by_label("Expression", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    assert "expression-error" in str(field.get_attribute("aria-describedby"))
    form.press("Save")
    expect(field).to_be_focused()
    form.set("Expression", "0 9 * * *")
    expect(form.error("expression")).to_be_hidden()
    form.says("At 09:00")


def test_a_field_that_is_empty_is_named_without_a_call(form: Form, you: Client) -> None:
    for kind, label, name in (
        ("interval", "Every", "every"),
        ("daily", "At", "time"),
        ("once", "On", "once"),
        ("expression", "Expression", "expression"),
    ):
        form.choose(kind)
        form.set(label, "")
        form.press("Save")
        expect(form.error(name)).not_to_be_empty()
    form.choose("weekly")
    form.element.get_by_role("checkbox", name="Mon").click()
    form.press("Save")
    expect(form.error("days")).to_have_text("Choose a day.")
    assert list(you.list()) == []


def test_what_a_put_would_refuse_is_a_warning_and_the_refusal_is_shown(form: Form) -> None:
    form.choose("once")
    form.set("On", "2020-01-01T00:00")
    form.says("A put refuses it")
    form.press("Save")
    expect(form.error("once")).to_contain_text("future")


def test_a_schedule_is_paused_resumed_and_deleted(form: Form, you: Client) -> None:
    form.save()
    form.press("Pause")
    expect(form.element).to_contain_text("It is paused.")
    assert you.get("reminder").body["state"] == "paused"
    form.press("Resume")
    expect(form.element.get_by_role("status")).to_have_text("It fires again.")
    assert you.get("reminder").body["state"] == "active"
    form.press("Delete")
    form.press("Keep it")
    form.press("Delete")
    form.press("Yes, delete it")
    expect(form.element.get_by_role("status")).to_have_text("Deleted.")
    assert list(you.list()) == []
    heard = form.page.locator("#heard li")
    expect(heard).to_have_text(
        [f"duetick-{one}" for one in ("saved", "paused", "resumed", "deleted")]
    )


def test_its_history_is_shown_in_the_users_words(form: Form, running: Product) -> None:
    form.set("At", "12:00")
    form.save()
    form.press("History")
    expect(form.element).to_contain_text("It has not fired yet.")
    form.press("History")
    running.clock.now += 60 * 60_000
    running.tick()
    form.press("History")
    expect(form.element.get_by_role("list", name="History")).to_contain_text("12:00")
    expect(form.element.get_by_role("list", name="History")).to_contain_text("ran")


def test_a_schedule_that_is_there_is_read_back_and_stays_to_the_letter(
    form: Form, you: Client
) -> None:
    for cron, kind in (
        ("rate(15 minutes)", "interval"),
        ("*/7 * * * *", "expression"),
        ("0 9 * * 1-5", "weekly"),
        ("0 9 * * MON-FRI", "weekly"),
        ("0  9 * * mon-sun", "weekly"),
        ("@daily", "daily"),
        ("@hourly", "interval"),
        ("@weekly", "weekly"),
        ("0 9 * * TUE#2", "expression"),
        ("15 6 L * *", "monthly"),
        ("0 9 1 1 *", "expression"),
        ("days(mon 09:00, tue 10:00)", "expression"),
    ):
        made = {"cron": cron, "flow": "mailing", "action": "send", "timezone": "Europe/Berlin"}
        you.put("reminder", {**made, "input": {"kept": "as it is"}})
        form.page.reload()
        expect(form.element.get_by_label("Repeats")).to_have_value(kind)
        workdays = cron in ("0 9 * * 1-5", "0 9 * * MON-FRI")
        form.set("At", "09:30") if workdays else None
        form.save()
        kept = you.get("reminder").body
        assert kept["cron"] == ("30 9 * * 1,2,3,4,5" if workdays else cron)
        assert kept["input"] == {"kept": "as it is"}


def test_a_change_of_somebody_else_meanwhile_is_not_overwritten(form: Form, you: Client) -> None:
    form.save()
    you.change("reminder", {"cron": "0 20 * * *"})
    form.set("At", "07:00")
    form.press("Save")
    expect(form.element.get_by_role("alert")).to_contain_text("It was changed elsewhere meanwhile.")
    expect(form.element.get_by_label("At", exact=True)).to_have_value("20:00")
    assert you.get("reminder").body["cron"] == "0 20 * * *"


DAILY: Final[Fields] = {"cron": "0 9 * * *", "flow": "mailing", "action": "send", "timezone": "UTC"}


def test_of_two_schedules_chosen_one_after_the_other_the_last_is_shown_and_changed(
    form: Form, you: Client
) -> None:
    work: Fields = {**DAILY, "input": {"topic": "news"}}
    you.put("first", {**work, "cron": "15 6 * * *"})
    you.put("second", {**work, "cron": "45 7 * * *"})
    form.element.evaluate(
        "one => { for (const key of ['first', 'second']) one.setAttribute('schedule', key) }"
    )
    expect(form.element.get_by_label("At", exact=True)).to_have_value("07:45")
    form.set("At", "08:00")
    form.save()
    assert you.get("first").body["cron"] == "15 6 * * *"
    assert you.get("second").body["cron"] == "0 8 * * *"


def test_a_save_that_ends_after_another_schedule_was_chosen_leaves_that_one_shown(
    form: Form, you: Client
) -> None:
    you.put("other", {**DAILY, "cron": "45 7 * * *", "input": {"topic": "news"}})
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    form.page.route("**/schedules/reminder", hold)
    form.set("At", "06:00")
    form.press("Save")
    expect(form.element.get_by_role("form")).to_have_attribute("aria-busy", "true")
    form.element.evaluate("one => one.setAttribute('schedule', 'other')")
    expect(form.element.get_by_label("At", exact=True)).to_have_value("07:45")
    for route in held:
        route.continue_()
    expect(form.page.locator("#heard li")).to_have_text(["duetick-saved"])
    assert form.element.get_attribute("schedule") == "other"
    expect(form.element.get_by_label("At", exact=True)).to_have_value("07:45")
    assert you.get("reminder").body["cron"] == "0 6 * * *"


def test_one_form_makes_several_schedules_each_from_an_empty_form(form: Form, you: Client) -> None:
    for clock in ("05:00", "05:30"):
        form.element.evaluate("one => one.removeAttribute('schedule')")
        expect(form.element.get_by_label("At", exact=True)).to_have_value("09:00")
        form.set("At", clock)
        form.save()
    assert sorted(str(one["cron"]) for one in you.list()) == ["0 5 * * *", "30 5 * * *"]


def test_the_next_times_are_those_of_the_schedules_own_policies(form: Form, you: Client) -> None:
    policies: Fields = {"startsAt": "2027-01-10T00:00:00Z"}
    you.put("reminder", {**DAILY, "input": {"topic": "news"}, "policies": policies})
    form.page.reload()
    fires = form.preview.get_by_role("listitem")
    expect(fires.first).to_have_text(re.compile("10 January 2027 at 09:00"))


def test_a_spread_is_told_and_stays_whatever_else_is_changed(form: Form, you: Client) -> None:
    policies: Fields = {"spread": 7_200, "maxRuns": 9}
    more: Fields = {"timezone": None, "input": {"topic": "news"}, "labels": {"team": "garden"}}
    before = you.put("reminder", {**DAILY, **more, "policies": policies}).body
    form.page.reload()
    form.says("At 09:00, every day, in UTC. It starts up to 2 hours later, each time by the same")
    form.set("At", "10:30")
    form.says("At 10:30, every day, in UTC. It starts up to 2 hours later")
    form.choose("weekly")
    form.save()
    after = you.get("reminder").body
    assert (before["cron"], after["cron"]) == ("0 9 * * *", "30 10 * * 1")
    for name in ("policies", "labels", "input", "flow", "action", "timezone"):
        assert after[name] == before[name], name


def test_whoever_is_signed_out_is_told_so(form: Form) -> None:
    form.element.evaluate("one => { one.token = 'of.yesterday.x' }")
    form.press("Save")
    expect(form.element.get_by_role("alert")).to_have_text("You are signed out. Sign in again.")


def test_all_of_it_can_be_done_by_the_keyboard(form: Form, you: Client) -> None:
    form.element.get_by_label("Repeats").focus()
    form.page.keyboard.type("Every week")
    form.wait()
    form.page.keyboard.press("Tab")
    form.page.keyboard.press("Space")  # Monday is no longer chosen
    form.page.keyboard.press("Tab")
    form.page.keyboard.press("Space")
    form.wait()
    form.says("on Tuesday")
    form.element.get_by_label("At", exact=True).focus()
    form.page.keyboard.press("Enter")
    expect(form.element.get_by_role("status")).to_have_text("Saved.")
    assert you.get("reminder").body["cron"] == "0 9 * * 2"


def test_axe_finds_nothing_in_any_state_light_or_dark_on_a_phone(form: Form) -> None:
    form.page.set_viewport_size({"width": 360, "height": 740})
    form.save()
    form.press("History")
    form.press("Delete")
    for kind in ("interval", "daily", "weekly", "monthly", "once", "expression"):
        form.choose(kind)
        form.press("Save")
        for scheme in ("light", "dark"):
            form.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            assert inaccessible(form.page) == [], (kind, scheme)
            assert overflow(form.page) <= 0, kind


def test_its_words_are_the_pages(form: Form) -> None:
    form.element.evaluate(
        "one => { one.labels = {save: 'Speichern', kinds: {daily: 'Jeden Tag'}, "
        "states: {succeeded: 'gelaufen'}}; one.lang = 'de' }"
    )
    expect(form.element.get_by_role("button", name="Speichern")).to_be_visible()
    expect(form.element.get_by_label("Repeats").locator("option").nth(1)).to_have_text("Jeden Tag")
    expect(form.element.get_by_label("Time zone").first).to_be_visible()
    form.set("At", "10:00")
    expect(form.preview.get_by_role("listitem").first).to_contain_text("Donnerstag")


def test_its_look_is_the_pages(form: Form) -> None:
    form.page.evaluate(
        "() => { const sheet = new CSSStyleSheet(); sheet.replaceSync('duetick-schedule "
        "{--duetick-accent: rgb(10, 100, 10); --duetick-radius: 0px}'); "
        "document.adoptedStyleSheets = [sheet] }"
    )
    save = form.element.get_by_role("button", name="Save")
    expect(save).to_have_css("background-color", "rgb(10, 100, 10)")
    expect(save).to_have_css("border-radius", "0px")


def test_hostile_texts_of_a_user_are_texts(form: Form, you: Client) -> None:
    form.save()
    you.pause("reminder", note=HOSTILE_USER, until="2027-01-01T00:00:00Z")
    form.page.reload()
    expect(form.element).to_contain_text("It is paused until")
    form.choose("expression")
    form.set("Expression", HOSTILE_USER)
    expect(form.error("expression")).to_contain_text("<img src=x")
    assert form.element.locator("img").count() == 0


LATE: Final = """<!doctype html><html lang="en-GB"><body>
<script>
  const one = document.createElement("duetick-schedule");
  Object.assign(one, {{ token: "{token}", labels: {{ save: "Keep" }}, input: {{ a: "b" }} }});
  one.setAttribute("flow", "mailing");
  one.setAttribute("action", "send");
  document.body.append(one);
</script>
<script type="module" src="/picker/picker.js"></script></body></html>"""


def test_what_a_page_sets_before_the_class_is_known_is_taken(page: Page, running: Product) -> None:
    body = LATE.format(token=running.stack.token_of("late"))
    page.route("**/late", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(f"{running.stack.server.url}/late")
    form = Form(page)
    form.says("At 09:00, every day")
    form.press("Keep")
    expect(form.element.get_by_role("status")).to_have_text("Saved.")
    (kept,) = running.client("late").list()
    assert kept["input"] == {"a": "b"}
    assert form.element.get_attribute("schedule") == kept["key"]
