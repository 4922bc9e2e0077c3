"""D-04, D-06, D-07: a caller's repeat is the same occurrence, even if the schedule has changed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from duetick.core.context import Context
from duetick.core.wire import iso
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import DAY, Policies
from duetick.domain.schedule import Json, Schedule

from tests.delivery.scene import AT_LEAST_ONCE, MINUTE, NINE, Scene, fails

HOUR = 60 * MINUTE
KEYS = ("good", "bad", "again")
"""One that succeeds, one that fails for good, one that is tried again."""


def retimed(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, cron="0 10 * * *"), now=scene.clock.now)


def moved_to_another_zone(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, timezone="Europe/Berlin"), now=scene.clock.now)


def begins_later(scene: Scene, put: Schedule) -> None:
    window = replace(put.policies, starts_at=scene.clock.now + MINUTE)
    scene.store.schedules.put(replace(put, policies=window), now=scene.clock.now)


def ends_some_day(scene: Scene, put: Schedule) -> None:
    window = replace(put.policies, ends_at=scene.clock.now + 100 * DAY * 1_000)
    scene.store.schedules.put(replace(put, policies=window), now=scene.clock.now)


def paused_for_an_hour(scene: Scene, put: Schedule) -> None:
    until = scene.clock.now + HOUR
    scene.store.schedules.put(pause(put, "", until, scene.clock.now), now=scene.clock.now)


def paused_without_end(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(pause(put, "", None, scene.clock.now), now=scene.clock.now)


def paused_and_resumed(scene: Scene, put: Schedule) -> None:
    paused_for_an_hour(scene, put)
    held = scene.store.schedules.get(put.user_id, put.key)
    assert held
    scene.store.schedules.put(resume(held), now=scene.clock.now + 1)


def disabled(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, enabled=False), now=scene.clock.now)


def deleted(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.delete(put.user_id, put.key, now=scene.clock.now)


def made_anew(scene: Scene, put: Schedule) -> None:
    deleted(scene, put)
    scene.store.schedules.put(put, now=scene.clock.now + 1)


Edit = Callable[[Scene, Schedule], None]
STILL_THERE: list[Edit] = [
    retimed, moved_to_another_zone, begins_later, ends_some_day, paused_for_an_hour,
    paused_without_end, paused_and_resumed, made_anew,
]  # fmt: skip
GONE: list[Edit] = [disabled, deleted]


def fire_and_edit(scene: Scene, edit: Edit, **named: Json) -> None:
    """Bring the nine o'clock of each of KEYS as a caller, and edit each a second later."""

    def act(given: Json, ctx: Context) -> None:
        if not ctx.schedule_id.endswith("good"):
            fails(given, ctx)

    scene.act = act
    puts = [
        scene.put(key, cron="0 9 * * *", policies=AT_LEAST_ONCE if key == "again" else None)
        for key in KEYS
    ]
    scene.clock.advance(1_000)
    assert [scene.post(f"ada/{key}", **named)[0] for key in KEYS] == [202, 500, 500]
    scene.clock.advance(1_000)
    for put in puts:
        edit(scene, put)
    scene.clock.advance(1_000)


def told(scene: Scene, **named: Json) -> list[tuple[object, ...]]:
    """Return the answer to a caller for each: status, state, and `final`."""
    answers = [scene.post(f"ada/{key}", **named) for key in KEYS]
    return [(status, body.get("state"), body.get("final")) for status, body in answers]


AS_BEFORE = [(200, "succeeded", None), (409, "dead", True), (409, "retrying", False)]


@pytest.mark.parametrize("edit", STILL_THERE + GONE)
def test_d07_a_repeat_with_its_time_is_answered_from_the_ledger(
    each_scene: Scene, edit: Edit
) -> None:
    fire_and_edit(each_scene, edit, nominalFireTime=iso(NINE))
    assert told(each_scene, nominalFireTime=iso(NINE)) == AS_BEFORE
    assert len(each_scene.ran) == 3


@pytest.mark.parametrize("edit", STILL_THERE)
def test_d06_a_repeat_without_a_time_stands_for_the_newest_that_fired(
    scene: Scene, edit: Edit
) -> None:
    fire_and_edit(scene, edit)
    assert told(scene) == AS_BEFORE
    assert len(scene.ran) == 3


@pytest.mark.parametrize("edit", GONE)
def test_d18_without_a_time_nothing_is_asked_of_a_schedule_that_is_gone(
    scene: Scene, edit: Edit
) -> None:
    fire_and_edit(scene, edit)
    assert [status for status, *_ in told(scene)] == [404, 404, 404]


def test_d06_an_edit_brings_no_time_to_life_that_lies_before_it(scene: Scene) -> None:
    """15 past nine never was a time of the schedule, and 45 past is its first one."""
    put = scene.put(cron="0 9 * * *")
    scene.post()
    scene.clock.advance(30 * MINUTE)
    scene.store.schedules.put(replace(put, cron="15,45 9 * * *"), now=scene.clock.now)
    assert scene.post()[0] == 200
    scene.clock.advance(15 * MINUTE)
    assert scene.post()[0] == 202
    assert [ctx.nominal_at for _, ctx in scene.ran] == [NINE, NINE + 45 * MINUTE]


@pytest.mark.parametrize("pause", [paused_for_an_hour, paused_without_end])
def test_d18_nothing_new_begins_during_a_pause(scene: Scene, pause: Edit) -> None:
    pause(scene, scene.put())
    scene.clock.advance(MINUTE)
    assert scene.post()[0] == 404
    assert scene.post(nominalFireTime=NINE)[0] == 404
    assert scene.post(idempotencyKey="k")[0] == 404
    assert not scene.ran


@pytest.mark.parametrize("pause", [paused_for_an_hour, paused_without_end])
def test_d04_a_caller_is_told_of_its_own_time_during_a_pause(scene: Scene, pause: Edit) -> None:
    put = scene.put(cron="0 10 * * *", policies=AT_LEAST_ONCE)
    scene.act = fails
    assert scene.post(nominalFireTime=iso(NINE))[0] == 500
    pause(scene, put)
    status, body = scene.post(nominalFireTime=iso(NINE))
    assert (status, body["error"], body["final"]) == (409, "already_failed", False)


def test_d06_the_newest_that_fired_is_found_behind_many_runs(scene: Scene) -> None:
    put = scene.put(cron="0 9 * * *")
    scene.act = fails
    assert scene.post()[0] == 500
    scene.act = None
    for number in range(60):
        assert scene.post(idempotencyKey=f"k{number}")[0] == 202
    paused_for_an_hour(scene, put)
    assert scene.post()[1]["final"] is True


def test_d04_success_is_told_also_if_the_schedule_could_not_run_any_more(scene: Scene) -> None:
    put = scene.put()
    assert scene.post(nominalFireTime=iso(NINE))[0] == 202
    scene.store.schedules.put(replace(put, action="sned"), now=scene.clock.now)
    assert scene.post(nominalFireTime=iso(NINE))[0] == 200
    assert scene.post(nominalFireTime=iso(NINE - MINUTE))[0] == 400


def test_d12_what_the_ledger_has_is_not_told_to_another_flow(scene: Scene) -> None:
    fire_and_edit(scene, deleted)
    scene.flow.name = "other"
    assert {scene.post(f"ada/{key}", nominalFireTime=iso(NINE))[0] for key in KEYS} == {404}


def test_d13_what_a_resolver_does_not_own_up_to_is_not_told_either(scene: Scene) -> None:
    fire_and_edit(scene, deleted)
    scene.flow.resolver(lambda _id, _ctx: None)
    assert {scene.post(f"ada/{key}", nominalFireTime=iso(NINE))[0] for key in KEYS} == {404}


def test_t06_what_was_claimed_ahead_is_not_run_for_a_caller_as_well(each_scene: Scene) -> None:
    each_scene.put(cron="1 9 * * *", policies=Policies())
    each_scene.store.index.claim_due(NINE, ahead=2 * MINUTE)
    status, body = each_scene.post(nominalFireTime=iso(NINE + MINUTE))
    assert (status, body["error"]) == (409, "in_progress")
