"""The second document: schedules that users and agents make at run time, and their scheduler.

Its reader has a flow with actions, users who subscribe, an agent who follows up, and a scheduler
outside. Each test is a section of that document, done on the running product, over HTTP.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from duetick import Context, Flow
from duetick.client import ApiError, Client, Fields
from duetick.core.dispatch import ResolveContext
from duetick.core.flows import Flows
from duetick.domain.identity import to_path
from duetick.domain.schedule import Json, Principal, Schedule
from duetick.runtime import wiring

from tests.integration.local_product import NINE, Clock, Product, product

DAY = 86_400_000
MONDAY = NINE + 6 * DAY
"""2026-12-07T09:00:00Z."""
DIGEST: Fields = {
    "cron": "0 9 * * MON",
    "flow": "reminders",
    "action": "send_digest",
    "input": {"topic": "gardens"},
}


class Reminders:
    """The document's flow, and a second one whose definitions live elsewhere."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Json]] = []
        self.jobs: dict[str, Callable[[], Schedule | None]] = {}
        self.callers: list[str | None] = []
        reminders = Flow("reminders")
        reminders.action("send_digest")(self.send)
        reminders.action("send_follow_up")(self.send)
        reminders.action("schedule_follow_up")(self.follow_up)
        table = Flow("table")
        table.action("send")(self.send)
        table.resolver(self.resolve)
        self.flows = Flows({flow.name: flow for flow in (reminders, table)})

    def send(self, given: Json, ctx: Context) -> None:
        self.sent.append((ctx.principal.user_id, given))

    def follow_up(self, given: Json, ctx: Context) -> None:
        assert isinstance(given, dict)
        lead, when = given["lead"], given["when"]
        ctx.schedules.create(
            f"followup-{lead}", cron=f"at({when})", action="send_follow_up", input={"lead": lead}
        )

    async def resolve(self, schedule_id: str, ctx: ResolveContext) -> Schedule | None:
        self.callers.append(ctx.caller.user_id if ctx.caller else None)
        return self.jobs[schedule_id]() if schedule_id in self.jobs else None


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Reminders:
    made = Reminders()
    monkeypatch.setattr(wiring, "flows", cache(lambda: made.flows))
    return made


@pytest.fixture
def running(app: Reminders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """Yield the product with those flows, half an hour before nine."""
    del app
    with product(f"sqlite:///{tmp_path}/app.db", Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


@pytest.fixture
def ann(running: Product) -> Client:
    return running.client("ann")


def post(
    running: Product, schedule_id: str, flow: str = "reminders", body: Json = None, **sent: str
) -> tuple[int, dict[str, Json]]:
    """Make the call of an outside scheduler, with the shared secret unless it has another."""
    path = f"/api/flows/{flow}/schedules/{to_path(schedule_id)}/dispatch"
    return running.call("POST", path, body, sent.get("secret", running.stack.secret))


def test_r01_a_user_subscribes_and_the_digest_runs_as_that_user(
    running: Product, app: Reminders, ann: Client
) -> None:
    """Wiring user-created schedules, and the polling loop that fires them."""
    made = ann.put("weekly-digest", DIGEST).body
    assert made["nextFireAt"] == "2026-12-07T09:00:00Z"
    running.clock.now = MONDAY - 60_000
    assert running.tick()["claimed"] == 0
    running.clock.now = MONDAY
    assert running.tick()["delivered"] == 1
    assert app.sent == [("ann", {"topic": "gardens"})]
    (entry,) = ann.history("weekly-digest")
    assert (entry["state"], entry["reason"]) == ("succeeded", "fired")


def test_r01_a_switched_off_schedule_stays_and_does_not_fire(
    running: Product, app: Reminders, ann: Client
) -> None:
    """Discovering due schedules: `enabled` is the row's, not the record's."""
    ann.put("weekly-digest", DIGEST)
    ann.change("weekly-digest", {"enabled": False})
    running.clock.now = MONDAY
    assert running.tick()["claimed"] == 0
    assert ann.get("weekly-digest").body["enabled"] is False
    ann.change("weekly-digest", {"enabled": True})
    running.clock.now = MONDAY + 7 * DAY
    running.tick()
    assert len(app.sent) == 1


def test_r01_an_agent_follows_up_for_its_user_and_a_delete_cancels_it(
    running: Product, app: Reminders, ann: Client
) -> None:
    """Wiring agent-created schedules: the same loop, in the namespace of the user."""
    for lead, day in (("7", 3), ("8", 4)):
        asked: Fields = {"lead": lead, "when": f"2026-12-0{day}T10:00:00"}
        call: Fields = {"cron": "0 9 1 12 *", "action": "schedule_follow_up", "input": asked}
        ann.put(f"call-{lead}", {**DIGEST, **call})
    running.clock.now = NINE
    assert running.tick()["delivered"] == 2
    assert {one["key"] for one in ann.list()} >= {"followup-7", "followup-8"}
    with pytest.raises(ApiError, match="schedule_not_found"):
        running.client("bob").get("followup-7")
    ann.delete("followup-8")
    running.clock.now = NINE + 5 * DAY
    running.tick()
    assert app.sent == [("ann", {"lead": "7"})]
    assert ann.get("followup-7").body["doneAt"] is not None


def test_d01_an_outside_scheduler_dispatches_with_the_secret(
    running: Product, app: Reminders, ann: Client
) -> None:
    """External scheduler API: a POST at the cadence; its repeat runs nothing again."""
    ann.put("weekly-digest", DIGEST)
    running.clock.now = MONDAY + 5_000
    status, told = post(running, "ann/weekly-digest", body={})
    assert (status, told["status"], told["outcome"]) == (202, "accepted", "succeeded")
    assert post(running, "ann/weekly-digest") == (
        200,
        {"status": "duplicate", "state": "succeeded"},
    )
    assert app.sent == [("ann", {"topic": "gardens"})]
    assert running.tick()["delivered"] == 0, "the tick finds that it ran"
    ann.delete("weekly-digest")
    assert post(running, "ann/weekly-digest")[0] == 404


def test_d02_the_secret_does_not_make_its_bearer_the_user_of_the_url(
    running: Product, app: Reminders, ann: Client
) -> None:
    """URL-driven impersonation guard: another user's path finds another user's schedules."""
    ann.put("weekly-digest", DIGEST)
    evil, nobody = post(running, "eve/weekly-digest"), post(running, "ann/nothing")
    assert (
        (evil[0], evil[1]["error"])
        == (nobody[0], nobody[1]["error"])
        == (
            404,
            "schedule_not_found",
        )
    )
    assert post(running, "ann/weekly-digest", secret="x" * 64)[0] == 401
    assert post(running, "ann/weekly-digest", secret=running.stack.token)[0] == 401
    assert post(running, "ann/weekly-digest", flow="unknown")[1]["error"] == "flow_not_found"
    status, told = post(running, "ann/" + "k" * 125)
    assert (status, told["error"]) == (400, "invalid_schedule_id")
    assert app.sent == []


def test_d09_a_resolver_of_ones_own_is_checked_at_each_dispatch(
    running: Product, app: Reminders
) -> None:
    """Resolvers of one's own: 404, 400, 500, and the principal that they name."""

    def job(
        key: str, action: str = "send", cron: str = "0 9 * * MON", runs_as: str = "agent"
    ) -> Schedule:
        principal = Principal(runs_as, org_id="acme")
        return Schedule("ann", key, cron, "table", action, input={"n": 7}, principal=principal)

    def fails() -> Schedule:
        raise ValueError("the database of jobs is away")

    app.jobs |= {
        "job-7": partial(job, "7"),
        "job-bad-cron": partial(job, "8", cron="75 * * * *"),
        "job-no-action": partial(job, "9", "unknown"),
        "job-nobody": partial(job, "10", runs_as=""),
        "job-raises": fails,
        "job-off": lambda: None,
    }
    assert post(running, "job-7", "table")[0] == 202
    assert app.sent == [("agent", {"n": 7})]
    for name in ("job-bad-cron", "job-no-action", "job-nobody"):
        status, told = post(running, name, "table")
        assert (status, told.get("error")) == (400, "invalid_schedule"), (name, told)
    assert [post(running, name, "table")[0] for name in ("job-off", "job-unknown")] == [404, 404]
    status, told = post(running, "job-raises", "table")
    assert (status, told["error"]) == (500, "resolver_failed")
    assert "database of jobs" not in str(told)
    assert len(app.sent) == 1


@pytest.mark.parametrize("cron", ["* * * * * *", "rate(30 seconds)", "*/30 * * * * *"])
def test_c05_what_is_below_a_minute_is_refused_with_words(ann: Client, cron: str) -> None:
    """Limitations: the minute is the floor, and a put says so before anything is stored."""
    with pytest.raises(ApiError, match="cron") as refused:
        ann.put("often", DIGEST | {"cron": cron})
    assert refused.value.status == 400
    with pytest.raises(ApiError, match="schedule_not_found"):
        ann.get("often")
