"""D-06, D-07, A-03: the calls of an outside caller, by a time or a key of its own."""

import pytest
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Json

from tests.delivery.scene import MINUTE, NINE, Scene, fails


def test_d07_a_callers_key_makes_one_run_in_its_window(each_scene: Scene) -> None:
    scene = each_scene
    scene.put()
    first = scene.post(idempotencyKey="order-7")
    assert (first[0], str(first[1]["origin"])[:5]) == (202, "call:")
    scene.clock.advance(59_000)
    assert scene.post(idempotencyKey="order-7") == (
        200,
        {"status": "duplicate", "state": "succeeded"},
    )
    assert scene.post(idempotencyKey="order-8")[0] == 202
    scene.clock.advance(1_000)
    assert scene.post(idempotencyKey="order-7")[0] == 202
    assert len(scene.ran) == 3


def test_d07_a_window_of_zero_turns_the_key_off(scene: Scene) -> None:
    scene.put()
    calls = [scene.post(idempotencyKey="k", idempotencyWindow=0)[0] for _ in range(3)]
    assert calls == [202, 202, 202]


def test_d07_a_failure_releases_the_key(each_scene: Scene) -> None:
    scene = each_scene
    scene.put()
    scene.act = fails
    assert [scene.post(idempotencyKey="k")[0] for _ in range(2)] == [500, 500]
    scene.act = None
    assert scene.post(idempotencyKey="k")[0] == 202


def test_d07_a_key_that_runs_is_in_progress(scene: Scene) -> None:
    scene.put(policies=Policies(overlap=Overlap.ALLOW))
    seen: list[int] = []
    scene.act = lambda *_: seen.append(scene.post(idempotencyKey="k")[0])
    scene.post(idempotencyKey="k")
    assert seen == [409]


@pytest.mark.parametrize("key", ["", "x" * 129, 7, "a\nb", ["k"], {"k": 1}])
def test_d07_a_key_that_cannot_be_one_is_refused(scene: Scene, key: Json) -> None:
    scene.put()
    assert scene.post(idempotencyKey=key)[0] == 400


def test_d06_a_caller_without_a_time_means_the_newest_fire_time(scene: Scene) -> None:
    scene.put(cron="0 * * * *")
    scene.clock.advance(20 * MINUTE)
    scene.post()
    assert [ctx.nominal_at for _, ctx in scene.ran] == [NINE]


def test_a03_a_time_at_which_it_does_not_fire_is_no_scheduled_occurrence(scene: Scene) -> None:
    scene.put(cron="0 * * * *")
    for offset in (MINUTE, 60 * MINUTE):
        assert scene.post(nominalFireTime=NINE + offset)[1]["origin"] == "call:time"
        assert scene.post(nominalFireTime=NINE + offset)[0] == 200
    for due in (NINE, NINE + 60 * MINUTE):
        assert [o.nominal_at for o in scene.store.index.claim_due(due)] == [due]


@pytest.mark.parametrize("fence", [-1, True, 2**60, "1", 1.5, None])
def test_d07_a_fence_that_no_tick_sends_is_refused(scene: Scene, fence: Json) -> None:
    scene.put()
    assert scene.post(fence=fence, nominalFireTime=NINE)[0] == 400


@pytest.mark.parametrize("time", [10**18, -1, True, "0000", [], {"a": 1}, "9999-99-99T00:00Z"])
def test_d06_a_time_that_cannot_be_is_refused(scene: Scene, time: Json) -> None:
    scene.put()
    assert scene.post(fence=1, nominalFireTime=time)[0] == 400
