"""T-12: trouble is told on the chosen bus, a mass as one event; a bus that fails costs nothing."""

import json
import logging
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError
from botocore.session import get_session
from duetick.core.notices import TITLES, Notice, Notices, Subject
from duetick.core.store import Store
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.runtime import announcing, wiring
from duetick.runtime.announcing import announce, announce_alone
from duetick.runtime.settings import Settings

from tests.integration.events.recorded import Handle, event
from tests.integration.events.test_logs import (
    an_audit_of_what_is_lost,
    an_audit_of_what_never_fired,
)
from tests.integration.local_product import NINE, Clock

Received: TypeAlias = Callable[[], list[dict[str, Any]]]
DEAD = Occurrence(
    "ann", "k", "* * * * *", None, NINE, flow="mail", state=State.DEAD, reason=Reason.FAILED
)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Received:
    """The bus `operations`, behind botocore's own client: it checks and writes each request."""
    monkeypatch.setenv("DUETICK_EVENT_BUS", "operations")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    client = get_session().create_client("events", region_name="eu-central-1")
    put: list[dict[str, Any]] = []

    def take(params: dict[str, Any], **_: object) -> tuple[AWSResponse, dict[str, object]]:
        entries = json.loads(params["body"])["Entries"]
        assert {one["EventBusName"] for one in entries} == {"operations"}
        put.extend(entries)
        told = {"FailedEntryCount": 0, "Entries": [{"EventId": "x"} for _ in entries]}
        return AWSResponse(params["url"], 200, HTTPHeaders(), None), told

    def receive() -> list[dict[str, Any]]:
        found = [
            {
                "source": one["Source"],
                "detail-type": one["DetailType"],
                "detail": json.loads(one["Detail"]),
            }
            for one in put
        ]
        put.clear()
        return found

    hook: Any = take
    client.meta.events.register("before-call.events.PutEvents", hook)
    monkeypatch.setattr(announcing, "client_of", lambda *_, **__: client)
    return receive


def of(events: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Title, flow and count of each."""
    told = [(one["detail-type"], one["detail"]["flow"], one["detail"]["count"]) for one in events]
    return sorted(told)


def test_t12_a_tick_tells_of_a_mass_in_one_event(
    handle: Handle, store: Store, clock: Clock, received: Received
) -> None:
    clock.now = NINE
    for number in range(30):
        row = IndexRow("ann", f"k{number:02}", "99 * * * *", None, NINE, flow="mail")
        store.index.upsert(row)
    assert handle("tick", event("scheduler"))["poisoned"] == 30
    (told,) = received()
    assert (told["source"], told["detail-type"]) == ("duetick", "Rows cannot be read")
    assert (told["detail"]["count"], len(told["detail"]["first"])) == (30, 20)
    assert handle("tick", event("scheduler"))["poisoned"] == 0
    assert received() == []


def test_t12_the_recorded_event_is_what_a_tick_puts(
    handle: Handle, store: Store, clock: Clock, received: Received
) -> None:
    clock.now = NINE
    store.index.upsert(IndexRow("ann", "weekly", "0 9 * * *", None, NINE, flow="digests"))
    (claimed,) = store.index.claim_due(NINE)
    clock.now = NINE + 4 * 3_600_000
    handle("tick", event("scheduler"))
    (told,) = [one for one in received() if one["detail-type"] == TITLES["dead"]]
    recorded = event("occurrences-died")
    assert (told["source"], told["detail-type"]) == (recorded["source"], recorded["detail-type"])
    for detail in (told["detail"], recorded["detail"]):
        for name in ("by", "at", "stack", "look"):
            assert detail.pop(name)
        detail["first"][0].pop("occurrence")
    assert told["detail"] == recorded["detail"]
    assert claimed.id


def test_t12_the_hour_tells_what_it_finds(
    handle: Handle,
    store: Store,
    clock: Clock,
    received: Received,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = store, clock, monkeypatch
    handle("migrate", an_audit_of_what_never_fired(scene))
    assert of(received()) == [("Fire times do not add up", "", 1)]
    clock.now = NINE - 1_800_000
    handle("migrate", an_audit_of_what_is_lost(scene))
    assert ("Schedules have no row", "reminders", 1) in of(received())


def test_an_idle_tick_makes_no_client_and_no_notice(
    handle: Handle, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be told")

    monkeypatch.setattr(announcing, "client_of", fail)
    handle("tick", event("scheduler"))
    assert wiring.notices.cache_info().currsize == 0


def test_a_tick_that_cannot_claim_tells_what_it_knew(
    handle: Handle, store: Store, clock: Clock, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = NINE
    store.index.upsert(IndexRow("ann", "k", "99 * * * *", None, NINE))
    claim = store.index.claim_due

    def claim_and_fail(
        now: int, limit: int, *, on_poisoned: Callable[[Occurrence], object], **_: object
    ) -> NoReturn:
        claim(now, limit, on_poisoned=on_poisoned)
        raise StoreUnavailable("not now")

    monkeypatch.setattr(store.index, "claim_due", claim_and_fail)
    with pytest.raises(StoreUnavailable):
        handle("tick", event("scheduler"))
    assert of(received()) == [("Rows cannot be read", "", 1)]


def test_t12_deaths_that_no_tick_tells_are_one_event_a_minute_of_a_flow(
    handle: Handle, store: Store, clock: Clock, received: Received
) -> None:
    settings = wiring.settings()
    for flow in ("mail", "other", "mail", "mail"):
        announce_alone("dead", flow, Subject("ann", "k"), settings, store)
    assert of(received()) == [("Occurrences died", "mail", 1), ("Occurrences died", "other", 1)]
    clock.now += 60_000
    announce_alone("dead", "mail", Subject("ann", "k"), settings, store)
    assert of(received()) == [("Occurrences died", "mail", 1)]


class Bus:
    """A client whose answers are given: the number of the entries that fail, or an error."""

    def __init__(self, *answers: list[int] | Exception) -> None:
        self._answers = list(answers)
        self.calls: list[list[str]] = []

    def put_events(self, **given: list[dict[str, str]]) -> dict[str, object]:
        entries = given["Entries"]
        self.calls.append([json.loads(one["Detail"])["flow"] for one in entries])
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        told = [
            {"ErrorCode": "ThrottlingException"} if at in answer else {"EventId": "x"}
            for at in range(len(entries))
        ]
        return {"FailedEntryCount": len(answer), "Entries": told}


def put(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, flows: int, seconds: float = 60.0
) -> list[list[str]]:
    """Tell of a death in each flow. Return the flows of each call."""
    notices = Notices()
    for number in range(flows):
        notices.add("dead", f"f{number:02}", Subject("ann", "k"))
    settings = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_EVENT_BUS": "operations"})
    monkeypatch.setattr(announcing, "client_of", lambda *_, **__: bus)
    announce(notices.take(), settings, NINE, seconds, lambda: 0.0)
    return bus.calls


def lost(caplog: pytest.LogCaptureFixture) -> list[tuple[object, object]]:
    """Flow and reason of each event that the log says was not put."""
    lines = [vars(one) for one in caplog.records if vars(one).get("action") == "event_failed"]
    return [(one["flow"], one["why"]) for one in lines]


def test_events_are_put_by_tens(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = put(Bus([], [], []), monkeypatch, 23)
    assert [len(one) for one in calls] == [10, 10, 3]
    assert [name for call in calls for name in call] == [f"f{number:02}" for number in range(23)]


def test_what_was_not_put_is_put_once_more_and_then_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = put(Bus([1, 2], [0]), monkeypatch, 4)
    assert calls == [["f00", "f01", "f02", "f03"], ["f01", "f02"]]
    assert lost(caplog) == [("f01", "ThrottlingException")]


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (ClientError({"Error": {"Code": "AccessDenied"}}, "PutEvents"), "AccessDenied"),
        (OSError("password=canary"), "OSError"),
    ],
)
def test_a_bus_that_cannot_be_reached_is_a_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    problem: Exception,
    why: str,
) -> None:
    assert len(put(Bus(problem, problem), monkeypatch, 1)) == 2
    assert lost(caplog) == [("f00", why)]
    assert "canary" not in caplog.text


def test_a_bus_is_not_waited_for_when_no_time_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert put(Bus(), monkeypatch, 1, seconds=3.9) == []
    assert lost(caplog) == [("f00", "no time was left")]


def test_whatever_breaks_no_tick_fails_by_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_EVENT_BUS": "operations"})
    broken = Notice("dead", "mail", first=[Subject("ann", "k", "", 10**30)])
    announce([broken], settings, NINE, 60.0)
    assert [vars(one)["action"] for one in caplog.records] == ["event_failed"]


def test_an_event_of_the_local_stack_is_a_line_of_its_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_LOCAL": "1"})
    notices = Notices()
    notices.tell("dead", DEAD)
    with caplog.at_level(logging.WARNING):
        announce(notices.take(), settings, NINE, 60.0)
    (line,) = caplog.records
    assert vars(line)["action"] == "event"
    assert line.getMessage() == (
        "event: Occurrences died (1). See: duetick occurrences list --state dead --flow mail "
        "--from 2026-12-01T09:00:00Z; duetick schedules history k --user ann"
    )


def test_without_a_bus_nothing_is_told(
    handle: Handle, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.now = NINE
    store.index.upsert(IndexRow("ann", "k", "99 * * * *", None, NINE))
    assert handle("tick", event("scheduler"))["poisoned"] == 1
    wiring.tell_alone("dead", DEAD)
    assert wiring.notices.cache_info().currsize == 0
    assert not {"event", "event_failed"} & {vars(one).get("action") for one in caplog.records}
