"""M-06, J-07: operators pause and resume a static schedule, over the API and by the command."""

import json

import pytest
from duetick.cli.main import main
from duetick.client import ApiError
from duetick.core.static import register
from duetick.domain.schedule import Schedule
from duetick.operators import Operators

from tests.integration.local_product import NINE, Product


@pytest.fixture
def office(anywhere: Product) -> Operators:
    """The operators' view, of a deployment with one static schedule."""
    declared = Schedule("", "reminders/nightly", "0 9 * * *", "reminders", "remind")
    register(anywhere.store, [declared], "")
    stack = anywhere.stack
    return Operators(stack.server.url, token=stack.operator, why="the bank is down")


def is_active(office: Operators) -> bool:
    (one,) = office.schedules()
    return one["state"] == "active"


def test_m06_operators_pause_and_resume_a_static_schedule(office: Operators) -> None:
    paused = office.pause_static("reminders", "nightly", note="later")
    assert (paused["key"], paused["state"]) == ("reminders/nightly", "paused")
    assert (paused["nextFireAt"], is_active(office)) == (None, False)
    resumed = office.resume_static("reminders", "nightly")
    assert (resumed["state"], resumed["nextFireAt"]) == ("active", "2026-12-01T09:00:00Z")
    until = office.pause_static("reminders", "nightly", until="2026-12-03T00:00:00Z")
    assert until["nextFireAt"] == "2026-12-03T09:00:00Z"


def test_o01_both_are_recorded(office: Operators) -> None:
    office.pause_static("reminders", "nightly")
    office.resume_static("reminders", "nightly")
    assert {(one["verb"], one["target"], one["why"]) for one in office.operations()} == {
        ("resume_static_schedule", "reminders/nightly", "the bank is down"),
        ("pause_static_schedule", "reminders/nightly", "the bank is down"),
    }


def test_m06_a_static_schedule_is_read_and_explained_as_any_other(
    office: Operators, anywhere: Product
) -> None:
    anywhere.clock.now = NINE
    anywhere.tick()
    nightly = office.static("reminders")
    shown = nightly.get("nightly").body
    assert (shown["user"], shown["key"]) == ("", "reminders/nightly")
    assert shown["cron"] == "0 9 * * *"
    (line,) = nightly.history("nightly", state="dead")
    assert (line["reason"], line["nominalFireTime"]) == ("rejected", "2026-12-01T09:00:00Z")
    assert nightly.explain("nightly", at="2026-12-01T09:00:00Z")["verdict"] == "rejected"
    found = nightly.timeline("nightly", until="2026-12-03T00:00:00Z")
    assert [one["at"] for one in found["entries"]] == ["2026-12-01T09:00:00Z"]
    assert found["ahead"] == ["2026-12-02T09:00:00Z"]
    with pytest.raises(ApiError) as problem:
        nightly.get("weekly")
    assert (problem.value.status, problem.value.code) == (404, "schedule_not_found")


def test_v02_the_command_explains_a_static_schedule_in_the_same_words(
    office: Operators,
    anywhere: Product,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", anywhere.stack.operator)
    place = ["--flow", "reminders", "--url", anywhere.stack.server.url]
    assert main(["schedules", "explain", "nightly", *place]) == 0
    said = office.static("reminders").explain("nightly")["said"]
    assert capsys.readouterr().out.splitlines() == said
    assert main(["schedules", "get", "nightly", *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == "reminders/nightly"


def test_m06_one_that_is_not_there_is_told(office: Operators) -> None:
    with pytest.raises(ApiError) as found:
        office.resume_static("reminders", "weekly")
    assert (found.value.status, found.value.code) == (404, "schedule_not_found")


def test_j07_the_command_does_the_same(
    office: Operators,
    anywhere: Product,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", anywhere.stack.operator)
    whom = ["--url", anywhere.stack.server.url, "--json"]
    named = ["nightly", "--flow", "reminders", *whom]
    assert main(["schedules", "pause", *named, "--note", "later"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "paused"
    assert main(["schedules", "resume", *named]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "active"
    assert is_active(office)
    assert main(["schedules", "pause", *named, "--user", "ann"]) == 2
