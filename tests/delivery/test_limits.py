"""O-03: a tick hands on occurrences with a place, goes on as places are freed, and holds up no
others.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from duetick.core.context import Context
from duetick.core.store import Store
from duetick.core.tick import TickReport, run_tick
from duetick.core.tick.places import BEGINS_WITHIN_MS, Places
from duetick.core.tick.turns import Turns
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.schedule import Json, Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Delivered
from duetick.stores import open_store
from duetick.testing import FakeClock

from tests.delivery.scene import AT_LEAST_ONCE, EFFECTIVELY_ONCE, MINUTE, NINE, Scene, request

FAILED = Outcome(State.FAILED, Reason.FAILED, "it rained")


class Crowd:
    """The most runs at once, of each user."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.order: list[str] = []

    def __call__(self, given: Json, ctx: object) -> None:
        """Run for a moment beside others."""
        user = str(given)
        with self._lock:
            self._running[user] = self._running.get(user, 0) + 1
            self.most[user] = max(self.most.get(user, 0), self._running[user])
            self.order.append(user)
        threading.Event().wait(0.005)
        with self._lock:
            self._running[user] -= 1


def due(scene: Scene, user: str, count: int, policies: Policies | None = None) -> None:
    """Put a number of schedules of a user, due at nine."""
    for number in range(count):
        one = replace(
            scene.put("one", cron="0 9 * * *", policies=policies),
            user_id=user,
            key=f"k{number:02}",
            input=user,
        )
        scene.store.schedules.put(one, now=NINE - MINUTE)
    scene.store.schedules.delete("ada", "one", now=NINE - MINUTE)


def tick(scene: Scene, now: int = NINE, *, look_ahead: int = 0) -> TickReport:
    """Run one tick with eight slots."""
    scene.clock.now = now
    return run_tick(scene.store, scene.inline, now=now, slots=8, look_ahead=look_ahead)


def ended(store: Store, user: str = "ada") -> list[str]:
    """Return the states in a user's history."""
    return sorted(one.state for one in store.ledger.find(user, limit=100))


@pytest.mark.parametrize("scope", ["user:ada", "flow:mail", "action:mail/send"])
def test_o03_one_tick_fires_all_that_waits_and_never_more_at_once(
    each_scene: Scene, scope: str
) -> None:
    each_scene.act = crowd = Crowd()
    due(each_scene, "ada", 12)
    each_scene.store.limits.set(scope, parallel=2, now=NINE - MINUTE)
    report = tick(each_scene)
    assert (report.claimed, report.delivered, report.behind, report.left) == (12, 12, 0, 0)
    assert ended(each_scene.store) == ["succeeded"] * 12
    assert crowd.most["ada"] <= 2
    assert not any(one.leases for one in each_scene.store.limits.standing().every)


def test_t14_a_limited_mass_holds_up_nobody(each_scene: Scene) -> None:
    each_scene.act = crowd = Crowd()
    due(each_scene, "ada", 10)
    due(each_scene, "bob", 10)
    each_scene.store.limits.set("user:ada", parallel=1, now=NINE - MINUTE)
    assert tick(each_scene).delivered == 20
    assert crowd.most["ada"] == 1
    assert crowd.most["bob"] > 1
    last_of_bob = max(place for place, user in enumerate(crowd.order) if user == "bob")
    assert crowd.order[last_of_bob:].count("ada") >= 3


def test_o03_a_rate_leaves_the_rest_to_the_next_minutes_and_nothing_is_handed_on_in_vain(
    each_scene: Scene,
) -> None:
    due(each_scene, "ada", 5, Policies(misfire=Misfire.SKIP, longest_lateness=60))
    each_scene.store.limits.set("user:ada", rate=2, now=NINE - MINUTE)
    reports = [tick(each_scene, NINE + minute * MINUTE) for minute in range(4)]
    assert [one.claimed for one in reports] == [2, 2, 1, 0]
    assert [one.behind for one in reports] == [0, 0, 0, 0]
    assert ended(each_scene.store) == ["succeeded"] * 5
    assert max(one.lateness_ms for one in reports) < MINUTE


def test_o03_a_tick_does_not_spin_while_others_have_all_places(each_scene: Scene) -> None:
    due(each_scene, "ada", 3)
    store = each_scene.store
    first = store.index.claim_due(NINE, 1)[0]
    store.limits.set("user:ada", parallel=1, now=NINE)
    store.ledger.begin(first, now=NINE)
    assert tick(each_scene, NINE + 1).claimed == 0
    assert ended(store) == ["processing", "scheduled", "scheduled"]
    assert tick(each_scene, NINE + first.policies.lease_ms).delivered == 2


def test_t01_a_tick_whose_claim_failed_waits_for_no_place(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place is freed, another one is taken still, and no claim can fill it any more."""
    due(scene, "ada", 2)
    scene.store.limits.set("user:ada", parallel=2, now=NINE - MINUTE)
    waits, closed = list[float](), threading.Event()
    claim = Mock(wraps=scene.store.index.claim_due)

    def wait_until(turns: Turns, ready: Callable[[], bool], seconds: float) -> None:
        waits.append(seconds)
        really_wait(turns, ready, seconds)

    def close(turns: Turns) -> None:
        closed.set()
        really_close(turns)

    def act(_given: Json, ctx: Context) -> None:
        if ctx.schedule_id == "ada/k01":
            closed.wait(5)
        else:
            claim.side_effect = StoreUnavailable("The database went away.")

    really_close, really_wait = Turns.close, Turns.wait_until
    monkeypatch.setattr(scene.store.index, "claim_due", claim)
    monkeypatch.setattr(Turns, "close", close)
    monkeypatch.setattr(Turns, "wait_until", wait_until)
    scene.act = act
    with pytest.raises(StoreUnavailable):
        tick(scene)
    assert len(waits) <= 1
    assert ended(scene.store) == ["succeeded"] * 2


def test_o03_a_limit_that_the_tick_does_not_know_yet_puts_off_what_it_hands_on(
    address: str, each_store: Store
) -> None:
    """Dispatch knows the limit: an occurrence without a place waits, and the next tick brings
    it.
    """
    with closing(open_store(address, clock=lambda: NINE)) as elsewhere:
        scene = Scene(elsewhere, FakeClock(NINE + 4_000))
        scene.act = crowd = Crowd()
        due(scene, "ada", 6)
        each_store.standing.at(NINE)
        elsewhere.limits.set("user:ada", rate=2, now=NINE)
        told = run_tick(each_store, scene.inline, now=NINE + 4_000, slots=8)
        assert (told.claimed, told.delivered, told.behind) == (6, 2, 4)
        assert ended(elsewhere) == ["queued"] * 4 + ["succeeded"] * 2
        assert tick(scene, NINE + MINUTE).delivered == 2
        assert tick(scene, NINE + 2 * MINUTE).delivered == 2
        assert len(crowd.order) == 6


def test_d04_an_outside_caller_is_told_when_and_nothing_is_recorded(each_scene: Scene) -> None:
    each_scene.put("digest")
    each_scene.put("other")
    store = each_scene.store
    store.limits.set("user:ada", parallel=1, now=NINE)
    (running, *_) = store.index.claim_due(NINE)
    store.ledger.begin(running, now=NINE)
    before = len(store.ledger.find("ada", "other"))
    lease = running.policies.lease_ms // 1_000
    call = request("mail", "ada/other", {"idempotencyKey": "mine"})
    answer = each_scene.dispatch(call)
    assert (answer.status, answer.body["error"]) == (429, "limit_reached")
    assert answer.headers == {"retry-after": str(lease)}
    assert len(store.ledger.find("ada", "other")) == before
    store.ledger.settle(running, FAILED, now=NINE)
    assert each_scene.post("ada/other", idempotencyKey="mine")[0] == 202


def test_o03_a_begin_that_is_refused_is_brought_again_by_a_tick(each_scene: Scene) -> None:
    due(each_scene, "ada", 2, Policies(overlap=Overlap.WAIT))
    store = each_scene.store
    first, second = store.index.claim_due(NINE)
    store.limits.set("flow:mail", parallel=1, now=NINE)
    store.ledger.begin(first, now=NINE)
    status, body = each_scene.deliver(second)
    assert (status, body["waits"], body["limited"]) == (409, True, True)
    assert tick(each_scene, NINE + MINUTE // 2).claimed == 0
    store.ledger.settle(first, FAILED, now=NINE + MINUTE // 2)
    assert tick(each_scene, NINE + MINUTE // 2 + 1).delivered == 1


def test_d10_effects_that_commit_with_the_success_give_the_place_back(sql_scene: Scene) -> None:
    def act(_given: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.run("SELECT 1")

    sql_scene.act = act
    due(sql_scene, "ada", 3, EFFECTIVELY_ONCE)
    sql_scene.store.limits.set("user:ada", parallel=1, now=NINE - MINUTE)
    assert tick(sql_scene).delivered == 3
    assert ended(sql_scene.store) == ["succeeded"] * 3


def test_t04_a_retry_waits_for_its_place_as_long_as_it_takes(each_scene: Scene) -> None:
    due(each_scene, "ada", 1, AT_LEAST_ONCE)
    store = each_scene.store
    one = store.index.claim_due(NINE)[0]
    store.limits.set("user:ada", rate=1, now=NINE)
    store.ledger.begin(one, now=NINE)
    store.ledger.settle(one, FAILED, now=NINE)
    assert [tick(each_scene, NINE + seconds * 1_000).claimed for seconds in (20, 40, 59)] == [0] * 3
    assert tick(each_scene, NINE + MINUTE).delivered == 1


def test_o03_a_tick_waits_for_no_place_of_what_runs_in_the_background(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    @each_scene.flow.action("later", background=True)
    def later(_given: Json, _ctx: Context) -> None:
        each_scene.ran.append((None, _ctx))

    for key in ("a", "b"):
        each_scene.put(key, cron="0 9 * * *", action="later")
    each_scene.store.limits.set("action:mail/later", parallel=1, now=NINE - MINUTE)
    waits, wait = list[float](), Turns.wait_until

    def noted(turns: Turns, ready: Callable[[], bool], seconds: float) -> None:
        waits.append(seconds)
        wait(turns, ready, seconds)

    monkeypatch.setattr(Turns, "wait_until", noted)
    report = tick(each_scene)
    assert sum(waits) < 5, "it stays up for nothing"
    assert (report.claimed, report.delivered, len(each_scene.queued)) == (1, 1, 1)
    (limit,) = each_scene.store.limits.standing().every
    assert limit.leases == {}
    each_scene.dispatch.run_queued(each_scene.queued.pop())
    assert len(each_scene.ran) == 1
    assert tick(each_scene, NINE + MINUTE).delivered == 1


def test_t06_look_ahead_delivers_what_is_limited_at_its_own_second(each_scene: Scene) -> None:
    due(each_scene, "ada", 3)
    each_scene.store.limits.set("user:ada", parallel=1, now=NINE - MINUTE)
    scene_time = Seconds()
    report = run_tick(
        each_scene.store,
        each_scene.inline,
        now=NINE - 20_000,
        slots=8,
        look_ahead=50_000,
        elapsed=scene_time,
        sleep=scene_time.sleep,
    )
    assert (report.delivered, report.behind) == (3, 0)
    assert report.lateness_ms < 5_000


class Seconds:
    """Seconds that pass while a tick sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.now += max(seconds, 0.001)


@pytest.mark.parametrize("bounds", [{"parallel": 1}, {"rate": 3, "per": "day"}])
def test_o03_what_ended_in_the_background_takes_no_place_for_long(
    each_scene: Scene, bounds: dict[str, Any]
) -> None:
    store, places = each_scene.store, Places(each_scene.store)
    store.limits.set("user:ada", **bounds, now=NINE - MINUTE)
    due(each_scene, "ada", 3)
    store.index.claim_due(NINE, limits=places.limits(NINE))
    for number in range(3):
        now = NINE + number * BEGINS_WITHIN_MS
        places.free_begun(now)
        (one,) = claim_waiting(store, places, now)
        begun = store.ledger.begin(one, now=now)
        assert isinstance(begun, Begun)
        store.ledger.settle(begun.occurrence, SUCCEEDED, now=now)
        places.answer(one, Delivered(202, '{"outcome": "queued"}'), now)
    assert ended(store) == ["succeeded"] * 3


def test_o03_what_is_to_begin_in_the_background_keeps_its_place(each_scene: Scene) -> None:
    store, places = each_scene.store, Places(each_scene.store)
    store.limits.set("user:ada", parallel=1, now=NINE - MINUTE)
    due(each_scene, "ada", 2)
    store.index.claim_due(NINE, limits=places.limits(NINE))
    (one,) = claim_waiting(store, places, NINE)
    places.answer(one, Delivered(202, '{"outcome": "queued"}'), NINE)
    places.free_begun(NINE + BEGINS_WITHIN_MS - 1)
    assert claim_waiting(store, places, NINE + BEGINS_WITHIN_MS - 1) == []


def claim_waiting(store: Store, places: Places, now: int) -> Sequence[Occurrence]:
    """Return the occurrences that wait for a limit and that a tick leases now."""
    limits = places.limits(now)
    claimed = store.ledger.claim_waiting(now, 1, limits=limits)
    places.take(limits, claimed)
    return claimed
