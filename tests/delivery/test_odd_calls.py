"""Calls that no tick sends: each is answered for what it is, and leaves nothing in the ledger."""

from dataclasses import replace

import pytest
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from duetick.domain.states import Reason, State
from duetick.runtime.secrets import Guard, fixed_source

from tests.delivery.scene import MINUTE, NINE, Scene, request, told

HOUR = 60 * MINUTE

REFUSED = [
    '{"fence": NaN}',
    '{"fence": 1e400}',
    '{"fence": 1}',
    '{"fence": 1, "nominalFireTime": null}',
    '{"nominalFireTime": Infinity}',
    '{"nominalFireTime": "0001-01-01T00:00:00Z"}',
    '{"nominalFireTime": "1969-12-31T23:59:59Z"}',
    '{"nominalFireTime": "9999-12-31T23:59:59-14:00"}',
    '{"origin": "x"}',
    '{"origin": "backfill:x"}',
    '{"origin": "call:time"}',
    '{"origin": "run:\\ud800"}',
    '{"origin": "run:\\u0000"}',
    '{"origin": "\\ud800", "fence": 1, "nominalFireTime": 0}',
    '{"idempotencyKey": "\\ud800"}',
    '{"userId": null}',
    '{"key": ["digest"]}',
]


@pytest.mark.parametrize("body", REFUSED)
def test_d03_an_odd_field_is_a_bad_request_and_nothing_is_recorded(
    each_scene: Scene, body: str
) -> None:
    each_scene.put()
    assert told(each_scene.dispatch(request("mail", "ada/digest", body)))[0] == 400
    assert (each_scene.ran, each_scene.history()) == ([], [])


UNREADABLE = ["", "{", "[1]", '"x"', "null", "NaN", "[" * 100_000, '{"a":' * 10_000]
UNREADABLE.append(f'{{"a": {"9" * 9_999}}}')


@pytest.mark.parametrize("body", UNREADABLE, ids=range(len(UNREADABLE)))
def test_d06_an_unreadable_body_counts_as_an_empty_one(scene: Scene, body: str) -> None:
    scene.put()
    assert told(scene.dispatch(request("mail", "ada/digest", body)))[0] == 202
    assert [ctx.nominal_at for _, ctx in scene.ran] == [NINE]


@pytest.mark.parametrize("fence", [2, 7, 2**53 - 1])
def test_t07_a_fence_that_was_never_given_changes_nothing(each_scene: Scene, fence: int) -> None:
    each_scene.put()
    claimed = each_scene.claim()
    assert each_scene.deliver(replace(claimed, fence=fence))[0] == 409
    assert each_scene.history() == [(State.QUEUED, None)]
    assert each_scene.deliver(claimed)[0] == 202


def test_t07_calls_in_the_wrong_order_run_it_once(each_scene: Scene) -> None:
    """The call is slow, its lease ends, and another tick's call comes before it."""
    each_scene.put(cron="0 9 * * *")
    old = each_scene.claim()
    each_scene.clock.now = NINE + 2 * MINUTE
    (new,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
    assert new.fence > old.fence
    assert each_scene.deliver(old)[0] == 409
    assert each_scene.deliver(new)[0] == 202
    assert [each_scene.deliver(each)[0] for each in (old, new, old)] == [200] * 3
    assert len(each_scene.ran) == 1


def test_a03_a_time_before_the_schedule_was_made_is_no_scheduled_one(each_scene: Scene) -> None:
    each_scene.put(cron="0 * * * *")
    assert each_scene.post(nominalFireTime=NINE - HOUR)[1]["origin"] == "call:time"
    assert each_scene.post()[1]["origin"] == "schedule"


def test_a01_a_time_within_a_pause_has_one_outcome(each_scene: Scene) -> None:
    """The pause is a range in the ledger: a caller's occurrence in it is a call, not a fire."""
    scene = each_scene
    put = scene.put(cron="0 * * * *")
    scene.store.schedules.put(replace(put, enabled=False), now=NINE - MINUTE)
    scene.clock.now = NINE + 3 * HOUR
    scene.store.schedules.put(put, now=scene.clock.now)
    assert scene.post(nominalFireTime=NINE + HOUR)[1]["origin"] == "call:time"
    counted = [o.count for o in scene.store.ledger.find("ada", "digest") if o.origin == "schedule"]
    assert sum(counted) == 4


def test_d02_a_key_is_looked_at_before_the_schedule_is(each_scene: Scene) -> None:
    """The repeat of a run is a duplicate, even if the schedule has changed since."""
    scene = each_scene
    scene.put()
    assert scene.post(idempotencyKey="k")[0] == 202
    scene.store.schedules.delete("ada", "digest", now=scene.clock.now)
    assert scene.post(idempotencyKey="k") == (200, {"status": "duplicate", "state": "succeeded"})
    assert scene.post(idempotencyKey="other")[0] == 404


def test_d02_a_key_is_looked_at_before_the_resolver_is_asked(scene: Scene) -> None:
    asked: list[str] = []
    found = Schedule("bob", "x", "* * * * *", "mail", "send")

    def resolve(schedule_id: str, _ctx: object) -> Schedule:
        asked.append(schedule_id)
        return found

    scene.flow.resolver(resolve)
    assert [scene.post("bob/x", idempotencyKey="k")[0] for _ in range(3)] == [202, 200, 200]
    assert asked == ["bob/x"]


def test_d07_a_background_run_that_a_key_has_made_is_not_queued_again(each_scene: Scene) -> None:
    """202 says that it runs or is queued: a repeat that will not run is told so."""
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow")
    assert scene.post(idempotencyKey="k")[1]["outcome"] == "queued"
    scene.dispatch.run_queued(scene.queued[0])
    assert scene.post(idempotencyKey="k") == (200, {"status": "duplicate", "state": "succeeded"})
    assert (len(scene.queued), len(scene.ran)) == (1, 1)


def test_d07_a_background_run_is_queued_once_for_a_key(each_scene: Scene) -> None:
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow")
    assert [scene.post(idempotencyKey="k")[0] for _ in range(2)] == [202, 409]
    assert len(scene.queued) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_d04_a_background_run_whose_invocation_never_comes_is_brought_by_a_tick(
    each_scene: Scene, fails: bool
) -> None:
    """The service dropped it, or did not even take it: the caller was told that it is queued."""
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow", cron="0 9 * * *")
    scene.throttled = fails
    assert scene.post(idempotencyKey="k")[1]["outcome"] == "queued"
    scene.throttled = False
    (brought,) = scene.store.ledger.claim_waiting(NINE + MINUTE)
    scene.clock.advance(MINUTE)
    scene.deliver(brought)
    for call in scene.queued:
        scene.dispatch.run_queued(call)
    assert len(scene.ran) == 1
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)]


def test_d04_a_background_run_that_nobody_can_begin_is_lost_in_the_end(each_scene: Scene) -> None:
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow", cron="0 9 * * *")
    assert scene.post()[0] == 202
    assert list(scene.store.ledger.claim_waiting(NINE + 61 * MINUTE)) == []
    assert scene.history() == [(State.DEAD, Reason.LOST)]


def test_d06_what_fired_before_an_edit_is_still_the_same_for_its_caller(scene: Scene) -> None:
    put = scene.put(cron="0 * * * *")
    scene.post()
    scene.clock.now = NINE + 30 * MINUTE
    scene.store.schedules.put(replace(put, timezone="Europe/Berlin"), now=scene.clock.now)
    assert scene.post() == (200, {"status": "duplicate", "state": "succeeded"})
    assert len(scene.ran) == 1


@pytest.mark.parametrize("header", ["Bearer \ud800", "Bearer \x00", "Bearer " + "x" * 100_000])
def test_d17_a_secret_that_no_header_holds_is_refused(header: str) -> None:
    assert not Guard(fixed_source(("s3cret",))).admits(header)


def test_a_limit_of_runs_counts_what_callers_begin_too(each_scene: Scene) -> None:
    each_scene.put(policies=Policies(max_runs=1))
    answers = [each_scene.post(idempotencyKey=key) for key in ("a", "b")]
    assert answers[0][0] == 202
    assert answers[1][0] in (200, 404), answers[1]
    assert len(each_scene.ran) == 1
    reasons = {reason for _, reason in each_scene.history()}
    assert reasons <= {Reason.FIRED, Reason.QUOTA}
