"""D-03: each row of the table of dispatch's answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flow, Flows
from duetick.core.wire import iso
from duetick.domain.attempts import Outcome
from duetick.domain.pausing import pause as put_on_hold
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Json, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store

from tests.delivery.scene import MINUTE, NINE, Scene, request, told

Row = tuple[int, dict[str, Json]]


def error(answer: Row, *more: str) -> tuple[int, Json]:
    """Return the status and the code of an error: it has a message, and only the named fields
    besides.
    """
    status, body = answer
    told = {"problems"} if str(body["error"]).startswith("invalid_schedule") else set()
    assert set(body) == {"error", "message", *more} | told
    return status, body["error"]


def raises(*_: object) -> NoReturn:
    """Raise an error of an action or a resolver, with a secret in its text."""
    raise RuntimeError("password=hunter2")


def succeeded(scene: Scene) -> Row:
    scene.put()
    return scene.deliver(scene.claim())


def queued(scene: Scene) -> Row:
    scene.flow.action("slow", background=True)(lambda _input, _ctx: None)
    scene.put(action="slow")
    return scene.deliver(scene.claim())


def twice(scene: Scene) -> Row:
    scene.put()
    scene.post()
    return scene.post()


def deleted(scene: Scene) -> Row:
    scene.put()
    claimed = scene.claim()
    scene.store.schedules.delete("ada", "digest")
    return scene.deliver(claimed)


def paused(scene: Scene) -> Row:
    put = scene.put()
    claimed = scene.claim()
    scene.store.schedules.put(replace(put, enabled=False), now=NINE)
    return scene.deliver(claimed)


def overlapping(scene: Scene) -> Row:
    scene.put(policies=Policies(timeout=600))
    scene.store.ledger.begin(scene.claim(), now=NINE)
    scene.clock.advance(MINUTE)
    return scene.deliver(scene.claim())


ACCEPTED: dict[str, Json] = {
    "status": "accepted",
    "scheduleId": "ada/digest",
    "origin": "schedule",
    "requestId": "r-1",
}
ANSWERS: list[tuple[Callable[[Scene], Row], int, dict[str, Json]]] = [
    (succeeded, 202, ACCEPTED | {"outcome": "succeeded"}),
    (queued, 202, ACCEPTED | {"outcome": "queued"}),
    (twice, 200, {"status": "duplicate", "state": "succeeded"}),
    (deleted, 200, {"status": "skipped", "reason": "schedule_deleted"}),
    (paused, 200, {"status": "skipped", "reason": "disabled"}),
    (overlapping, 200, {"status": "skipped", "reason": "overlap"}),
]


@pytest.mark.parametrize(("case", "status", "body"), ANSWERS)
def test_d03_answers(
    scene: Scene, case: Callable[[Scene], Row], status: int, body: dict[str, Json]
) -> None:
    assert case(scene) == (status, body)


def held_by_another(scene: Scene) -> Row:
    scene.put()
    claimed = scene.claim()
    scene.store.ledger.begin(claimed, now=NINE)
    return scene.deliver(claimed)


def bad_id(scene: Scene) -> Row:
    return scene.post("ada/../digest")


def path_and_body_disagree(scene: Scene) -> Row:
    return scene.post(userId="bob")


def bad_cron(scene: Scene) -> Row:
    bad = Schedule("ada", "digest", "61 * * * *", "mail", "send")
    scene.flow.resolver(lambda _id, _ctx: bad)
    return scene.post()


def unknown_action(scene: Scene) -> Row:
    scene.put(action="sned")
    return scene.deliver(scene.claim())


def bad_time(scene: Scene) -> Row:
    return scene.post(nominalFireTime="tomorrow")


def no_secret(scene: Scene) -> Row:
    return told(scene.dispatch(request("mail", "ada/digest", {}, headers={})))


def other_flow(scene: Scene) -> Row:
    return told(scene.dispatch(request("mial", "ada/digest", {})))


def never_was(scene: Scene) -> Row:
    return scene.post()


def never_recorded(scene: Scene) -> Row:
    return scene.post(nominalFireTime="2026-12-01T09:00:00Z", fence=1)


def of_another_flow(scene: Scene) -> Row:
    scene.put()
    other = Flow("billing")
    dispatch = Dispatcher(scene.store, Flows({"billing": other}), lambda _: True, scene.clock)
    return told(dispatch(request("billing", "ada/digest", {})))


def disabled_without_occurrence(scene: Scene) -> Row:
    scene.put(enabled=False)
    return scene.post()


def get(scene: Scene) -> Row:
    return told(scene.dispatch(request("mail", "ada/digest", {}, method="GET")))


def large(scene: Scene) -> Row:
    return told(scene.dispatch(request("mail", "ada/digest", "x" * 6 * 1024 * 1024)))


def large_in_bytes(scene: Scene) -> Row:
    """Fewer characters than are allowed, and more bytes."""
    return told(scene.dispatch(request("mail", "ada/digest", "日" * 100_000)))


def resolver_raises(scene: Scene) -> Row:
    scene.flow.resolver(raises)
    return scene.post()


def store_is_broken(scene: Scene) -> Row:
    scene.store = open_store("sqlite://")
    answer = scene.post()
    scene.store.close()
    return answer


def action_raises(scene: Scene) -> Row:
    scene.put()
    scene.act = raises
    return scene.deliver(scene.claim())


def no_flows(scene: Scene) -> Row:
    dispatch = Dispatcher(scene.store, Flows({}), lambda _: True, scene.clock)
    return told(dispatch(request("mail", "ada/digest", {})))


ERRORS: list[tuple[Callable[[Scene], Row], int, str]] = [
    (held_by_another, 409, "in_progress"),
    (bad_id, 400, "invalid_schedule_id"),
    (path_and_body_disagree, 400, "invalid_schedule_id"),
    (bad_cron, 400, "invalid_schedule"),
    (unknown_action, 400, "invalid_schedule"),
    (bad_time, 400, "invalid_schedule"),
    (no_secret, 401, "unauthorized"),
    (other_flow, 404, "flow_not_found"),
    (never_was, 404, "schedule_not_found"),
    (never_recorded, 404, "schedule_not_found"),
    (of_another_flow, 404, "schedule_not_found"),
    (disabled_without_occurrence, 404, "schedule_not_found"),
    (get, 405, "method_not_allowed"),
    (large, 413, "too_large"),
    (large_in_bytes, 413, "too_large"),
    (resolver_raises, 500, "resolver_failed"),
    (store_is_broken, 500, "dispatch_failed"),
    (action_raises, 500, "action_failed"),
    (no_flows, 503, "flow_unregistered"),
]


@pytest.mark.parametrize(("case", "status", "code"), ERRORS)
def test_d03_errors(scene: Scene, case: Callable[[Scene], Row], status: int, code: str) -> None:
    answer = case(scene)
    assert error(answer) == (status, code)
    assert "hunter2" not in str(answer)
    assert "Traceback" not in str(answer)


def test_d12_what_is_anothers_answers_as_what_never_was(scene: Scene) -> None:
    scene.put()
    assert of_another_flow(scene) == scene.post("bob/digest") == scene.post("ada/nothing")


@pytest.mark.parametrize("named", [{}, {"nominalFireTime": iso(NINE)}])
def test_d04_a_callers_repeat_after_the_last_failure_is_told_that_it_is_final(
    scene: Scene, named: dict[str, str]
) -> None:
    scene.put()
    scene.act = raises
    assert scene.post(**named)[0] == 500
    status, body = scene.post(**named)
    assert (status, body["error"], body["final"]) == (409, "already_failed", True)
    assert (body["state"], body["reason"]) == ("dead", "failed")
    assert len(scene.ran) == 1


def test_d04_a_callers_repeat_before_a_retry_is_told_when_that_comes(scene: Scene) -> None:
    scene.put(policies=Policies(delivery=Delivery.AT_LEAST_ONCE))
    scene.act = raises
    assert scene.post()[0] == 500
    answer = scene.dispatch(request("mail", "ada/digest", {}))
    assert (answer.status, answer.body["error"]) == (409, "already_failed")
    assert (answer.body["state"], answer.body["final"]) == ("retrying", False)
    assert answer.body["nextAttemptAt"] == iso(scene.clock.now + 10_000)
    assert answer.headers["retry-after"] == "10"


def test_d04_a_callers_repeat_during_a_pause_without_end_is_told_no_time(scene: Scene) -> None:
    put = scene.put(policies=Policies(delivery=Delivery.AT_LEAST_ONCE))
    scene.act = raises
    assert scene.post(idempotencyKey="k")[0] == 500
    scene.store.schedules.put(put_on_hold(put, "", None, NINE), now=scene.clock.now)
    scene.clock.advance(MINUTE)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert error(scene.deliver(again), "waits") == (409, "in_progress")
    status, body = scene.post(idempotencyKey="k")
    assert (status, body["error"], body["final"]) == (409, "already_failed", False)
    assert "nextAttemptAt" not in body


def test_d04_a_callers_key_is_told_of_the_retry_that_holds_it(each_scene: Scene) -> None:
    scene = each_scene
    scene.put(policies=Policies(delivery=Delivery.AT_LEAST_ONCE))
    scene.act = raises
    assert scene.post(idempotencyKey="k")[0] == 500
    status, body = scene.post(idempotencyKey="k")
    assert (status, body["error"], body["final"]) == (409, "already_failed", False)
    assert body["nextAttemptAt"] == iso(scene.clock.now + 10_000)


def test_d04_a_caller_is_not_told_that_what_is_not_due_yet_is_done(scene: Scene) -> None:
    scene.put(cron="0 9 * * *", policies=Policies(spread=3_600))
    scene.store.index.claim_due(scene.clock.now)
    assert error(scene.post()) == (409, "in_progress")


def test_d03_a_ticks_repeat_after_a_failure_is_a_duplicate(scene: Scene) -> None:
    scene.put()
    scene.act = raises
    claimed = scene.claim()
    assert scene.deliver(claimed)[0] == 500
    assert scene.deliver(claimed) == (200, {"status": "duplicate", "state": "dead"})


def test_d03_an_occurrence_that_was_cancelled_before_is_skipped(scene: Scene) -> None:
    scene.put()
    claimed = scene.claim()
    scene.store.ledger.begin(claimed, now=NINE)
    scene.store.ledger.settle(claimed, Outcome(State.CANCELLED, Reason.OPERATOR), now=NINE)
    assert scene.deliver(claimed) == (200, {"status": "skipped", "reason": "operator"})


def test_d08_one_that_waits_is_told_that_it_is_in_progress(scene: Scene) -> None:
    scene.put(policies=Policies(overlap=Overlap.WAIT, timeout=600))
    scene.store.ledger.begin(scene.claim(), now=NINE)
    scene.clock.advance(MINUTE)
    assert scene.deliver(scene.claim())[0] == 409
