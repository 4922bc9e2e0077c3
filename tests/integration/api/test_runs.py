"""Runs by hand, and their repeats with the same Idempotency-Key."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from duetick.api.views import RunView
from duetick.client import ApiError, Client
from duetick.core.context import Context
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flow, Flows
from duetick.core.runs import run_by_hand
from duetick.domain.expression import zones
from duetick.domain.schedule import NewOccurrence
from duetick.ports import Delivered
from duetick.runtime import wiring
from duetick.transports.inline import InlineTransport
from flows import reminders

from tests.integration.api.asking import DAY, HELLO, MINUTE, refused
from tests.integration.local_product import NINE, Product, set_again


class Answering:
    """A transport that answers, and begins nothing yet."""

    def __init__(self, status: int, detail: str = "") -> None:
        self.answer = Delivered(status, detail)

    def deliver(self, occurrence: NewOccurrence, *, timeout: float) -> Delivered:
        """See `Transport`."""
        return self.answer

    def close(self) -> None:
        """See `Transport`."""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the occurrences of which the action ran. It fails if its text says so."""
    seen: list[str] = []

    def remind(given: reminders.Reminder, ctx: Context) -> None:
        seen.append(ctx.occurrence_id)
        if given.text == "fail":
            raise RuntimeError("told to")

    known = reminders.reminders.actions
    monkeypatch.setitem(known, "remind", replace(known["remind"], run=remind))
    return seen


def test_a_run_by_hand_is_an_occurrence_of_its_own(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    ran = client.run("hello")
    assert ran["origin"].startswith("run:")
    assert ran["state"] == "succeeded"
    running.clock.now = NINE
    assert running.tick()["delivered"] == 1
    origins = {line["origin"].partition(":")[0] for line in client.history("hello")}
    assert origins == {"run", "schedule"}


def test_a_run_of_what_is_paused_is_refused(client: Client) -> None:
    client.put("hello", HELLO)
    client.pause("hello")
    assert refused(client.run, "hello") == (409, "schedule_paused")


def test_a_run_of_what_cannot_be_read_says_what_is_wrong_with_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put("hello", HELLO | {"timezone": "Europe/Berlin"})
    monkeypatch.setattr(zones, "ZONE_NAMES", zones.ZONE_NAMES - {"Europe/Berlin"})
    with pytest.raises(ApiError, match="'Europe/Berlin' is no IANA zone") as problem:
        client.run("hello")
    assert (problem.value.status, problem.value.code) == (400, "invalid_schedule")
    assert [each["field"] for each in problem.value.problems] == ["/timezone"]
    assert list(client.history("hello")) == []


def test_a_run_whose_flow_is_gone_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.put("hello", HELLO)
    gone = Dispatcher(wiring.store(), Flows({"other": Flow("other")}), bool, wiring.store().now)
    monkeypatch.setattr(wiring, "runs", lambda: InlineTransport(gone))
    assert refused(client.run, "hello") == (404, "flow_not_found")


@pytest.mark.parametrize(
    ("dispatch", "said"),
    [
        (Answering(0, "ConnectionRefusedError"), "could not be reached"),
        (Answering(403, '{"message": "Forbidden"}'), "answered 403, and nothing was begun"),
        (Answering(404, '{"message": "Not Found"}'), "answered 404, and nothing was begun"),
        (Answering(500, '{"error": "resolver_failed"}'), "answered 500, and nothing was begun"),
    ],
)
def test_a_run_that_dispatch_did_not_begin_is_to_be_asked_for_again(
    client: Client, monkeypatch: pytest.MonkeyPatch, dispatch: Answering, said: str
) -> None:
    client.put("hello", HELLO)
    monkeypatch.setattr(wiring, "runs", lambda: dispatch)
    with pytest.raises(ApiError, match=said) as problem:
        client.run("hello")
    assert (problem.value.status, problem.value.code) == (503, "not_delivered")


def test_a_run_whose_action_raises_was_begun_all_the_same(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object, **__: object) -> None:
        raise RuntimeError("no mail server, password=hunter2")

    monkeypatch.setattr(reminders.logger, "info", raises)
    client.put("hello", HELLO)
    assert client.run("hello")["state"] == "dead"
    (line,) = client.history("hello")
    assert line["error"] == "The action failed."
    (line,) = running.operator("you").history("hello")
    assert line["error"] == "RuntimeError: no mail server, password=[withheld]"


def test_a_run_repeated_with_its_idempotency_key_runs_once(
    running: Product, client: Client, ran: list[str]
) -> None:
    client.put("hello", HELLO)
    first = client.run("hello", idempotency_key="order-7")
    running.clock.now += MINUTE
    assert client.run("hello", idempotency_key="order-7") == first
    assert client.run("hello", idempotency_key="order-8") != first
    assert client.run("hello") != first
    assert len(ran) == 3


def test_a_repeat_of_a_run_that_failed_tells_so_and_runs_nothing(
    running: Product, client: Client, ran: list[str]
) -> None:
    client.put("hello", HELLO | {"input": {"text": "fail"}})
    first = client.run("hello", idempotency_key="order-7")
    running.clock.now += MINUTE
    assert client.run("hello", idempotency_key="order-7") == first
    assert first["state"] == "dead"
    assert len(ran) == 1


def test_runs_at_once_with_one_idempotency_key_are_one(
    running: Product, client: Client, ran: list[str]
) -> None:
    client.put("hello", HELLO | {"policies": {"overlap": "allow"}})

    def run(number: int) -> RunView:
        running.clock.now += number
        return running.client().run("hello", idempotency_key="order-7")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(run, range(6)))
    assert len(ran) == 1
    assert len({answer["origin"] for answer in answers}) == 1


def test_an_idempotency_key_is_of_one_schedule_of_one_user(
    running: Product, client: Client, ran: list[str]
) -> None:
    for mine in (client, running.client("bob")):
        for key in ("hello", "other"):
            mine.put(key, HELLO)
            mine.run(key, idempotency_key="order-7")
    assert len(ran) == 4


def test_a_run_is_forgotten_a_day_after_its_idempotency_key_came(
    running: Product, client: Client, ran: list[str]
) -> None:
    client.put("hello", HELLO)
    client.run("hello", idempotency_key="order-7")
    running.clock.now += DAY + 1
    client.run("hello", idempotency_key="order-7")
    assert len(ran) == 2


def test_a_repeat_tells_of_its_run_among_many_others_and_in_a_pause(
    running: Product, client: Client, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetick.core.runs.AT_ONCE", 2)
    client.put("hello", HELLO | {"cron": "* * * * *"})
    first = client.run("hello", idempotency_key="order-7")
    for _ in range(5):
        running.clock.now += MINUTE
        running.tick()
    assert client.run("hello", idempotency_key="order-7") == first
    client.pause("hello")
    assert client.run("hello", idempotency_key="order-7") == first
    assert refused(client.run, "hello", idempotency_key="order-8") == (409, "schedule_paused")


@pytest.mark.parametrize("key", ["", "x" * 257, "tab\there"])
def test_an_idempotency_key_that_cannot_be_is_refused(client: Client, key: str) -> None:
    client.put("hello", HELLO)
    assert refused(client.run, "hello", idempotency_key=key)[0] == 400
    assert refused(client.create, HELLO, idempotency_key=key)[0] == 400


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a user two runs by hand in a minute."""
    set_again(monkeypatch, "QUOTA_RUNS", "2")


def test_more_runs_than_a_minute_may_have_are_refused_until_it_is_over(
    running: Product, client: Client, ran: list[str], twice: None
) -> None:
    for key in ("hello", "other"):
        client.put(key, HELLO)
        client.run(key)
    running.clock.now += 12_300
    with pytest.raises(ApiError, match=r"2 times in a minute.* 48 s") as told:
        client.run("hello")
    assert (told.value.status, told.value.code) == (429, "too_many_runs")
    status, body = running.call("POST", "/api/schedules/hello/run")
    assert (status, body["limit"], body["value"]) == (429, "runs", 2)
    running.clock.now += 48_000
    client.run("hello")
    assert len(ran) == 3


def test_what_an_operator_runs_is_no_run_of_the_users(
    running: Product, client: Client, ran: list[str], twice: None
) -> None:
    client.put("hello", HELLO)
    operator = running.operator("you")
    for _ in range(3):
        operator.run("hello")
    for _ in range(2):
        client.run("hello")
    assert refused(client.run, "hello") == (429, "too_many_runs")
    operator.run("hello")
    assert len(ran) == 6


def test_a_repeat_beyond_the_limit_is_told_of_its_run(
    client: Client, ran: list[str], twice: None
) -> None:
    client.put("hello", HELLO)
    first = client.run("hello", idempotency_key="order-7")
    client.run("hello", idempotency_key="order-8")
    assert client.run("hello", idempotency_key="order-7") == first
    assert refused(client.run, "hello", idempotency_key="order-9") == (429, "too_many_runs")
    assert len(ran) == 2


def test_runs_are_counted_for_each_user_and_only_those_that_could_be(
    running: Product, client: Client, ran: list[str], twice: None
) -> None:
    client.put("hello", HELLO)
    client.pause("hello")
    for _ in range(3):
        assert refused(client.run, "hello") == (409, "schedule_paused")
        assert refused(client.run, "none") == (404, "schedule_not_found")
    client.resume("hello")
    other = running.client("bob")
    other.put("hello", HELLO)
    for one in (client, other):
        one.run("hello")
        one.run("hello")
        assert refused(one.run, "hello") == (429, "too_many_runs")
    assert len(ran) == 4


@pytest.mark.parametrize(("status", "told"), [(202, "queued"), (0, None), (503, None)])
def test_a_run_that_an_invocation_of_its_own_will_begin_is_queued(
    running: Product, client: Client, status: int, told: str | None
) -> None:
    client.put("hello", HELLO)
    schedule = running.store.schedules.get("you", "hello")
    assert schedule
    answer = run_by_hand(running.store, Answering(status), schedule, NINE, at_most=1)
    assert answer.body.get("state") == told
    assert answer.status == (202 if told else 503)
