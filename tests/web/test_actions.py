"""Each action of an operator in the console: it names what it will touch, and it is recorded."""

import json
import re
from collections.abc import Mapping

import pytest
from duetick.core.witness import NOTE, NOTE_OF_RESTORE
from duetick.domain.schedule import Record
from duetick.runtime import wiring
from duetick.testing.conformance.restoring import KeptWitness
from playwright.sync_api import Locator, Page, Route, expect

from tests.integration.local_product import Product
from tests.web.desk import Desk
from tests.web.seeding import DAY, operators

RETRY, CANCEL, DELETE = (re.compile(f"^{verb} occ_") for verb in ("retry", "cancel", "delete"))


@pytest.fixture
def desk(console: Page, running: Product) -> Desk:
    return Desk(console, running)


def record(running: Product, user: str, key: str) -> Record:
    """Return a schedule as it is stored."""
    found = running.store.schedules.get(user, key)
    assert found
    return found


def states(running: Product, user: str, key: str) -> Mapping[str, int]:
    """Count the occurrences in each state."""
    found = [one.state.value for one in running.store.ledger.find(user, key, limit=1_000)]
    return {one: found.count(one) for one in set(found)}


def test_a_schedule_is_paused_resumed_run_changed_and_deleted(desk: Desk) -> None:
    running = desk.running
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.act("Pause", "Pause it", why="a holiday", touches="2026-12-03 06:30:00")
    expect(desk.main).to_contain_text("until somebody resumes it")
    assert not record(running, "ann", "invoice").enabled
    desk.recorded("pause_schedule", "a holiday")
    desk.act("Resume", "Resume it", why="it is over")
    assert record(running, "ann", "invoice").enabled
    desk.act("Run now", "Run it now", why="once more")
    assert any(one.origin.startswith("run:") for one in running.store.ledger.find("ann", "invoice"))
    given = {"Cron": "15 10 * * MON", "Time zone": "Europe/Berlin"}
    desk.act("Change", "Change it", why="asked", touches="At 10:15, on Monday", fields=given)
    changed = record(running, "ann", "invoice")
    assert (changed.cron, changed.timezone) == ("15 10 * * MON", "Europe/Berlin")
    assert changed.input == {"fails": "The bank did not answer."}
    expect(desk.main).to_contain_text("At 10:15, on Monday, by the clocks of Europe/Berlin.")
    gone = {"Type invoice to go on": "invoice"}
    desk.act("Delete", "Delete it", why="ended", touches="will not fire", fields=gone)
    assert running.store.schedules.get("ann", "invoice") is None
    expect(desk.main).to_contain_text("deleted")
    for verb, why in (
        ("resume_schedule", "it is over"),
        ("run_schedule", "once more"),
        ("change_schedule", "asked"),
        ("delete_schedule", "ended"),
    ):
        desk.recorded(verb, why)


def test_a_spread_is_told_and_a_change_of_other_fields_keeps_it(desk: Desk) -> None:
    late = "It starts up to 2 hours later, each time by the same span."
    desk.go("schedule/bob/spread", late)
    fields = {"Cron": "0 11 * * *"}
    desk.act(
        "Change",
        "Change it",
        why="later",
        touches=f"At 11:00, every day, in UTC. {late}",
        fields=fields,
    )
    changed = record(desk.running, "bob", "spread")
    assert (changed.cron, changed.policies.spread) == ("0 11 * * *", 7_200)
    expect(desk.main).to_contain_text(late)


def test_a_policy_or_a_label_that_is_taken_out_goes_back_to_its_default(desk: Desk) -> None:
    running = desk.running
    running.operator("ann").change("digest", {"policies": {"spread": 60, "maxRuns": 5}})
    desk.go("schedule/ann/digest", "1 minute later")
    policies = running.operator("ann").get("digest").body["policies"]
    fields = {
        "Policies (JSON)": json.dumps(
            {name: one for name, one in policies.items() if name != "spread"}
        ),
        "Labels (JSON)": json.dumps({"floor": "2"}),
    }
    desk.act("Change", "Change it", why="not any more", touches="policies", fields=fields)
    changed = record(running, "ann", "digest")
    assert (changed.policies.spread, changed.policies.max_runs) == (0, 5)
    assert changed.labels == {"floor": "2"}
    expect(desk.main).not_to_contain_text("1 minute later")


def test_a_wrong_field_is_shown_beside_it_and_nothing_is_changed(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.press("Change")
    dialog = desk.page.get_by_role("dialog")
    cron = dialog.get_by_label("Cron", exact=True)
    cron.fill("75 * * * *")
    expect(cron).to_have_attribute("aria-invalid", "true")
    expect(dialog.locator("#act-cron-error")).to_contain_text("'75' is outside 0-59")
    dialog.get_by_label("Input (JSON)").fill("{")
    dialog.get_by_role("button", name="Change it").click()
    expect(dialog.locator("#act-input-error")).to_contain_text("JSON")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert record(desk.running, "ann", "invoice").cron == "30 6 * * *"


def test_what_is_wrong_inside_of_json_is_named(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.press("Change")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_label("Policies (JSON)").fill('{"spread": "soon", "retry": {"attempts": 0}}')
    error = dialog.locator("#act-policies-error")
    expect(error).to_contain_text("spread: expected a whole number from 0 to 86400, got 'soon'.")
    expect(error).to_contain_text("retry.attempts: expected a whole number from 1 to")
    dialog.get_by_label("Policies (JSON)").fill("[1]")
    expect(error).to_have_text("expected an object, got a list.")


def test_a_dialog_that_asks_for_a_name_does_nothing_without_it(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.press("Delete")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete it").click()
    expect(dialog).to_contain_text("Type invoice to go on.")
    desk.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert record(desk.running, "ann", "invoice").enabled


def test_times_are_backfilled_and_a_backfill_is_stopped_and_continued(desk: Desk) -> None:
    running = desk.running
    desk.go("schedule/ann/digest?at=2026-12-01T08:00:00Z", "Backfill this time")
    desk.act("Backfill this time", "Backfill", why="it matters", touches="1 time")
    found = operators(running).of("ann").backfills()["backfills"]
    assert [one["order"]["from"] for one in found] == ["2026-12-01T08:00:00Z"]
    desk.recorded("start_backfill", "it matters")
    desk.go("schedule/bob/ping", "stopped")
    desk.act("Continue", "Continue it", why="go on", within=desk.main)
    expect(desk.main).to_contain_text("running")
    desk.act("Stop", "Stop it", why="enough", within=desk.main)
    expect(desk.main).to_contain_text("stopped")
    desk.recorded("continue_backfill", "go on")
    desk.recorded("stop_backfill", "enough")


def test_a_row_that_cannot_be_read_is_mended(desk: Desk) -> None:
    running = desk.running
    desk.go("unreadable", "x y z")
    desk.act("Change", "Change it", why="a typo", fields={"Cron": "0 8 * * *"})
    expect(desk.main).to_contain_text("Every row can be read.")
    assert record(running, "cat", "broken").defect is None
    desk.go("schedule/cat/broken", "0 8 * * *")
    desk.act("Mend", "Mend it", why="to be sure")
    expect(desk.page.get_by_role("status").last).to_contain_text("Nothing was wrong with it.")
    desk.recorded("mend_schedule", "to be sure")


def test_a_static_schedule_is_paused_and_resumed(desk: Desk) -> None:
    desk.go("schedule//mailing%2Fnightly", "0 3 * * *")
    desk.act("Pause", "Pause it", why="the disk is full")
    assert not record(desk.running, "", "mailing/nightly").enabled
    desk.act("Resume", "Resume it", why="there is room")
    assert record(desk.running, "", "mailing/nightly").enabled
    desk.recorded("pause_static_schedule", "the disk is full")
    desk.recorded("resume_static_schedule", "there is room")


def test_one_occurrence_is_retried_cancelled_and_deleted(desk: Desk) -> None:
    running = desk.running
    desk.go("occurrences?user=ann&key=report", "out of paper")
    desk.act(RETRY, "Retry it", why="paper is there", touches="ann / report", within=first(desk))
    assert states(running, "ann", "report")["queued"] == 1
    desk.go("occurrences?user=ann&state=queued&key=report", "handed on")
    desk.act(CANCEL, "Cancel it", why="too late", within=first(desk))
    assert states(running, "ann", "report")["cancelled"] == 1
    desk.go("occurrences?user=ann&state=cancelled&key=report", "an operator cancelled it")
    desk.act(DELETE, "Delete it", why="tidy", within=first(desk))
    assert states(running, "ann", "report")["deleted"] == 1
    for verb, why in (
        ("retry_occurrence", "paper is there"),
        ("cancel_occurrence", "too late"),
        ("delete_occurrence", "tidy"),
    ):
        desk.recorded(verb, why)


def first(desk: Desk) -> Locator:
    """Return the first line of a list."""
    return desk.main.locator("tbody tr").first


def test_all_that_a_filter_names_are_retried_after_a_dry_run(desk: Desk) -> None:
    running = desk.running
    dead = states(running, "bob", "sync")["dead"]
    desk.go("occurrences?user=bob&key=sync&state=dead", "it failed for good")
    said = f"{dead} occurrences"
    desk.act("Retry all…", "Retry all of these", why="the bug is mended", touches=said)
    assert "dead" not in states(running, "bob", "sync")
    desk.recorded("retry_occurrences", "the bug is mended")


def test_a_reason_that_is_too_long_is_refused_at_its_field(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.press("Pause")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_label("Why", exact=True).fill("x" * 501)
    dialog.get_by_role("button", name="Pause it", exact=True).click()
    said = "has 501 characters; the most is 500."
    expect(dialog.locator("#act-why-error")).to_have_text(said)


def test_an_action_that_cannot_be_is_refused_before_it_is_tried(desk: Desk) -> None:
    desk.go("occurrences?user=cat&state=dead", "poisoned")
    desk.press(RETRY, first(desk))
    dialog = desk.page.get_by_role("dialog")
    expect(dialog.locator(".touches")).to_contain_text("nothing:")
    dialog.get_by_role("button", name="Retry it").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    assert states(desk.running, "cat", "broken")["dead"] == 1


def test_groups_are_paused_resumed_limited_and_let_go(desk: Desk) -> None:
    running = desk.running
    desk.go("orders", "a noisy neighbour")
    scope = {"Scope": "flow:mailing", "Note": "the printer is down"}
    desk.act("Pause a group", "Pause", why="stop it", touches="of the flow mailing", fields=scope)
    expect(desk.main).to_contain_text("the printer is down")
    now = running.store.now()
    assert running.store.pauses.current(now).holding("anybody", "mailing", now)
    desk.act("Resume flow:mailing", "Resume", why="go", touches="of the flow mailing")
    expect(desk.main.get_by_role("button", name="Resume flow:mailing")).to_be_hidden()
    given = {"Scope": "user:ann", "At once": "3", "Begins": "10", "in each": "hour"}
    desk.act("Limit a group", "Limit", why="too loud", touches="of ann", fields=given)
    expect(desk.main).to_contain_text("0 of 10 an hour")
    desk.act("Change the limit of user:ann", "Limit", why="less", fields={"At once": "2"})
    expect(desk.main).to_contain_text("0 of 2")
    desk.act("Lift the limit of user:ann", "Lift it", why="quiet now")
    expect(desk.main.get_by_role("button", name="Lift the limit of user:ann")).to_be_hidden()
    for verb, why in (
        ("pause_group", "stop it"),
        ("resume_group", "go"),
        ("set_limit", "too loud"),
        ("set_limit", "less"),
        ("lift_limit", "quiet now"),
    ):
        desk.recorded(verb, why)


def test_a_number_that_is_none_lifts_no_limit(desk: Desk) -> None:
    desk.go("orders", "a noisy neighbour")
    desk.press("Change the limit of user:bob")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_label("At once", exact=True).fill("")
    dialog.get_by_label("At once", exact=True).press_sequentially("2e")
    dialog.get_by_label("Begins", exact=True).fill("ten")
    dialog.get_by_role("button", name="Limit", exact=True).click()
    for name in ("parallel", "rate"):
        said = "expected a whole number, got text."
        expect(dialog.locator(f"#act-{name}-error")).to_have_text(said)
    found = operators(desk.running).limits()["limits"]
    assert [one["parallel"] for one in found if one["scope"] == "user:bob"] == [2]


def test_a_time_that_is_half_filled_in_makes_no_pause_without_an_end(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    desk.press("Pause")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_label("Until (UTC)").press_sequentially("12")
    dialog.get_by_role("button", name="Pause it", exact=True).click()
    expect(dialog.locator("#act-until-error")).to_contain_text("not complete")
    assert record(desk.running, "ann", "invoice").enabled
    dialog.get_by_label("Until (UTC)").fill("2026-12-24T00:00:00")
    dialog.get_by_role("button", name="Pause it", exact=True).click()
    expect(dialog).to_be_hidden()
    paused = record(desk.running, "ann", "invoice").pause
    assert paused
    assert paused.until


def test_for_a_user_a_schedule_and_jobs_are_made(desk: Desk) -> None:
    running = desk.running
    desk.go("schedules?user=dan", "No schedule")
    made = {"Key": "hello", "Cron": "0 7 * * *", "Flow and action": "mailing/send"}
    desk.act("New schedule", "Make it", why="asked by dan", touches="At 07:00", fields=made)
    expect(desk.page.get_by_role("heading", level=1)).to_have_text("dan / hello")
    assert record(running, "dan", "hello").cron == "0 7 * * *"
    desk.recorded("put_schedule", "asked by dan")
    desk.go("schedules?user=dan", "hello")
    work = {"flow": "mailing", "action": "send", "input": {}, "delay": 3600}
    jobs = {"One job, or a list of up to 500 (JSON)": json.dumps([work, work])}
    desk.act("Enqueue jobs", "Enqueue", why="two mails", touches="2 new jobs", fields=jobs)
    found = list(running.operator("dan").jobs(state="pending"))
    assert len(found) == 2
    desk.recorded("create_jobs", "two mails")
    desk.go(f"job/dan/{found[0]['id']}", "planned")
    desk.act("Cancel", "Cancel it", why="not that one")
    expect(desk.main).to_contain_text("an operator cancelled it")
    desk.recorded("cancel_job", "not that one")


def test_of_a_batch_that_is_partly_refused_each_refusal_is_shown(desk: Desk) -> None:
    desk.go("jobs?user=ann", "Enqueue jobs")
    desk.press("Enqueue jobs")
    dialog = desk.page.get_by_role("dialog")
    work = {"flow": "mailing", "action": "send", "input": {}, "delay": 3600}
    jobs = json.dumps([work, {**work, "action": "nope"}])
    dialog.get_by_label("One job, or a list of up to 500 (JSON)").fill(jobs)
    dialog.get_by_role("button", name="Enqueue", exact=True).click()
    expect(dialog.locator("#act-jobs-error")).to_contain_text("1 job enqueued; refused: 2:")


def test_all_data_of_a_user_are_exported_and_erased(desk: Desk) -> None:
    desk.go("schedules?user=cat", "moved")
    with desk.page.expect_download() as got:
        desk.act("Export", "Export", why="cat asks for it")
    kept = json.loads(got.value.path().read_text())
    assert (kept["user"], got.value.suggested_filename) == ("cat", "cat.json")
    assert {one["key"] for one in kept["schedules"]} >= {"moved", "broken"}
    desk.recorded("export_user", "cat asks for it")
    sure = {"Type cat to go on": "cat"}
    desk.act("Erase", "Erase for good", why="cat leaves", touches="of cat", fields=sure)
    expect(desk.main).to_contain_text("No schedule")
    assert list(desk.running.operator("cat").list(state="all")) == []
    desk.recorded("erase_user", "cat leaves")


def test_a_restore_from_a_backup_is_recovered(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = desk.running.store, desk.running.clock.now
    kept = KeptWitness()
    kept.write(now - DAY // 24)
    monkeypatch.setattr(wiring, "witness", lambda: kept)
    store.shelf.keep_note(NOTE, str(now - DAY))
    found = {"noted": now - DAY, "witnessed": now - DAY // 24, "found_at": now}
    store.shelf.keep_note(NOTE_OF_RESTORE, json.dumps(found))
    desk.go("", "The database is a backup")
    desk.act("Recover", "Recover", why="the disk died", touches="schedules")
    expect(desk.main).not_to_contain_text("The database is a backup")
    desk.recorded("recover_store", "the disk died")


def test_a_name_that_no_path_can_have_is_refused_in_the_dialog(desk: Desk) -> None:
    desk.go("schedules", "digest")
    desk.press("New schedule")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_label("User", exact=True).fill("zed")
    dialog.get_by_label("Key", exact=True).fill("..")
    dialog.get_by_role("button", name="Make it", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text('".." is no name')
    dialog.get_by_label("Key", exact=True).fill("digest")
    dialog.get_by_role("button", name="Make it", exact=True).click()
    expect(dialog).to_be_hidden()
    assert desk.running.store.schedules.get("zed", "digest")


def test_a_refusal_is_told_though_its_dialog_was_closed_meanwhile(desk: Desk) -> None:
    desk.go("schedule/ann/invoice", "30 6 * * *")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    desk.page.route("**/run", hold)
    desk.press("Run now")
    dialog = desk.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Run it now", exact=True).click()
    expect(dialog).to_contain_text("Working")
    dialog.evaluate("one => one.close()")  # as a browser does at the second Escape
    desk.running.operator("ann").delete("invoice")
    held[0].continue_()
    said = desk.page.locator(".toast")
    expect(said).to_have_text("Run ann / invoice now: No such schedule.")


def test_a_name_with_a_slash_behind_it_finds_that_users_schedules(desk: Desk) -> None:
    find = desk.page.get_by_role("searchbox", name="Find a user, a schedule or an id")
    find.fill("ann/")
    find.press("Enter")
    expect(desk.main).to_contain_text("Schedules of ann")
    for address in ("schedule/ann/..", "job/ann/..", "occurrence/.."):
        desk.page.goto(f"{desk.running.stack.server.url}/console#/{address}")
        expect(desk.main.get_by_role("alert")).to_contain_text('".." is no name')
    desk.go("schedule/ann/digest?at=yesterday", "expected a time like")
    expect(desk.main).to_contain_text("0 9 * * *")


def test_a_readers_clock_that_is_ahead_keeps_nobody_from_a_backfill(desk: Desk) -> None:
    desk.go("schedule/bob/crm", "@hourly")
    desk.page.clock.run_for(20_000)
    desk.press("Backfill")
    dialog = desk.page.get_by_role("dialog")
    expect(dialog.locator(".touches")).to_contain_text("3 times")
    expect(dialog.locator(".error")).to_have_count(0)
