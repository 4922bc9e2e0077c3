"""The fifth document: durable jobs with retries, recurring ones, retention, and the night's
operator.

Its reader has tables of jobs, attempts, events, recurring jobs, workers and locks, and asks for the
counterpart of each. Each test is a section of that document, done on the running product, over HTTP
and at the operator's terminal.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from duetick import ActionFailed, Context, Flow
from duetick.cli.main import main
from duetick.client import Client, Fields
from duetick.core.flows import Flows
from duetick.core.purge import purge
from duetick.core.tick import run_tick
from duetick.domain.schedule import Json
from duetick.domain.workers import NamedLock
from duetick.runtime import wiring

from tests.delivery.ticking import Recorder
from tests.integration.local_product import NINE, Clock, Product, product

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
RETRIED: Fields = {
    "delivery": "at_least_once",
    "retry": {"attempts": 3, "backoff": "fixed", "first": 60},
}
CHARGE: Fields = {"flow": "orders", "action": "charge", "input": {"order": 7, "apiKey": "sesame"}}


class Orders:
    """A flow whose one action fails as long as the bank is away."""

    def __init__(self) -> None:
        self.bank_is_away = False
        self.charged: list[Json] = []
        orders = Flow("orders")
        orders.action("charge")(self.charge)
        self.flows = Flows({"orders": orders})

    def charge(self, given: Json, ctx: Context) -> None:
        del ctx
        if self.bank_is_away:
            raise ActionFailed("The bank did not answer.")
        self.charged.append(given)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Orders:
    made = Orders()
    monkeypatch.setattr(wiring, "flows", cache(lambda: made.flows))
    return made


@pytest.fixture
def running(orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The product with that flow, at nine."""
    del orders
    with product(f"sqlite:///{tmp_path}/jobs.db", Clock(NINE), monkeypatch) as made:
        yield made


@pytest.fixture
def ann(running: Product) -> Client:
    return running.client("ann")


Terminal = Callable[..., tuple[int, str]]


@pytest.fixture
def terminal(
    running: Product, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """Return an operator's terminal: it gives the exit code and the output of a command."""
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    monkeypatch.delenv("DUETICK_TOKEN", raising=False)

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def pass_minutes(running: Product, count: int) -> None:
    for _ in range(count):
        running.clock.now += MINUTE
        running.tick()


def test_k01_a_job_is_a_row_with_an_id_and_its_own_policies(ann: Client) -> None:
    """Job rows: a random id with a stable prefix, its run time, its policies, its key."""
    later: Fields = {"at": "2026-12-01T10:00:00Z", "labels": {"order": "7"}, "policies": RETRIED}
    made = ann.enqueue({**CHARGE, **later, "key": "order-7"})
    job = made.body
    assert job["id"].startswith("occ_")
    assert (job["state"], job["at"], job["attempts"]) == ("scheduled", "2026-12-01T10:00:00Z", 0)
    assert job["policies"]["retry"]["attempts"] == 3
    again = ann.enqueue({**CHARGE, **later, "key": "order-7"})
    assert (again.status, again.body["id"]) == (200, job["id"])
    assert [one["id"] for one in ann.jobs(state="pending")] == [job["id"]]


def test_k04_of_hundreds_in_one_call_the_urgent_and_the_older_are_claimed_first(
    running: Product, ann: Client
) -> None:
    """Claim strategy: due, by priority, then by run time; each claimed once."""
    jobs: list[Fields] = [
        {
            **CHARGE,
            "input": number,
            "at": f"2026-12-01T09:{10 + number % 40}:00Z",
            "policies": {"priority": 9 if number % 50 == 0 else 0},
        }
        for number in range(200)
    ]
    assert len(ann.enqueue_many(jobs)["jobs"]) == 200
    recorder = Recorder(running.store)
    run_tick(running.store, recorder, now=NINE + HOUR, slots=1)
    order = [(-one.priority, one.due_at) for one, _ in recorder.seen]
    assert len(order) == 200
    assert order == sorted(order)


def test_j05_a_job_that_fails_is_retried_and_its_history_has_each_step_once(
    running: Product, orders: Orders, ann: Client
) -> None:
    """State transitions: processing, failed, retrying, succeeded; a repeat adds nothing."""
    orders.bank_is_away = True
    job = ann.enqueue({**CHARGE, "policies": RETRIED}).body["id"]
    running.tick()
    assert ann.job(job)["state"] == "retrying"
    running.tick()
    orders.bank_is_away = False
    pass_minutes(running, 2)
    (entry,) = ann.job_history(job)
    assert (entry["state"], entry["attempts"]) == ("succeeded", 2)
    assert [one["error"] for one in entry["failures"]] == ["The bank did not answer."]
    assert len(orders.charged) == 1


def test_j11_an_operators_night(
    running: Product, orders: Orders, ann: Client, terminal: Terminal
) -> None:
    """Redaction and the admin's objects: found by the overview, read, mended, done; no secret."""
    orders.bank_is_away = True
    jobs = [ann.enqueue({**CHARGE, "policies": RETRIED}).body["id"] for _ in range(3)]
    running.tick()
    pass_minutes(running, 5)
    assert [ann.job(one)["state"] for one in jobs] == ["dead"] * 3

    _, overview = terminal("overview")
    assert "dead" in overview
    _, listed = terminal("occurrences", "list", "--state", "dead")
    assert all(one in listed for one in jobs)
    _, shown = terminal("occurrences", "show", jobs[0])
    assert "The bank did not answer." in shown
    assert "[withheld]" in shown
    assert "sesame" not in overview + listed + shown

    orders.bank_is_away = False
    _, dry = terminal("occurrences", "retry", "--flow", "orders")
    assert "3" in dry
    assert [ann.job(one)["state"] for one in jobs] == ["dead"] * 3
    terminal("occurrences", "retry", "--flow", "orders", "--why", "the bank is back", "--yes")
    pass_minutes(running, 1)
    assert [ann.job(one)["state"] for one in jobs] == ["succeeded"] * 3
    _, recorded = terminal("operations", "--json")
    assert "the bank is back" in json.dumps(json.loads(recorded))


def test_k01_a_job_that_waits_is_cancelled_and_never_runs(
    running: Product, orders: Orders, ann: Client
) -> None:
    """State transitions: scheduled, cancelled; the same again changes nothing."""
    job = ann.enqueue({**CHARGE, "delay": 60}).body["id"]
    for _ in range(2):
        assert ann.cancel_job(job)["state"] == "cancelled"
    pass_minutes(running, 3)
    assert orders.charged == []


@pytest.mark.parametrize(("misfire", "runs"), [("latest", 1), ("all", 3), ("skip", 0)])
def test_t07_a_recurring_job_says_what_becomes_of_the_times_that_were_missed(
    running: Product, orders: Orders, ann: Client, misfire: str, runs: int
) -> None:
    """Recurring tick: run-once is `latest`, catch-up-limited is `all`, ignore is `skip`."""
    hourly: Fields = {"cron": "30 * * * *", "policies": {"misfire": misfire}}
    ann.put("hourly", {**CHARGE, **hourly})
    running.clock.now = NINE + 2 * HOUR + 40 * MINUTE
    for _ in range(5):
        running.tick()
        running.clock.now += MINUTE
    assert len(orders.charged) == runs


def test_j07_a_lock_is_one_owners_until_it_ends(running: Product) -> None:
    """Locks: acquire, extend and release require the owner; an ended one is anybody's."""
    shelf = running.store.shelf

    def take(owner: str, now: int) -> bool:
        return shelf.acquire(NamedLock("nightly", owner, now, now + MINUTE), now)

    assert take("a", NINE)
    assert not take("b", NINE + 1)
    assert take("a", NINE + 2), "its owner again"
    assert not shelf.extend("nightly", "b", NINE + HOUR)
    assert not shelf.unlock("nightly", "b")
    assert take("b", NINE + 2 * MINUTE), "it has ended"
    assert shelf.unlock("nightly", "b")


def test_j10_retention_takes_what_has_ended_and_nothing_that_is_active(
    running: Product, ann: Client
) -> None:
    """Retention: ended occurrences leave in bounded batches. A waiting one stays at any age."""
    done = ann.enqueue(CHARGE).body["id"]
    waits = ann.enqueue({**CHARGE, "at": "2027-11-01T00:00:00Z"}).body["id"]
    running.tick()
    running.clock.now += 31 * DAY
    while any(purge(running.store, running.clock.now, 10)):
        pass
    assert [one["id"] for one in ann.jobs()] == [waits]
    assert done != waits
