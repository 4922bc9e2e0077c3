"""L-01: a schedule that is deleted when its last occurrence ends leaves with the end of its run."""

from dataclasses import replace

import pytest
from duetick.core.tick import run_tick
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Delivery, Policies
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE, TWICE, Scene, fails, told

ONCE = "at(2026-12-01T09:00:00)"
LEAVES = Policies(after_completion="delete")


def is_there(scene: Scene) -> bool:
    """Return True if ada's schedule is there."""
    return scene.store.schedules.get("ada", "digest") is not None


@pytest.mark.parametrize(
    ("cron", "policies"), [(ONCE, LEAVES), ("* * * * *", replace(LEAVES, max_runs=1))]
)
def test_l01_a_background_action_that_was_the_last_takes_its_schedule_with_it(
    each_scene: Scene, cron: str, policies: Policies
) -> None:
    """The tick that claimed it has looked long before."""
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow", cron=cron, policies=policies)
    run_tick(scene.store, scene.inline, now=NINE)
    assert is_there(scene)
    (queued,) = scene.queued
    scene.clock.advance(10_000)
    assert told(scene.dispatch.run_queued(queued))[0] == 202
    assert not is_there(scene)
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)]


def test_l01_it_stays_while_a_retry_of_it_waits(each_scene: Scene) -> None:
    scene = each_scene
    scene.act = fails
    scene.put(cron=ONCE, policies=replace(LEAVES, delivery=Delivery.AT_LEAST_ONCE, retry=TWICE))
    scene.deliver(scene.claim())
    assert (is_there(scene), scene.history()) == (True, [(State.RETRYING, None)])
    scene.act = None
    scene.clock.advance(MINUTE)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert scene.deliver(again)[0] == 202
    assert not is_there(scene)


def test_l01_it_stays_if_it_fires_on_or_is_kept(scene: Scene) -> None:
    for key, cron, policies in (("on", "* * * * *", LEAVES), ("kept", ONCE, Policies())):
        scene.put(key, cron=cron, policies=policies)
    for claimed in scene.store.index.claim_due(NINE):
        assert scene.deliver(claimed)[0] == 202
    assert scene.store.schedules.get("ada", "on")
    assert scene.store.schedules.get("ada", "kept")


def test_l01_a_schedule_that_cannot_be_deleted_fails_no_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(*_: object, **__: object) -> bool:
        raise StoreUnavailable("The database did not answer.")

    scene.put(cron=ONCE, policies=LEAVES)
    claimed = scene.claim()
    monkeypatch.setattr(scene.store.schedules, "purge", down)
    assert scene.deliver(claimed)[0] == 202
    assert "purge_failed" in [vars(line).get("action") for line in caplog.records]
