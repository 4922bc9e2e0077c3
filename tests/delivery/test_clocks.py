"""T-03, T-07: a dispatch whose clock is wrong begins nothing twice, and the ledger tells."""

from duetick.core.context import Context
from duetick.core.tick import run_tick
from duetick.domain.schedule import Json
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE, Scene


def tick(scene: Scene, now: int, *, wrong: int = 0) -> None:
    """Tick at the right time, to a dispatch that has another."""
    scene.clock.now = now + wrong
    run_tick(scene.store, scene.inline, now=now)


def test_t03_by_a_clock_that_is_ahead_every_lease_is_over_and_nothing_begins(
    each_scene: Scene,
) -> None:
    """Once the clock is set right, the occurrences are delivered: their hour is not over."""
    each_scene.put(cron="0 9 * * *")
    for minute in range(4):
        tick(each_scene, NINE + minute * MINUTE, wrong=10 * MINUTE)
    assert (each_scene.ran, each_scene.history()) == ([], [(State.QUEUED, None)])
    tick(each_scene, NINE + 4 * MINUTE)
    assert (len(each_scene.ran), each_scene.history()) == (1, [(State.SUCCEEDED, Reason.FIRED)])


def test_t07_what_runs_by_a_clock_that_is_behind_looks_lost_and_runs_once(
    each_scene: Scene,
) -> None:
    """Its lease is over as it begins; the next tick says so while it runs."""
    each_scene.put(cron="0 9 * * *")

    def runs(_given: Json, _ctx: Context) -> None:
        each_scene.act = None
        tick(each_scene, NINE + MINUTE, wrong=-10 * MINUTE)

    each_scene.act = runs
    tick(each_scene, NINE, wrong=-10 * MINUTE)
    tick(each_scene, NINE + 2 * MINUTE)
    assert (len(each_scene.ran), each_scene.history()) == (1, [(State.DEAD, Reason.LOST)])
