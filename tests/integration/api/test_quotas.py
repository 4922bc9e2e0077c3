"""Quotas hold however a schedule is asked for."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from duetick.client import ApiError, Client, Fields
from duetick.core.accepting import Quotas, check
from duetick.core.flows import Flows
from duetick.domain.errors import QuotaReached
from duetick.domain.schedule import Schedule
from flows.reminders import reminders

from tests.integration.api.asking import HELLO, refused
from tests.integration.local_product import NINE, Product, set_again

HOURLY = "0 * * * *"
DENSE = [
    "0,59 * * * *",
    "*/7 * * * *",
    "rate(59 minutes)",
    "days(a: mon 09:00; b: mon 09:30)",
    "0,59 0,23 1,31 1,12 *",
    "cron(0/30 9 ? * MON *)",
]


@pytest.fixture
def hourly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment in which an hour is the smallest gap."""
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
    """When clocks go back by half an hour, both passes of one local hour are 30 minutes apart."""
    body = HELLO | {"cron": "45 1 * * *", "timezone": "Australia/Lord_Howe"}
    client.put("hello", body)
    both: Fields = {"policies": {"repeat": "both"}}
    assert refused(client.change, "hello", both) == (409, "quota_exceeded")


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
    if taken:
        check(schedule, flows, Quotas(gap_seconds=gap), NINE)
    else:
        with pytest.raises(QuotaReached, match="DUETICK_QUOTA_GAP_SECONDS"):
            check(schedule, flows, Quotas(gap_seconds=gap), NINE)


def test_t13_a_change_to_what_is_tighter_than_the_cadence_is_warned_of(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "TICK_SECONDS", "1800")
    client.put("hello", HELLO)
    assert "warning" not in client.change("hello", {"labels": {"a": "b"}}).headers
    assert "each 1800 s" in client.change("hello", {"cron": "*/5 * * * *"}).headers["warning"]


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
