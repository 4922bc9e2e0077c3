"""Quotas hold however a schedule is asked for."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from duetick.api.routes import OWN, ROUTES, Route
from duetick.client import ApiError, Client, Fields
from duetick.core.accepting import Quotas, find_refusals
from duetick.core.agents import AgentSchedules
from duetick.core.flows import Flows
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidSchedule, QuotaReached, RateReached
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from duetick.runtime import wiring
from flows.reminders import reminders

from tests.integration.api.asking import HELLO, refused
from tests.integration.local_product import NINE, Product, set_again, tick_seldom

HOURLY = "0 * * * *"
HALF_A_YEAR = 183 * 86_400_000
DENSE = [
    "0,59 * * * *",
    "*/7 * * * *",
    "rate(59 minutes)",
    "days(a: mon 09:00; b: mon 09:30)",
    "0,59 0,23 1,31 1,12 *",
    "cron(0/30 9 ? * MON *)",
    "* * 29 2 *",
    "cron(0/30 9 1 1 ? 2099)",
]


@pytest.fixture
def hourly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an hour the smallest gap of the deployment."""
    set_again(monkeypatch, "QUOTA_GAP_SECONDS", "3600")


@pytest.mark.parametrize("cron", DENSE)
def test_no_way_to_write_it_evades_the_smallest_gap(
    client: Client, hourly: None, cron: str
) -> None:
    body = HELLO | {"cron": cron}
    assert refused(client.create, body) == (409, "quota_exceeded")
    assert refused(client.put, "hello", body) == (409, "quota_exceeded")
    client.put("hello", HELLO)
    assert refused(client.change, "hello", {"cron": cron}) == (409, "quota_exceeded")
    assert client.get("hello").body["cron"] == HELLO["cron"]


def test_a_policy_alone_does_not_evade_the_smallest_gap(client: Client, hourly: None) -> None:
    """If clocks go back by half an hour, both passes of one local hour are 30 minutes apart."""
    body = HELLO | {"cron": "45 1 * * *", "timezone": "Australia/Lord_Howe"}
    client.put("hello", body)
    both: Fields = {"policies": {"repeat": "both"}}
    assert refused(client.change, "hello", both) == (409, "quota_exceeded")


def test_the_smallest_gap_is_judged_from_the_first_fire_of_its_window_on() -> None:
    """Between 28 February and 1 March lies one day, in the leap year 2028 it is two."""
    flows, quotas = Flows({"reminders": reminders}), Quotas(gap_seconds=36 * 3_600)
    now = Schedule("ann", "k", "0 9 1,28 * *", "reminders", "remind", input={"text": "x"})
    (refusal,) = find_refusals(now, flows, quotas, NINE)
    assert "fires twice within 86400 s" in str(refusal)
    later = replace(now, policies=Policies(starts_at=NINE + HALF_A_YEAR))
    assert not find_refusals(later, flows, quotas, NINE)


@pytest.mark.parametrize(
    ("gap", "cron", "taken"),
    [
        (60, "rate(30 seconds)", True),
        (61, "rate(30 seconds)", False),
        (3_600, "rate(1 second)", False),
        (1, "rate(30 seconds)", True),
    ],
)
def test_a_rate_below_a_minute_is_for_deployments_that_ask_for_no_more_than_a_minute(
    gap: int, cron: str, taken: bool
) -> None:
    flows = Flows({"reminders": reminders})
    schedule = Schedule("ann", "k", cron, "reminders", "remind", input={"text": "x"})
    found = find_refusals(schedule, flows, Quotas(gap_seconds=gap), NINE)
    settings = [each.setting for each in found if isinstance(each, QuotaReached)]
    assert settings == ([] if taken else ["DUETICK_QUOTA_GAP_SECONDS"])
    assert len(found) == len(settings)


def test_t13_a_change_to_what_is_tighter_than_the_cadence_is_warned_of(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_seldom(running, monkeypatch)
    client.put("hello", HELLO)
    assert "warning" not in client.change("hello", {"labels": {"a": "b"}}).headers
    changed = client.change("hello", {"cron": "*/5 * * * *"})
    assert "each 1800 s" in changed.headers["warning"]
    assert changed.headers["warning"] == f'299 duetick "{changed.warning}"'
    assert not client.get("hello").warning


def test_t13_a_repeat_of_what_is_tighter_than_the_cadence_is_warned_of_again(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_seldom(running, monkeypatch)
    body = HELLO | {"cron": "*/5 * * * *"}
    first, again = (client.create(body, idempotency_key="once") for _ in range(2))
    assert first.body["key"] == again.body["key"]
    assert first.warning == again.warning != ""


def test_creations_at_once_do_not_exceed_the_quota(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_SCHEDULES", "3")

    def create(number: int) -> str:
        try:
            return str(running.client().put(f"k{number}", HELLO).status)
        except ApiError as problem:
            return problem.code

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(create, range(9)))
    assert answers == ["201"] * 3 + ["quota_exceeded"] * 6
    assert len(list(running.client().list())) == 3


@pytest.fixture
def thrice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a user three changes of schedules in a minute."""
    set_again(monkeypatch, "QUOTA_WRITES", "3")


WRITES: dict[str, Callable[[Client], object]] = {
    "create": lambda client: client.create(HELLO),
    "put": lambda client: client.put("hello", HELLO),
    "change": lambda client: client.change("hello", {"labels": {"a": "b"}}),
    "pause": lambda client: client.pause("hello"),
    "resume": lambda client: client.resume("hello"),
    "delete": lambda client: client.delete("hello"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_more_writes_than_a_minute_may_have_are_refused_until_it_is_over(
    running: Product, client: Client, thrice: None, write: Callable[[Client], object]
) -> None:
    running.operator("you").put("hello", HELLO)
    for number in range(3):
        client.put(f"k{number}", HELLO)
    running.clock.now += 12_300
    told = r"change schedules 3 times in a minute.* 48 s"
    with pytest.raises(ApiError, match=told) as refusal:
        write(client)
    assert (refusal.value.status, refusal.value.code) == (429, "too_many_writes")
    assert client.get("hello").body["cron"] == HELLO["cron"]
    assert len(list(client.list())) == 4
    running.client("bob").put("hello", HELLO)
    running.clock.now += 48_000
    write(client)


def test_a_write_beyond_the_limit_is_told_when_to_come_again(
    running: Product, client: Client, thrice: None
) -> None:
    for number in range(3):
        client.put(f"k{number}", HELLO)
    connection = HTTPConnection(urlsplit(running.stack.server.url).netloc, timeout=60)
    token = {"Authorization": f"Bearer {running.stack.token}"}
    connection.request("DELETE", "/api/schedules/k0", headers=token)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert (answer.status, answer.headers["Retry-After"]) == (429, "60")
    assert (told["limit"], told["value"]) == ("writes", 3)


def test_what_is_not_there_counts_as_a_write_too(client: Client, thrice: None) -> None:
    for _ in range(3):
        assert refused(client.delete, "none") == (404, "schedule_not_found")
    assert refused(client.delete, "none") == (429, "too_many_writes")


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.writes and OWN in route.bases and not route.of_all],
    ids=lambda route: f"{route.method} {route.path}",
)
@pytest.mark.parametrize("body", ["{", '{"cron": 7, "zz": 1}', "x" * 300_000])
def test_what_is_refused_for_its_shape_counts_as_a_write_too(
    running: Product, thrice: None, route: Route, body: str
) -> None:
    path = f"{OWN}{route.path.replace('{key}', 'hello')}"
    for _ in range(3):
        assert running.call(route.method, path, body)[0] in (400, 404, 413)
    assert running.call(route.method, path, body)[0] == 429


@pytest.mark.parametrize("body", ["{", "x" * 300_000, {"zz": 1}, HELLO | {"cron": "@daily"}])
def test_a_known_idempotency_key_with_another_body_counts_as_a_write_too(
    running: Product, client: Client, thrice: None, body: object
) -> None:
    client.create(HELLO, idempotency_key="order-7")
    key = {"Idempotency-Key": "order-7"}
    for _ in range(2):
        assert running.call("POST", "/api/schedules", body, headers=key)[0] in (400, 409, 413)
    assert running.call("POST", "/api/schedules", body, headers=key)[0] == 429
    assert client.create(HELLO, idempotency_key="order-7").status == 201


def test_what_an_agent_asks_for_in_vain_counts_as_a_write_too(
    running: Product, thrice: None
) -> None:
    flows = Flows({"reminders": reminders})
    own = UserSchedules(running.store, flows, "ann", running.clock, wiring.quotas())
    agent = AgentSchedules(own, "reminders")
    for _ in range(3):
        with pytest.raises(InvalidSchedule):
            agent.create("k", cron="no cron", action="remind")
    with pytest.raises(RateReached):
        agent.create("k", cron="@daily", action="remind", input={"text": "x"})


def test_what_an_operator_writes_is_no_write_of_the_users(
    running: Product, client: Client, thrice: None
) -> None:
    operator = running.operator("you")
    for number in range(5):
        operator.put(f"k{number}", HELLO)
    for number in range(3):
        client.delete(f"k{number}")
    assert refused(client.delete, "k3") == (429, "too_many_writes")
    operator.delete("k3")


def test_a_repeated_creation_beyond_the_limit_is_told_what_it_made(
    client: Client, thrice: None
) -> None:
    made = client.create(HELLO, idempotency_key="order-7")
    for number in range(2):
        client.put(f"k{number}", HELLO)
    assert client.create(HELLO, idempotency_key="order-7").body["key"] == made.body["key"]
    assert refused(client.create, HELLO, idempotency_key="order-8") == (429, "too_many_writes")


@pytest.mark.parametrize(("user", "made"), [("ann", 3), ("flow:reminders", 5)])
def test_an_agent_writes_as_often_as_its_user_and_a_flow_as_often_as_it_likes(
    running: Product, thrice: None, user: str, made: int
) -> None:
    flows = Flows({"reminders": reminders})
    own = UserSchedules(running.store, flows, user, running.clock, wiring.quotas())
    agent = AgentSchedules(own, "reminders")
    with suppress(RateReached):
        for number in range(5):
            agent.create(f"k{number}", cron="@daily", action="remind", input={"text": "x"})
    assert len(list(agent.list())) == made
