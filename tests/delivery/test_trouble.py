"""T-12: an occurrence in trouble is told of once, by the tick or by dispatch."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flows
from duetick.core.tick import run_tick
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Delivered, Trouble
from duetick.testing import FakeClock
from duetick.transports.inline import InlineTransport

from tests.delivery.scene import AT_LEAST_ONCE, MINUTE, NINE, Scene, fails, request
from tests.delivery.test_log_lines import Refusing

HOUR = 60 * MINUTE


class Told(NamedTuple):
    """The notices of a tick and of dispatch."""

    tick: list[tuple[Trouble, str, str | None]]
    dispatch: list[tuple[Trouble, str, str | None]]


def hears(into: list[tuple[Trouble, str, str | None]]) -> Callable[[Trouble, Occurrence], None]:
    def tell(trouble: Trouble, one: Occurrence) -> None:
        into.append((trouble, one.key, one.reason))

    return tell


class Watched:
    """A scene whose tick and dispatch tell of trouble."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.told = Told([], [])
        self.flows = scene.flows

    def dispatch(self) -> Dispatcher:
        return Dispatcher(
            self.scene.store,
            self.flows,
            lambda _call: True,
            self.scene.clock,
            enqueue=self.scene.queued.append,
            tell=hears(self.told.dispatch),
        )

    def tick(self, now: int = NINE) -> None:
        self.scene.clock.now = now
        inline = InlineTransport(self.dispatch())
        run_tick(self.scene.store, inline, now=now, tell=hears(self.told.tick), late_after=150_000)


@pytest.fixture
def watched(scene: Scene) -> Watched:
    return Watched(scene)


def test_t12_a_tick_tells_of_what_dispatch_answers_to_be_dead(watched: Watched) -> None:
    watched.scene.put(cron="0 9 * * *")
    watched.scene.put("well", cron="0 9 * * *", given=1)
    watched.scene.act = lambda given, ctx: None if given else fails(given, ctx)
    watched.tick()
    assert watched.told == ([("dead", "digest", "failed")], [])


def test_t12_a_failure_that_is_tried_again_is_no_trouble_yet(watched: Watched) -> None:
    watched.scene.put(cron="0 9 * * *", policies=AT_LEAST_ONCE)
    watched.scene.act = fails
    watched.tick()
    assert watched.told == ([], [])
    watched.tick(NINE + MINUTE)
    assert watched.told == ([("dead", "digest", "failed")], [])


def test_t12_a_death_whose_flow_is_gone_is_told_by_the_tick(watched: Watched) -> None:
    watched.scene.put(cron="0 9 * * *")
    watched.flows = Flows({"other": type(watched.scene.flow)("other")})
    watched.tick()
    assert watched.told == ([("dead", "digest", "rejected")], [])


def test_t12_what_is_poisoned_uncarried_lost_and_late_is_told(watched: Watched) -> None:
    store = watched.scene.store
    store.index.upsert(IndexRow("ada", "bad", "99 * * * *", None, NINE))
    store.index.upsert(IndexRow("a/b", "k", "0 9 * * *", None, NINE, flow="mail"))
    watched.scene.put(cron="0 9 * * *")
    watched.tick()
    assert sorted(watched.told.tick) == [("dead", "k", "rejected"), ("poisoned", "bad", "poisoned")]
    watched.told.tick.clear()
    watched.scene.put("lost", cron="0 10 * * *")
    store.index.claim_due(NINE + HOUR)
    watched.tick(NINE + 4 * HOUR)
    assert watched.told.tick == [("dead", "lost", "lost")]


def test_t12_a_delivery_that_begins_later_than_the_bound_is_told(watched: Watched) -> None:
    watched.scene.put(cron="0 9 * * *")
    watched.tick(NINE + 100_000)
    watched.scene.put("later", cron="0 10 * * *")
    watched.tick(NINE + HOUR + 200_000)
    assert watched.told == ([("late", "later", None)], [])


def test_t12_a_death_in_the_background_is_told_by_dispatch(watched: Watched) -> None:
    watched.scene.flow.action("slow", background=True)(fails)
    watched.scene.put(cron="0 9 * * *", action="slow")
    watched.tick()
    (queued,) = watched.scene.queued
    assert watched.told == ([], [])
    watched.dispatch().run_queued(queued)
    assert watched.told == ([], [("dead", "digest", "failed")])


def test_t12_a_death_that_an_outside_caller_made_is_told_by_dispatch(watched: Watched) -> None:
    watched.scene.put(cron="* * * * *")
    watched.scene.act = fails
    answer = watched.dispatch()(request("mail", "ada/digest", {}))
    assert (answer.status, "final" in answer.body) == (500, False)
    assert watched.told == ([], [("dead", "digest", "failed")])


@pytest.mark.parametrize(
    "detail",
    ["", "x", "[]", '{"final": true}', '{"final": true, "reason": "x"}', '{"final": 1}',
     '{"final": true, "reason": ["failed"]}', '{"reason": "failed"}'],
)  # fmt: skip
def test_an_answer_that_says_no_death_is_none(scene: Scene, detail: str) -> None:
    """A gateway of yours may answer anything."""

    class Odd(Refusing):
        def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
            return Delivered(500, detail)

    scene.put(cron="0 9 * * *")
    told: list[tuple[Trouble, str, str | None]] = []
    run_tick(scene.store, Odd(), now=NINE, tell=hears(told))
    assert told == []


def test_an_idle_tick_tells_nothing(scene: Scene) -> None:
    clock = FakeClock(NINE)
    told: list[tuple[Trouble, str, str | None]] = []
    run_tick(scene.store, scene.inline, now=clock.now, tell=hears(told), late_after=0)
    assert told == []
