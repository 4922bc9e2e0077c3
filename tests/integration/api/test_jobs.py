"""K-01, K-02, K-04: jobs as users and operators meet them over the API."""

from datetime import UTC, datetime

import pytest
from duetick.client import Client, Fields
from duetick.core.dispatch import request_of
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Occurrence
from duetick.runtime import wiring

from tests.integration.api.asking import DAY, HOUR, MINUTE, refused
from tests.integration.local_product import Product, set_again

JOB: Fields = {"flow": "reminders", "action": "remind", "input": {"text": "good morning"}}


def at(moment: int) -> str:
    """Return an instant as the API writes it."""
    return datetime.fromtimestamp(moment / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_k01_a_job_runs_once_and_is_told_of(anywhere: Product) -> None:
    client = anywhere.client()
    due = anywhere.clock.now + HOUR
    made = client.enqueue(JOB | {"at": at(due), "labels": {"team": "a"}})
    assert (made.status, made.headers["location"]) == (201, f"/api/jobs/{made.body['id']}")
    assert (made.body["state"], made.body["at"]) == ("scheduled", at(due))
    anywhere.tick()
    assert client.job(made.body["id"])["state"] == "scheduled"
    anywhere.clock.now = due
    anywhere.tick()
    found = client.job(made.body["id"])
    assert (found["state"], found["reason"], found["attempts"]) == ("succeeded", "fired", 1)
    assert (found["endedAt"], found["labels"]) == (at(due), {"team": "a"})
    (line,) = client.job_history(made.body["id"])
    assert (line["origin"], line["state"]) == (f"job:{made.body['id'][4:]}", "succeeded")
    told = client.explain_job(made.body["id"])
    assert (told["verdict"], told["said"][0]) == (
        "fired",
        "It fired, and its action ran to its end.",
    )
    assert list(client.list(state="all")) == []
    anywhere.clock.now += DAY
    anywhere.tick()
    assert client.job(made.body["id"])["attempts"] == 1


def test_k01_a_job_has_policies_of_its_own(client: Client) -> None:
    policies: Fields = {"delivery": "at_least_once", "retry": {"attempts": 2}, "timeout": 9}
    made = client.enqueue(JOB | {"policies": {**policies, "priority": 3}}).body["policies"]
    assert (made["delivery"], made["timeout"], made["priority"]) == ("at_least_once", 9, 3)
    assert made["retry"]["attempts"] == 2


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"action": "none"}, "/action"),
        ({"flow": "none"}, "/flow"),
        ({"input": {"words": 1}}, "/input/words"),
        ({"policies": {"overlap": "skip"}}, "/policies/overlap"),
        ({"cron": "@daily"}, "/cron"),
        ({"delay": -1}, "/delay"),
        ({"delay": 10**9}, "/delay"),
        ({"delay": 1, "at": "2026-12-01T12:00:00Z"}, "/delay"),
        ({"at": "tomorrow"}, "/at"),
        ({"at": "2028-12-01T12:00:00Z"}, "/at"),
        ({"key": ""}, "/key"),
        ({"labels": {"a": 1}}, "/labels/a"),
    ],
)
def test_k01_whatever_is_wrong_is_named(running: Product, wrong: Fields, field: str) -> None:
    status, body = running.call("POST", "/api/jobs", JOB | wrong)
    assert (status, body["error"]) == (400, "invalid_schedule")
    assert field in {one["field"] for one in body["problems"]}
    assert list(running.client().jobs()) == []


@pytest.mark.parametrize(("key", "code"), [("", "blank"), ("a\0b", "character")])
def test_k02_a_key_that_is_refused_says_why(running: Product, key: str, code: str) -> None:
    _, body = running.call("POST", "/api/jobs", JOB | {"key": key})
    assert code in {one["code"] for one in body["problems"] if one["field"] == "/key"}


def test_k04_a_delay_counts_from_now_and_a_past_time_is_now(
    running: Product, client: Client
) -> None:
    now = running.clock.now
    assert client.enqueue(JOB | {"delay": 90}).body["at"] == at(now + 90_000)
    assert client.enqueue(JOB | {"at": at(now - DAY)}).body["at"] == at(now)


def test_k02_a_key_makes_one_job_in_a_day(running: Product, client: Client) -> None:
    first = client.enqueue(JOB | {"key": "order-7", "delay": 5})
    again = client.enqueue(JOB | {"key": "order-7"})
    assert (first.status, again.status) == (201, 200)
    assert again.body == first.body
    assert again.body["key"] == "order-7"
    running.clock.now += DAY
    assert client.enqueue(JOB | {"key": "order-7"}).status == 201


def test_k01_hundreds_are_one_call_and_each_is_answered(anywhere: Product) -> None:
    client = anywhere.client()
    listed = [JOB | {"delay": 60, "key": f"k{n % 100}"} for n in range(200)]
    listed[7] = JOB | {"action": "none"}
    answers = client.enqueue_many(listed)["jobs"]
    assert [one["status"] for one in answers] == [201] * 7 + [400] + [201] * 92 + [
        201 if n == 7 else 200 for n in range(100)
    ]
    wrong = answers[7]
    assert wrong["job"] is None
    assert wrong["error"] is not None
    assert wrong["error"]["error"] == "invalid_schedule"
    assert len(list(client.jobs())) == 100


def test_k01_a_list_is_filtered_and_paged(running: Product, client: Client) -> None:
    names = [client.enqueue(JOB | {"delay": n * 60}).body["id"] for n in range(5)]
    client.cancel_job(names[2])
    running.tick()
    waiting = {*names} - {names[0], names[2]}
    assert {one["id"] for one in client.jobs(limit=2)} == {*names}
    assert {one["id"] for one in client.jobs(limit=2, state="pending")} == waiting
    assert [one["id"] for one in client.jobs(state="cancelled")] == [names[2]]
    assert [one["id"] for one in client.jobs(state="succeeded")] == [names[0]]
    assert {one["id"] for one in client.jobs(state="ended")} == {names[0], names[2]}
    assert list(client.jobs(flow="digests")) == []


def test_k01_a_cancelled_job_does_not_run(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    cancelled = client.cancel_job(name)
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "operator")
    assert client.cancel_job(name) == cancelled
    running.clock.now += HOUR
    running.tick()
    assert client.job(name) == cancelled
    assert client.explain_job(name)["said"][0] == "It was cancelled before it came to its end."


def test_k01_one_that_has_ended_is_not_cancelled(running: Product, client: Client) -> None:
    name = client.enqueue(JOB).body["id"]
    running.tick()
    assert refused(client.cancel_job, name) == (409, "occurrence_conflict")


def test_k01_a_users_jobs_are_nobody_elses(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    other = running.client("somebody")
    for call in (other.job, other.cancel_job, other.explain_job):
        assert refused(call, name) == (404, "job_not_found")
    assert refused(lambda: list(other.job_history(name))) == (404, "job_not_found")
    assert list(other.jobs()) == []
    for never in ("x", "occ_1", f"occ_{'0' * 28}", "occ_%00"):
        assert refused(client.job, never)[0] in (400, 404)


def test_k01_no_route_of_schedules_reaches_a_job(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    key = f"job:{name[4:]}"
    for call in (client.get, client.delete, client.pause, client.run, client.explain):
        assert refused(call, key) == (404, "schedule_not_found")
    assert refused(client.put, key, {**JOB, "cron": "@daily"})[0] == 400
    assert client.job(name)["state"] == "scheduled"


def test_k01_an_action_that_is_not_for_users_is_refused_them(running: Product) -> None:
    internal: Fields = {"flow": "digests", "action": "clean_up", "input": None}
    status, body = running.call("POST", "/api/jobs", internal)
    assert (status, body["error"]) == (400, "invalid_schedule")
    assert [one["field"] for one in body["problems"]] == ["/action"]
    assert list(running.client().jobs()) == []
    assert running.operator("you").enqueue(internal).body["action"] == "clean_up"


def test_k01_the_quota_is_of_pending_jobs(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_JOBS", "2")
    for _ in range(2):
        client.enqueue(JOB)
    assert refused(client.enqueue, JOB) == (409, "quota_exceeded")
    running.tick()
    assert client.enqueue(JOB).status == 201


def test_o01_operators_act_on_the_jobs_of_any_user(running: Product, client: Client) -> None:
    operator = running.operator("you")
    made = operator.enqueue(JOB | {"delay": 60, "input": {"text": "x"}}).body
    assert client.job(made["id"])["input"] == {"text": "x"}
    assert [one["id"] for one in operator.jobs()] == [made["id"]]
    assert operator.cancel_job(made["id"])["state"] == "cancelled"
    assert list(running.operator("nobody").jobs()) == []


def test_o01_a_user_reads_who_cancelled_a_job(running: Product, client: Client) -> None:
    """Both have the reason `operator`: somebody cancelled it by hand."""
    cancels = client.cancel_job, running.operator("you").cancel_job
    names = [client.enqueue(JOB | {"delay": 60}).body["id"] for _ in cancels]
    for cancel, name in zip(cancels, names, strict=True):
        cancel(name)
    notes = [client.explain_job(name)["events"][-1]["note"] for name in names]
    assert notes == ["cancelled by the user", "cancelled by an operator"]


def test_j07_operators_find_a_job_among_occurrences(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    status, found = running.call(
        "GET", "/api/occurrences?state=scheduled", token=running.stack.operator
    )
    assert (status, [one["id"] for one in found["occurrences"]]) == (200, [name])
    path = f"/api/occurrences/{name}/cancel"
    assert running.call("POST", path, token=running.stack.operator)[0] == 200
    assert client.job(name)["state"] == "cancelled"


def test_k01_export_shows_jobs_and_erase_removes_them(anywhere: Product) -> None:
    operator = anywhere.operator("you")
    name = operator.enqueue(JOB | {"key": "order-7", "delay": 60}).body["id"]
    export = operator.export()
    assert [one["id"] for one in export["jobs"]] == [name]
    assert export["schedules"] == []
    operator.erase()
    assert operator.export()["jobs"] == []
    assert list(operator.jobs()) == []
    assert operator.enqueue(JOB | {"key": "order-7"}).status == 201


def test_o02_a_job_that_a_pause_holds_says_so(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    running.store.pauses.pause("flow:reminders", now=running.clock.now)
    running.clock.now += 5 * MINUTE
    running.tick()
    assert client.job(name)["state"] == "scheduled"
    told = client.explain_job(name)
    assert told["verdict"] == "will_fire"
    assert any("An operator paused the flow reminders" in one for one in told["said"])


def test_d06_an_outside_caller_dispatches_no_job(running: Product, client: Client) -> None:
    name = client.enqueue(JOB | {"delay": 60}).body["id"]
    path = f"/api/flows/reminders/schedules/you~2Fjob~3A{name[4:]}/dispatch"
    status, body = running.call("POST", path, {}, token=running.stack.secret)
    assert (status, body["error"]) == (404, "schedule_not_found")
    assert client.job(name)["attempts"] == 0


def test_k04_a_job_that_is_due_begins_at_once(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Occurrence] = []
    monkeypatch.setattr(wiring, "hand_on", lambda: begun.append)
    first = client.enqueue(JOB | {"key": "order-7"}).body
    client.enqueue(JOB | {"key": "order-7"})
    client.enqueue(JOB | {"delay": 60})
    assert [one.id for one in begun] == [first["id"]]
    assert first["state"] == "queued"
    assert wiring.dispatcher().run_queued(request_of(begun[0])).status == 202
    assert client.job(first["id"])["state"] == "succeeded"
    assert running.tick()["claimed"] == 0


def test_k04_if_it_cannot_the_tick_delivers_it(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_one: Occurrence) -> None:
        raise StoreUnavailable("The invocation was not queued.")

    monkeypatch.setattr(wiring, "hand_on", lambda: fails)
    name = client.enqueue(JOB).body["id"]
    running.clock.now += 1_000
    running.tick()
    assert client.job(name)["state"] == "succeeded"
