"""D-08, T-01: an occurrence waits for another of its schedule, and the ticks' reports say so."""

import pytest
from duetick.core.tick import TickReport, run_tick
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.policies import Overlap, Policies
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE, Scene


def test_d08_one_that_waits_has_not_failed(
    each_scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene, ledger = each_scene, each_scene.store.ledger
    scene.put(cron="0,1 9 * * *", policies=Policies(overlap=Overlap.WAIT, timeout=600))
    running = scene.claim()
    ledger.begin(running, now=NINE)
    for seconds in (61, 62, 63):
        scene.clock.now = NINE + seconds * 1_000
        report = run_tick(scene.store, scene.inline, now=scene.clock.now)
        assert report == TickReport(claimed=1, behind=1)
    (waits,) = ledger.find("ada", "digest", state=State.QUEUED)
    assert (waits.attempts, list(ledger.events(waits))) == (0, [])
    assert "delivery failed" not in caplog.text
    ledger.settle(running, SUCCEEDED, now=scene.clock.now)
    scene.clock.advance(1_000)
    report = run_tick(scene.store, scene.inline, now=scene.clock.now)
    assert (report.claimed, report.delivered, report.behind) == (1, 1, 0)
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)] * 2


def test_what_comes_back_in_the_same_tick_waits_for_the_next(scene: Scene) -> None:
    """If dispatch's clock is behind the tick's, an occurrence that waits for it is due at once."""
    scene.put(policies=Policies(overlap=Overlap.WAIT, timeout=600))
    scene.store.ledger.begin(scene.claim(), now=NINE)
    scene.clock.now = NINE - MINUTE
    delivered: list[int] = []
    report = run_tick(
        scene.store,
        scene.inline,
        now=NINE + MINUTE,
        on_dispatch=lambda _occurrence, status: delivered.append(status),
    )
    assert delivered == [409]
    assert report.claimed == report.behind + report.left
